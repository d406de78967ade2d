/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each query has metrics of its own, epics.query.NAME.…, because each has its own unit. The keys are attributes, with
 * their names in the semantic conventions if they have one. In the receiver, each different row becomes a time series.
 * So a query tells how many rows are sent ("metrics"), and all queries together have EBPFMON_OTLP_QUERY_ROWS.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/otlp/otlpField.h"
#include "export/otlp/otlpQueries.h"

/* Base units (semantic conventions, "Instrument units"). A unit that is not in this table is sent as the query has
 * it. */
static const struct { const char *unit, *base; double factor; } units[] = {
    { "ns", "s", 1e-9 }, { "us", "s", 1e-6 }, { "ms", "s", 1e-3 }, { "kB", "By", 1e3 }, { "MB", "By", 1e6 },
    { "B", "By", 1 }, { "%", "1", 1e-2 }, { "", "1", 1 },
};

static const struct { const char *key, *attribute;
} attributes[] = {
    {"ioc", "epics.ioc"},
    {"record", "epics.record.name"},
    {"root", "epics.chain.root"},
    {"thread", "thread.name"},
    {"tid", "thread.id"},
    {"pid", "process.pid"},
    {"cpu", "cpu.logical_number"},
    {"function", "code.function.name"},
    {"syscall", "epics.chain.syscall"},
    {"put", "epics.pv"},
};

static void copyQuery(ebpfMonOtlpNumbers *n, const ebpfMonQueryResult *r)
{
    ebpfMonOtlpQuery *q = &n->query[n->queries];
    unsigned rows = r->rows < r->metrics ? r->rows : r->metrics;

    if (rows > EBPFMON_OTLP_QUERY_ROWS - n->queryRows)
        rows = EBPFMON_OTLP_QUERY_ROWS - n->queryRows;
    if (!rows || r->state == ebpfMonQueryAbsent)
        return;
    n->queries++;
    memcpy(q->name, r->name, sizeof(q->name));
    memcpy(q->title, r->title, sizeof(q->title));
    memcpy(q->unit, r->unit, sizeof(q->unit));
    memcpy(q->keyName, r->keyName, sizeof(q->keyName));
    q->keys = r->keys;
    q->hasValue = r->hasValue;
    q->first = n->queryRows;
    q->rows = rows;
    q->bars = r->rowBars;
    memcpy(q->barMost, r->barMost, sizeof(q->barMost));
    memcpy(n->queryBar + n->queryRows, r->rowBar, rows * sizeof(r->rowBar[0]));
    memcpy(n->queryRow + n->queryRows, r->row, rows * sizeof(r->row[0]));
    n->queryRows += rows;
}

void ebpfMonOtlpQueriesRead(ebpfMonOtlpNumbers *n, ebpfMonQueryResults *results)
{
    int count = results ? ebpfMonQueryResultsCount(results) : 0;

    n->queries = n->queryRows = 0;
    for (int i = 0; i < count; i++) {
        copyQuery(n, ebpfMonQueryResultsLock(results, i));
        ebpfMonQueryResultsUnlock(results);
    }
}

static void addQueryAttributes(ebpfMonOtlpItems *m, const ebpfMonOtlpQuery *q, const ebpfMonQueryRow *row)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    for (unsigned k = 0; k < q->keys; k++) {
        char name[sizeof(q->keyName[0]) + 24];

        snprintf(name, sizeof(name), "epics.query.%s", q->keyName[k]);
        for (unsigned i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
            if (strcmp(attributes[i].key, q->keyName[k]) == 0)
                strcpy(name, attributes[i].attribute);
        for (unsigned i = 0; i < k; i++) /* two keys may have the same name: */
            if (strcmp(q->keyName[i], q->keyName[k]) == 0)
                snprintf(name, sizeof(name), "epics.query.%s.%u", q->keyName[k], k + 1);
        ebpfMonOtlpAddAnyTextAttribute(m->j, name, row->key[k]);
    }
    ebpfMonJsonCloseList(m->j);
}

/* Returns the time since which this row counts. A query that was started again counts from 0. */
static uint64_t getQueryStart(ebpfMonOtlpItems *m, const ebpfMonOtlpQuery *q, const ebpfMonQueryRow *row)
{
    char keys[sizeof(row->key) + 4] = "";

    for (unsigned k = 0; k < q->keys; k++)
        snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), "%s\t", row->key[k]);
    return ebpfMonOtlpItemGetSince(m, "query", q->name, keys, (uint64_t)row->count);
}

typedef struct {
    const char *part, *description;
    int isSum;
    size_t member; /* offset in ebpfMonQueryRow */
} valueMetric;

/* Returns the base unit of the query's value, and the factor to it. */
static const char *findUnit(const ebpfMonOtlpQuery *q, double *factor)
{
    for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(units[i].unit, q->unit) == 0) {
            *factor = units[i].factor;
            return units[i].base;
        }
    *factor = 1;
    return q->unit;
}

static void addValues(ebpfMonOtlpItems *m, const ebpfMonOtlpQuery *q, const valueMetric *metric)
{
    double factor;
    const char *unit = findUnit(q, &factor);
    char name[EBPFMON_QUERY_NAME_SIZE + 24];

    snprintf(name, sizeof(name), "epics.query.%s.%s", q->name, metric->part);
    if (ebpfMonOtlpItemBegin(m, name, unit, metric->description))
        return;
    if (metric->isSum)
        ebpfMonOtlpItemOpenSum(m, 0);
    else
        ebpfMonOtlpItemOpenGauge(m);
    for (unsigned i = 0; i < q->rows; i++) {
        const ebpfMonQueryRow *row = &m->n->queryRow[q->first + i];
        double value;

        memcpy(&value, (const char *)row + metric->member, sizeof(value));
        ebpfMonOtlpItemOpenPoint(m, metric->isSum ? getQueryStart(m, q, row) : 0);
        addQueryAttributes(m, q, row);
        ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value * factor);
        ebpfMonJsonCloseObject(m->j);
    }
    ebpfMonOtlpItemClose(m);
}

/* Adds the bars of one row. A bucket of OTLP includes its upper bound (metrics.proto, explicit_bounds), which is the
 * greatest value that comes into our bar. */
static void addBars(ebpfMonOtlpItems *m, const ebpfMonOtlpQuery *q, const double *bar, double factor)
{
    uint64_t total = 0;

    for (unsigned b = 0; b < q->bars; b++)
        total += (uint64_t)bar[b];
    ebpfMonOtlpItemAddCount(m, "count", total);
    ebpfMonJsonOpenList(m->j, "bucketCounts");
    for (unsigned b = 0; b < q->bars; b++)
        ebpfMonJsonWriteInteger(m->j, (long long)bar[b]);
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonOpenList(m->j, "explicitBounds");
    for (unsigned b = 0; b + 1 < q->bars; b++)
        ebpfMonJsonWriteNumber(m->j, NULL, q->barMost[b] * factor);
    ebpfMonJsonCloseList(m->j);
}

static void addHistograms(ebpfMonOtlpItems *m, const ebpfMonOtlpQuery *q)
{
    double factor;
    const char *unit = findUnit(q, &factor);
    char name[EBPFMON_QUERY_NAME_SIZE + 24];

    snprintf(name, sizeof(name), "epics.query.%s.histogram", q->name);
    if (ebpfMonOtlpItemBegin(m, name, unit, "The values of this query"))
        return;
    ebpfMonOtlpItemOpenHistogram(m);
    for (unsigned i = 0; i < q->rows; i++) {
        const ebpfMonQueryRow *row = &m->n->queryRow[q->first + i];

        ebpfMonOtlpItemOpenPoint(m, getQueryStart(m, q, row));
        addQueryAttributes(m, q, row);
        addBars(m, q, m->n->queryBar[q->first + i], factor);
        if (row->min >= 0) /* only then it is a sum that grows (metrics.proto, "sum") */
            ebpfMonOtlpAddDouble(m->j, "sum", NULL, row->sum * factor);
        ebpfMonOtlpAddDouble(m->j, "min", NULL, row->min * factor);
        ebpfMonOtlpAddDouble(m->j, "max", NULL, row->max * factor);
        ebpfMonJsonCloseObject(m->j);
    }
    ebpfMonOtlpItemClose(m);
}

static void addQuery(ebpfMonOtlpItems *m, const ebpfMonOtlpQuery *q)
{
    static const valueMetric sum = { "sum", "The sum of the value", 1, offsetof(ebpfMonQueryRow, sum) };
    static const valueMetric most = { "max", "The greatest value", 0, offsetof(ebpfMonQueryRow, max) };
    static const valueMetric late = { "p99", "The 99th percentile of the value", 0, offsetof(ebpfMonQueryRow, p99) };
    char name[EBPFMON_QUERY_NAME_SIZE + 24];

    snprintf(name, sizeof(name), "epics.query.%s.events", q->name);
    if (ebpfMonOtlpItemBegin(m, name, "{event}", q->title[0] ? q->title : "Events of this query"))
        return;
    ebpfMonOtlpItemOpenSum(m, 1);
    for (unsigned i = 0; i < q->rows; i++) {
        const ebpfMonQueryRow *row = &m->n->queryRow[q->first + i];

        ebpfMonOtlpItemOpenPoint(m, getQueryStart(m, q, row));
        addQueryAttributes(m, q, row);
        ebpfMonOtlpItemAddCount(m, "asInt", (uint64_t)row->count);
        ebpfMonJsonCloseObject(m->j);
    }
    ebpfMonOtlpItemClose(m);
    if (!q->hasValue)
        return;
    addValues(m, q, &sum);
    addValues(m, q, &most);
    if (!isnan(m->n->queryRow[q->first].p99))
        addValues(m, q, &late);
    if (q->bars)
        addHistograms(m, q);
}

void ebpfMonOtlpQueriesWrite(ebpfMonOtlpItems *m)
{
    for (unsigned i = 0; i < m->n->queries; i++)
        addQuery(m, &m->n->query[i]);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "common/hash.h"
#include "otlp/otlpJson.h"
#include "otlp/otlpMetrics.h"
#include "module/modules.h"

/* --- exemplars --- */

#define EXEMPLAR_PROBES 16

static unsigned getPlace(const char *ioc, const char *root)
{
    uint32_t hash = ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, root, strlen(root));

    return ebpfMonHashFnv32(hash, ioc, strlen(ioc)) % EBPFMON_EXEMPLARS;
}

/* Finds the place of this root, or else a free place. NULL: there is neither. */
static const ebpfMonExemplar *findPlace(const ebpfMonExemplars *all, const char *ioc, const char *root)
{
    const ebpfMonExemplar *empty = NULL;
    unsigned at = getPlace(ioc, root);

    for (unsigned i = 0; i < EXEMPLAR_PROBES; i++, at = (at + 1) % EBPFMON_EXEMPLARS) {
        const ebpfMonExemplar *e = &all->of[at];

        if (strcmp(e->root, root) == 0 && strcmp(e->ioc, ioc) == 0)
            return e;
        if (!empty && !e->root[0])
            empty = e;
    }
    return empty;
}

void ebpfMonExemplarAdd(ebpfMonExemplars *all, const ebpfMonSpan *span)
{
    double value = (double)span->latency / 1000;
    const ebpfMonExemplar *at = span->root[0] ? findPlace(all, span->service.name, span->root) : NULL;
    ebpfMonExemplar *e = at ? &all->of[at - all->of] : NULL;

    if (!e || (e->root[0] && value <= e->value))
        return;
    all->used += !e->root[0];
    strcpy(e->ioc, span->service.name);
    strcpy(e->root, span->root);
    memcpy(e->trace, span->trace, sizeof(e->trace));
    memcpy(e->id, span->id, sizeof(e->id));
    e->time = span->end;
    e->value = value;
}

const ebpfMonExemplar *ebpfMonExemplarFind(const ebpfMonExemplars *all, const char *ioc, const char *root,
                                           uint64_t counted)
{
    const ebpfMonExemplar *slowest = NULL;

    if (!all->used)
        return NULL;
    if (root[0] && ioc[0]) {
        const ebpfMonExemplar *e = findPlace(all, ioc, root);

        return e && e->root[0] && e->time <= counted ? e : NULL;
    }
    for (unsigned i = 0; !ioc[0] && i < EBPFMON_EXEMPLARS; i++) {
        const ebpfMonExemplar *e = &all->of[i];

        if (e->root[0] && e->time <= counted && (!root[0] || strcmp(e->root, root) == 0) &&
            (!slowest || e->value > slowest->value))
            slowest = e;
    }
    return slowest;
}

void ebpfMonExemplarClear(ebpfMonExemplars *all, uint64_t counted)
{
    for (unsigned i = 0; all->used && i < EBPFMON_EXEMPLARS; i++) {
        ebpfMonExemplar *e = &all->of[i];

        if (e->root[0] && e->time <= counted) {
            e->root[0] = 0;
            all->used--;
        }
    }
}

/* --- points --- */

/* Writes metrics with their points, one after the other, into a text. One thread. */

#define EBPFMON_OTLP_CUMULATIVE 2 /* "cumulative" of AggregationTemporality in metrics.proto */

typedef struct {
    ebpfMonJson *j;
    const ebpfMonOtlpNumbers *n;
    const ebpfMonExemplars *exemplars;
    ebpfMonOtlpSinces *starts;
    char  *buf;
    size_t size, len;
    int    cut;      /* nonzero: something did not fit */
    unsigned points;
    unsigned moduleRows; /* of metrics of modules so far */
} ebpfMonOtlpItems;

/* Begin a metric; then open its kind, add its points, and close it. Begin: 0, or -1: it does not fit. */
static int beginOtlpItem(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description)
{
    size_t comma = m->len > 0;

    if (m->cut || m->len + comma >= m->size) {
        m->cut = 1;
        return -1;
    }
    if (ebpfMonJsonBegin(m->j, m->buf + m->len + comma, m->size - m->len - comma)) {
        m->cut = 1;
        return -1;
    }
    ebpfMonJsonAddText(m->j, "name", name);
    ebpfMonJsonAddText(m->j, "unit", unit);
    ebpfMonJsonAddText(m->j, "description", description);
    return 0;
}

static void endItem(ebpfMonOtlpItems *m)
{
    size_t len = ebpfMonJsonEnd(m->j);

    if (!len) {
        m->cut = 1;
        return;
    }
    if (m->len)
        m->buf[m->len++] = ',';
    m->len += len;
}

/* Open a point, an object of JSON which the caller closes. "since": ns since 1970; 0: the point of a gauge. */
static void openOtlpItemPoint(ebpfMonOtlpItems *m, uint64_t since)
{
    ebpfMonJsonOpenObject(m->j, NULL);
    if (since)
        ebpfMonOtlpAddInteger64(m->j, "startTimeUnixNano", since);
    ebpfMonOtlpAddInteger64(m->j, "timeUnixNano", m->n->now);
    m->points++;
}

/* Counts are numbers of JSON. For 64 bits, protobuf's JSON mapping accepts numbers as well as strings. But receivers in
 * Rust drop the point without a message if it is a string (open-telemetry/opentelemetry-rust issues 2487 and 3527). */
static void addOtlpItemCount(ebpfMonOtlpItems *m, const char *key, uint64_t count)
{
    ebpfMonJsonAddInteger(m->j, key, (long long)count);
}

static void openOtlpItemGauge(ebpfMonOtlpItems *m)
{
    ebpfMonJsonOpenObject(m->j, "gauge");
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

static void openOtlpItemSum(ebpfMonOtlpItems *m, int isMonotonic)
{
    ebpfMonJsonOpenObject(m->j, "sum");
    ebpfMonJsonAddInteger(m->j, "aggregationTemporality", EBPFMON_OTLP_CUMULATIVE);
    ebpfMonJsonAddBool(m->j, "isMonotonic", isMonotonic);
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

/* Of histograms with explicit bounds. */
static void openOtlpItemHistogram(ebpfMonOtlpItems *m)
{
    ebpfMonJsonOpenObject(m->j, "histogram");
    ebpfMonJsonAddInteger(m->j, "aggregationTemporality", EBPFMON_OTLP_CUMULATIVE);
    ebpfMonJsonOpenList(m->j, "dataPoints");
}

static void closeOtlpItem(ebpfMonOtlpItems *m)
{
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonCloseObject(m->j);
    endItem(m);
}

/* A new series counts since the first numbers: at that time its count was 0. */
static uint64_t getOtlpItemSince(ebpfMonOtlpItems *m, const char *metric, const char *key, const char *more,
                                 uint64_t value)
{
    enum { PROBES = 16 };
    ebpfMonOtlpSinces *starts = m->starts;
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, metric, strlen(metric) + 1);
    ebpfMonOtlpSeries *s = NULL;

    hash = ebpfMonHashFnv64(hash, key, strlen(key) + 1);
    hash = ebpfMonHashFnv64(hash, more, strlen(more) + 1) | 1;
    for (unsigned i = 0; i < PROBES; i++) {
        ebpfMonOtlpSeries *at = &starts->series[(hash / 2 + i) % EBPFMON_OTLP_SERIES];

        if (at->hash == hash) {
            s = at;
            break;
        }
        /* a free place, or the one that was not used for the longest time */
        if (!s || (s->hash && (!at->hash || at->seen < s->seen)))
            s = at;
    }
    if (s->hash != hash)
        *s = (ebpfMonOtlpSeries){ .hash = hash, .since = starts->first };
    else if (value < s->last)
        s->since = starts->before;
    s->last = value;
    s->seen = m->n->now;
    return s->since;
}

/* --- metrics of modules --- */

/*
 * Each has names of its own, epics.KIND.NAME.…, because each has its own unit. The keys are attributes, with their
 * names in the semantic conventions if they have one. In the receiver, each different row becomes a time series. So
 * there is a limit for all together.
 */

/* Base units (semantic conventions, "Instrument units"). A unit that is not in this table is sent as it is. */
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

static void addMetricAttributes(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const ebpfMonModuleMetricRow *row)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    for (unsigned k = 0; k < q->keys; k++) {
        char name[120];

        snprintf(name, sizeof(name), "epics.%s.%s", q->kind, q->keyName[k]);
        for (unsigned i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
            if (strcmp(attributes[i].key, q->keyName[k]) == 0)
                strcpy(name, attributes[i].attribute);
        for (unsigned i = 0; i < k; i++) /* two keys may have the same name: */
            if (strcmp(q->keyName[i], q->keyName[k]) == 0)
                snprintf(name, sizeof(name), "epics.%s.%s.%u", q->kind, q->keyName[k], k + 1);
        ebpfMonOtlpAddAnyTextAttribute(m->j, name, row->key[k]);
    }
    ebpfMonJsonCloseList(m->j);
}

/* Begins the metric epics.KIND.NAME.PART. 0, or -1: it does not fit. */
static int beginPart(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const char *part, const char *unit,
                     const char *description)
{
    char name[120];

    snprintf(name, sizeof(name), "epics.%s.%s%s%s", q->kind, q->name, part[0] ? "." : "", part);
    return beginOtlpItem(m, name, unit, description);
}

/* Opens the point of a row that counts. A metric that was started again counts from 0. */
static void openRow(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const ebpfMonModuleMetricRow *row)
{
    char keys[EBPFMON_METRIC_KEYS * 64 + 4] = "";

    for (unsigned k = 0; k < q->keys; k++)
        snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), "%s\t", row->key[k]);
    openOtlpItemPoint(m, getOtlpItemSince(m, q->kind, q->name, keys, (uint64_t)row->count));
    addMetricAttributes(m, q, row);
}

/* Returns the base unit of the value, and the factor to it. */
static const char *findUnit(const char *unit, double *factor)
{
    for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(units[i].unit, unit) == 0) {
            *factor = units[i].factor;
            return units[i].base;
        }
    *factor = 1;
    return unit;
}

static void addEventsOfRows(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q)
{
    if (beginPart(m, q, "events", "{event}", q->title))
        return;
    openOtlpItemSum(m, 1);
    for (unsigned i = 0; i < q->rows; i++) {
        openRow(m, q, &q->row[i]);
        addOtlpItemCount(m, "asInt", (uint64_t)q->row[i].count);
        ebpfMonJsonCloseObject(m->j);
    }
    closeOtlpItem(m);
}

static void addSumsOfRows(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const char *unit, double factor)
{
    if (beginPart(m, q, "sum", unit, "The sum of the value"))
        return;
    openOtlpItemSum(m, 0);
    for (unsigned i = 0; i < q->rows; i++) {
        openRow(m, q, &q->row[i]);
        ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, q->row[i].sum * factor);
        ebpfMonJsonCloseObject(m->j);
    }
    closeOtlpItem(m);
}

/* "member": offset in ebpfMonModuleMetricRow. */
static void addGaugesOfRows(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const char *part, const char *unit,
                            const char *description, size_t member, double factor)
{
    if (beginPart(m, q, part, unit, description))
        return;
    openOtlpItemGauge(m);
    for (unsigned i = 0; i < q->rows; i++) {
        double value;

        memcpy(&value, (const char *)&q->row[i] + member, sizeof(value));
        openOtlpItemPoint(m, 0);
        addMetricAttributes(m, q, &q->row[i]);
        ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value * factor);
        ebpfMonJsonCloseObject(m->j);
    }
    closeOtlpItem(m);
}

/* Adds the bars of one row. A bucket of OTLP includes its upper bound (metrics.proto, explicit_bounds), which is the
 * greatest value that comes into our bar. */
static void addBars(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const double *bar, double factor)
{
    uint64_t total = 0;

    for (unsigned b = 0; b < q->bars; b++)
        total += (uint64_t)bar[b];
    addOtlpItemCount(m, "count", total);
    ebpfMonJsonOpenList(m->j, "bucketCounts");
    for (unsigned b = 0; b < q->bars; b++)
        ebpfMonJsonWriteInteger(m->j, (long long)bar[b]);
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonOpenList(m->j, "explicitBounds");
    for (unsigned b = 0; b + 1 < q->bars; b++)
        ebpfMonJsonWriteNumber(m->j, NULL, q->barMost[b] * factor);
    ebpfMonJsonCloseList(m->j);
}

static void addHistogramsOfRows(ebpfMonOtlpItems *m, const ebpfMonModuleMetric *q, const char *unit, double factor)
{
    if (beginPart(m, q, "histogram", unit, "The values"))
        return;
    openOtlpItemHistogram(m);
    for (unsigned i = 0; i < q->rows; i++) {
        const ebpfMonModuleMetricRow *row = &q->row[i];

        openRow(m, q, row);
        addBars(m, q, row->bar, factor);
        if (row->min >= 0) /* only then it is a sum that grows (metrics.proto, "sum") */
            ebpfMonOtlpAddDouble(m->j, "sum", NULL, row->sum * factor);
        ebpfMonOtlpAddDouble(m->j, "min", NULL, row->min * factor);
        ebpfMonOtlpAddDouble(m->j, "max", NULL, row->max * factor);
        ebpfMonJsonCloseObject(m->j);
    }
    closeOtlpItem(m);
}

static void addModuleMetric(void *to, const ebpfMonModuleMetric *metric)
{
    ebpfMonModuleMetric q = *metric;
    ebpfMonOtlpItems *m = to;
    double factor;
    const char *unit = findUnit(q.unit, &factor);

    if (q.isGauge && q.rows) /* as many as its module gives */
        addGaugesOfRows(m, &q, "", unit, q.title, offsetof(ebpfMonModuleMetricRow, max), factor);
    if (q.isGauge)
        return;
    if (q.rows > EBPFMON_OTLP_MODULE_ROWS - m->moduleRows)
        q.rows = EBPFMON_OTLP_MODULE_ROWS - m->moduleRows;
    if (!q.rows)
        return;
    m->moduleRows += q.rows;
    addEventsOfRows(m, &q);
    if (!q.hasValue)
        return;
    addSumsOfRows(m, &q, unit, factor);
    addGaugesOfRows(m, &q, "max", unit, "The greatest value", offsetof(ebpfMonModuleMetricRow, max), factor);
    if (!isnan(q.row[0].p99))
        addGaugesOfRows(m, &q, "p99", unit, "The 99th percentile of the value", offsetof(ebpfMonModuleMetricRow, p99),
                        factor);
    if (q.bars)
        addHistogramsOfRows(m, &q, unit, factor);
}

/* --- metrics --- */

/* Published values have the units that people read; metrics have base units (semantic conventions, "Instrument
 * units"). */
#define SECONDS(us)       ((us) / 1e6)
#define FRACTION(percent) ((percent) / 100)
#define BYTES(mb)         ((mb) * 1e6)

static void addPointAttribute(ebpfMonOtlpItems *m, const char *key, const char *value)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    ebpfMonOtlpAddTextAttribute(m->j, key, value);
    ebpfMonJsonCloseList(m->j);
}

static void addPointAttributes(ebpfMonOtlpItems *m, const char *key, const char *value, const char *key2,
                               const char *value2)
{
    ebpfMonJsonOpenList(m->j, "attributes");
    ebpfMonOtlpAddTextAttribute(m->j, key, value);
    ebpfMonOtlpAddTextAttribute(m->j, key2, value2);
    ebpfMonJsonCloseList(m->j);
}

static void addGauge(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description, double value)
{
    if (beginOtlpItem(m, name, unit, description))
        return;
    openOtlpItemGauge(m);
    openOtlpItemPoint(m, 0);
    ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value);
    ebpfMonJsonCloseObject(m->j);
    closeOtlpItem(m);
}

static uint64_t getSince(ebpfMonOtlpSince *s, const ebpfMonOtlpNumbers *n, uint64_t before, uint64_t value)
{
    if (!s->since)
        s->since = n->now;
    else if (value < s->last)
        s->since = before;
    s->last = value;
    return s->since;
}

static void addSum(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description, uint64_t value,
                ebpfMonOtlpSince *s, uint64_t before)
{
    uint64_t from = getSince(s, m->n, before, value);

    if (beginOtlpItem(m, name, unit, description))
        return;
    openOtlpItemSum(m, 1);
    openOtlpItemPoint(m, from);
    addOtlpItemCount(m, "asInt", value);
    ebpfMonJsonCloseObject(m->j);
    closeOtlpItem(m);
}

/* Adds the point of one IOC. */
static void addIocPoint(ebpfMonOtlpItems *m, const char *metric, const char *ioc, uint64_t value)
{
    openOtlpItemPoint(m, getOtlpItemSince(m, metric, ioc, "", value));
    addPointAttribute(m, "epics.ioc", ioc);
    addOtlpItemCount(m, "asInt", value);
    ebpfMonJsonCloseObject(m->j);
}

static void addPutCounts(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (n->putIocs && !beginOtlpItem(m, "epics.puts", "{put}", "Puts that passed the filter")) {
        openOtlpItemSum(m, 1);
        for (unsigned i = 0; i < n->putIocs; i++)
            addIocPoint(m, "puts", n->putIoc[i].name, n->putIoc[i].puts);
        closeOtlpItem(m);
    }
    if (n->putIocs && !beginOtlpItem(m, "epics.puts_denied", "{put}", "Puts that were denied")) {
        openOtlpItemSum(m, 1);
        for (unsigned i = 0; i < n->putIocs; i++)
            addIocPoint(m, "denied", n->putIoc[i].name, n->putIoc[i].denied);
        closeOtlpItem(m);
    }
    if (n->iocs && !beginOtlpItem(m, "epics.processings", "{processing}", "Record processings")) {
        openOtlpItemSum(m, 1);
        for (unsigned i = 0; i < n->iocs; i++)
            addIocPoint(m, "processings", n->ioc[i].name, n->ioc[i].processings);
        closeOtlpItem(m);
    }
}

static void addReasonPoint(ebpfMonOtlpItems *m, uint64_t from, const char *reason, uint64_t count)
{
    openOtlpItemPoint(m, from);
    addPointAttribute(m, "ebpfmon.reason", reason);
    addOtlpItemCount(m, "asInt", count);
    ebpfMonJsonCloseObject(m->j);
}

static void addLosses(ebpfMonOtlpItems *m, ebpfMonOtlpSinces *starts)
{
    const ebpfMonOtlpNumbers *n = m->n;
    uint64_t total = 0, from;

    for (unsigned i = 0; i < n->losses; i++)
        total += n->lost[i].count;
    from = getSince(&starts->lost, n, starts->before, total);
    if (n->losses && !beginOtlpItem(m, "ebpfmon.lost", "{event}", "Events that the monitor lost")) {
        openOtlpItemSum(m, 1);
        for (unsigned i = 0; i < n->losses; i++)
            addReasonPoint(m, from, n->lost[i].reason, n->lost[i].count);
        closeOtlpItem(m);
    }
    total = 0;
    for (unsigned i = 0; i < n->drops; i++)
        total += n->drop[i].count;
    from = getSince(&starts->drop, n, starts->before, total);
    if (beginOtlpItem(m, "ebpfmon.otlp.lost", "{item}", "Log records and spans that could not be sent"))
        return;
    openOtlpItemSum(m, 1);
    for (unsigned i = 0; i < n->drops; i++)
        addReasonPoint(m, from, n->drop[i].reason, n->drop[i].count);
    closeOtlpItem(m);
}

static void addIocs(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->iocs)
        return;
    if (!beginOtlpItem(m, "epics.records", "{record}", "Records of an IOC")) {
        openOtlpItemGauge(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            openOtlpItemPoint(m, 0);
            addPointAttribute(m, "epics.ioc", n->ioc[i].name);
            addOtlpItemCount(m, "asInt", n->ioc[i].records);
            ebpfMonJsonCloseObject(m->j);
        }
        closeOtlpItem(m);
    }
    if (!beginOtlpItem(m, "epics.cost", "1", "CPU that watching takes from an IOC, of one core")) {
        openOtlpItemGauge(m);
        for (unsigned i = 0; i < n->iocs; i++) {
            openOtlpItemPoint(m, 0);
            addPointAttribute(m, "epics.ioc", n->ioc[i].name);
            ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, FRACTION(n->ioc[i].cost));
            ebpfMonJsonCloseObject(m->j);
        }
        closeOtlpItem(m);
    }
}

static void addProcesses(ebpfMonOtlpItems *m, const char *name, const char *unit, const char *description,
                         double (*get)(const ebpfMonOtlpProcess *p))
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->processes || beginOtlpItem(m, name, unit, description))
        return;
    openOtlpItemGauge(m);
    for (unsigned i = 0; i < n->processes; i++) {
        double value = get(&n->process[i]);

        if (isnan(value)) /* not measured yet */
            continue;
        openOtlpItemPoint(m, 0);
        addPointAttribute(m, "epics.ioc", n->process[i].name);
        ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, value);
        ebpfMonJsonCloseObject(m->j);
    }
    closeOtlpItem(m);
}

static double getCpu(const ebpfMonOtlpProcess *p)
{
    return FRACTION(p->cpu);
}

static double getMemory(const ebpfMonOtlpProcess *p)
{
    return BYTES(p->mem);
}

/* Adds the numbers of the whole host on which somebody may have to act: alert rules need no more. */
static void addHealth(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;
    ebpfMonOtlpSinces *s = m->starts;

    addSum(m, "epics.puts_unexpected", "{put}", "Puts that the rules do not expect", n->unexpected, &s->unexpected,
           s->before);
    addGauge(m, "epics.iocs_gone", "{ioc}", "IOCs that ended and did not come back", n->gone);
    addGauge(m, "epics.threads_hanging", "{thread}", "Threads of IOCs that hang", n->hangs);
    addSum(m, "epics.scans_late", "{scan}", "Periods of scan threads that were too long", n->lateScans, &s->lateScans,
           s->before);
    addSum(m, "epics.ioc_restarts", "{restart}", "IOCs that ended and came back", n->restarts, &s->restarts, s->before);
    addProcesses(m, "epics.ioc.cpu", "1", "CPU of an IOC, of one core", getCpu);
    addProcesses(m, "epics.ioc.memory", "By", "Resident memory of an IOC", getMemory);
    addGauge(m, "ebpfmon.state", "{state}", "0 starting, 1 running, 2 degraded, 3 failed", n->state);
}

/* The time is a number, and the list is there even if it is empty: otherwise receivers in Rust drop the whole histogram
 * (see addOtlpItemCount). */
static void addExemplar(ebpfMonOtlpItems *m, const char *ioc, const char *root)
{
    const ebpfMonExemplar *e = ebpfMonExemplarFind(m->exemplars, ioc, root, m->n->counted);

    if (!e)
        return;
    ebpfMonJsonOpenList(m->j, "exemplars");
    ebpfMonJsonOpenObject(m->j, NULL);
    addOtlpItemCount(m, "timeUnixNano", e->time);
    ebpfMonJsonOpenList(m->j, "filteredAttributes");
    ebpfMonJsonCloseList(m->j);
    ebpfMonOtlpAddDouble(m->j, "asDouble", NULL, SECONDS(e->value));
    ebpfMonJsonAddId(m->j, "traceId", e->trace, sizeof(e->trace));
    ebpfMonJsonAddId(m->j, "spanId", e->id, sizeof(e->id));
    ebpfMonJsonCloseObject(m->j);
    ebpfMonJsonCloseList(m->j);
}

static uint64_t getCount(double value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* Published buckets have lower edges. A bucket of OTLP ends with the bound of the same index, and the last one has no
 * bound. */
static void addHistogram(ebpfMonOtlpItems *m, const double *hist)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        total += getCount(hist[i]);
    addOtlpItemCount(m, "count", total);
    ebpfMonJsonOpenList(m->j, "bucketCounts");
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonWriteInteger(m->j, (long long)getCount(hist[i]));
    ebpfMonJsonCloseList(m->j);
    ebpfMonJsonOpenList(m->j, "explicitBounds");
    for (unsigned i = 1; i < EBPFMON_HIST_MAX; i++)
        ebpfMonJsonWriteNumber(m->j, NULL, SECONDS(m->n->edge[i]));
    ebpfMonJsonCloseList(m->j);
}

static int openHistograms(ebpfMonOtlpItems *m, const char *name, const char *description)
{
    /* without an edge no histogram was made yet */
    if (!(m->n->edge[EBPFMON_HIST_MAX - 1] > 0) || beginOtlpItem(m, name, "s", description))
        return -1;
    openOtlpItemHistogram(m);
    return 0;
}

static void addLatency(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;
    ebpfMonOtlpSinces *starts = m->starts;
    int fewer = strcmp(starts->root, n->root) != 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++) {
        fewer |= getCount(n->hist[i]) < starts->bucket[i];
        starts->bucket[i] = getCount(n->hist[i]);
    }
    if (!starts->hist.since)
        starts->hist.since = n->now;
    else if (fewer)
        starts->hist.since = starts->before;
    strcpy(starts->root, n->root);
    if (openHistograms(m, "epics.chain.latency", "Latency of processing chains, from when they had the lock"))
        return;
    openOtlpItemPoint(m, starts->hist.since);
    if (n->root[0])
        addPointAttribute(m, "epics.record.name", n->root);
    addHistogram(m, n->hist);
    addExemplar(m, "", n->root);
    ebpfMonJsonCloseObject(m->j);
    closeOtlpItem(m);
}

static void addRoots(ebpfMonOtlpItems *m)
{
    const ebpfMonOtlpNumbers *n = m->n;

    if (!n->roots || openHistograms(m, "epics.root.latency", "The same of each of the slowest root records"))
        return;
    for (unsigned i = 0; i < n->roots; i++) {
        const ebpfMonChainRow *c = &n->chain[i];

        openOtlpItemPoint(m, getOtlpItemSince(m, "root", c->ioc, c->root, c->count));
        addPointAttributes(m, "epics.ioc", c->ioc, "epics.record.name", c->root);
        addHistogram(m, c->hist);
        ebpfMonOtlpAddDouble(m->j, "sum", NULL, SECONDS(c->mean * (double)c->count));
        ebpfMonOtlpAddDouble(m->j, "max", NULL, SECONDS(c->max));
        addExemplar(m, c->ioc, c->root);
        ebpfMonJsonCloseObject(m->j);
    }
    closeOtlpItem(m);
}

size_t ebpfMonOtlpWriteMetrics(ebpfMonJson *json, const ebpfMonOtlpNumbers *n, const ebpfMonExemplars *exemplars,
                               ebpfMonOtlpSinces *starts, char *buf, size_t size, unsigned *points)
{
    ebpfMonOtlpItems m = {.j = json, .n = n, .exemplars = exemplars, .starts = starts, .buf = buf, .size = size};

    if (!starts->first)
        starts->first = starts->before = n->now;
    addPutCounts(&m);
    addLatency(&m);
    addRoots(&m);
    addIocs(&m);
    addHealth(&m);
    ebpfMonModulesGiveMetrics(addModuleMetric, &m);
    addGauge(&m, "ebpfmon.cost", "1", "CPU that watching takes from all IOCs, of one core", FRACTION(n->cost));
    addGauge(&m, "ebpfmon.cpu", "1", "The monitor's own CPU, of one core", FRACTION(n->cpu));
    addGauge(&m, "ebpfmon.mem", "By", "The monitor's own memory, with its maps", BYTES(n->mem));
    addSum(&m, "ebpfmon.otlp.sent", "{item}", "What was accepted", n->sent, &starts->sent, starts->before);
    addLosses(&m, starts);
    starts->before = n->now;
    *points = m.points;
    return m.cut ? 0 : m.len;
}

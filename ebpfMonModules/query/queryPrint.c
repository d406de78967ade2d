/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/queryValues.h"
#include "query/queryPrint.h"

#define BAR_WIDTH   50
#define VALUES_MOST 9 /* columns behind the keys */

static const char *const stateNames[] = {"absent", "off", "starting", "running", "done", "failed"};

/* Returns a copy of the result, which the caller frees; NULL without memory. */
static ebpfMonQueryResult *copyResult(ebpfMonQueryResults *results, int number)
{
    ebpfMonQueryResult *copy = malloc(sizeof(*copy));

    if (copy) {
        *copy = *ebpfMonQueryResultsLock(results, number);
        ebpfMonQueryResultsUnlock(results);
    }
    return copy;
}

void ebpfMonQueryPrintBegin(ebpfMonTextReport *report)
{
    static const ebpfMonReportColumn columns[] = {
        {"query", -24}, {"state", -9}, {"keys", 7}, {"events", 14}, {"dropped", 9}, {"cost %", 8}, {"file, message", 0}
    };

    ebpfMonTextReportBeginTable(report, columns, 7);
}

void ebpfMonQueryPrintLine(ebpfMonTextReport *report, ebpfMonQueryResults *results, int number, const char *file)
{
    ebpfMonQueryResult *r = copyResult(results, number);

    if (!r)
        return;
    ebpfMonTextReportAddCell(report, "%s", r->name);
    ebpfMonTextReportAddCell(report, "%s", stateNames[r->state]);
    ebpfMonTextReportAddCell(report, "%u", r->found);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)r->events);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)r->dropped);
    ebpfMonTextReportAddCell(report, "%.3f", r->cost);
    ebpfMonTextReportAddCell(report, "%s: %s", file, r->message);
    free(r);
}

static void addNumber(ebpfMonTextReport *report, double value)
{
    if (isnan(value))
        ebpfMonTextReportAddCell(report, "-");
    else
        ebpfMonTextReportAddCell(report, fabs(value) < 1e15 && value == floor(value) ? "%.0f" : "%.3f", value);
}

static void addRows(ebpfMonTextReport *report, const ebpfMonQueryResult *r)
{
    static const char *const titles[VALUES_MOST] = {"count", "rate/s", "sum", "mean", "min", "max", "p50", "p90",
                                                    "p99"};
    ebpfMonReportColumn columns[EBPFMON_QUERY_KEYS_MAX + VALUES_MOST];
    unsigned values = !r->hasValue ? 2 : !r->hasHist ? 6 : VALUES_MOST, n = 0;

    for (unsigned k = 0; k < r->keys; k++)
        columns[n++] = (ebpfMonReportColumn){ r->keyName[k], -24 };
    for (unsigned v = 0; v < values; v++)
        columns[n++] = (ebpfMonReportColumn){ titles[v], 14 };
    ebpfMonTextReportBeginTable(report, columns, n);
    for (unsigned i = 0; i < r->rows; i++) {
        const ebpfMonQueryRow *row = &r->row[i];
        const double value[VALUES_MOST] = { row->count, row->rate, row->sum, row->mean, row->min, row->max, row->p50,
                                            row->p90, row->p99 };

        for (unsigned k = 0; k < r->keys; k++)
            ebpfMonTextReportAddCell(report, "%s", row->key[k]);
        for (unsigned v = 0; v < values; v++)
            addNumber(report, value[v]);
    }
}

static void addBars(ebpfMonTextReport *report, const ebpfMonQueryResult *r)
{
    double most = 0;

    for (unsigned i = 0; i < r->bars; i++)
        most = fmax(most, r->hist[i]);
    if (r->bars)
        ebpfMonTextReportAdd(report, "%14s %s\n", "from", r->unit);
    for (unsigned i = 0; i < r->bars; i++) {
        char bar[BAR_WIDTH + 1] = "";

        memset(bar, '#', most > 0 ? (size_t)lround(BAR_WIDTH * r->hist[i] / most) : 0);
        ebpfMonTextReportAdd(report, "%14.6g %14.0f |%-*s|\n", r->histEdge[i], r->hist[i], BAR_WIDTH, bar);
    }
}

static void addEvents(ebpfMonTextReport *report, const ebpfMonQueryResult *r)
{
    ebpfMonReportColumn columns[4 + EBPFMON_QUERY_KEYS_MAX] = {
        {"time", -29}, {"thread", -15}, {"CPU", 4}, {"value", 12}
    };
    unsigned n = 4;

    for (unsigned k = 0; k < r->keys; k++)
        columns[n++] = (ebpfMonReportColumn){ r->keyName[k], -24 };
    if (r->eventRows)
        ebpfMonTextReportBeginTable(report, columns, n);
    for (unsigned i = 0; i < r->eventRows; i++) {
        const ebpfMonQueryEventRow *e = &r->event[i];

        ebpfMonTextReportAddCell(report, "%s", e->time);
        ebpfMonTextReportAddCell(report, "%s", e->thread);
        addNumber(report, e->cpu);
        addNumber(report, e->value);
        for (unsigned k = 0; k < r->keys; k++)
            ebpfMonTextReportAddCell(report, "%s", e->key[k]);
    }
}

void ebpfMonQueryPrintStacks(ebpfMonTextReport *report, ebpfMonQueryResults *results, int number)
{
    char *text = ebpfMonQueryResultsCopyStacks(results, number), *rest = text;

    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        ebpfMonTextReportAdd(report, "%s\n", line);
    free(text);
}

void ebpfMonQueryPrintResult(ebpfMonTextReport *report, ebpfMonQueryResults *results, int number)
{
    ebpfMonQueryResult *r = copyResult(results, number);

    if (!r)
        return;
    ebpfMonTextReportAdd(report, "%s: %s\n%s: %s; cost %.3f %% of a core\n", r->name, r->title, stateNames[r->state],
                         r->message, r->cost);
    ebpfMonTextReportAdd(report, "%llu events, %llu dropped, %u keys%s%s%s\n", (unsigned long long)r->events,
                         (unsigned long long)r->dropped, r->found, r->isEstimate ? ", estimated from a sample" : "",
                         r->unit[0] ? ", values in " : "", r->unit);
    if (r->rows < r->found)
        ebpfMonTextReportAdd(report, "the first %u keys; the other %u have %.0f events (\"top\" shows up to %d)\n",
                             r->rows, r->found - r->rows, r->rest, EBPFMON_QUERY_ROWS_MAX);
    if (r->keys || r->rows)
        addRows(report, r);
    addBars(report, r);
    addEvents(report, r);
    free(r);
}

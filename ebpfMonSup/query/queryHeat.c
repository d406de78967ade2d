/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query/queryBars.h"
#include "query/queryHeat.h"

#define ROWS    EBPFMON_QUERY_HEAT_ROWS
#define COLUMNS EBPFMON_QUERY_HEAT_COLUMNS
#define BARS    EBPFMON_QUERY_BARS_MAX

struct ebpfMonQueryHeat {
    const ebpfMonQuerySpec *spec;
    unsigned bars;
    double   begin;        /* of the column that is being made (monotonic s) */
    uint64_t before[BARS]; /* the histogram at that time */
    double   cell[BARS][COLUMNS]; /* NaN: not known. The newest column is the last one */
};

static void clearCells(double *cell, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cell[i] = NAN;
}

ebpfMonQueryHeat *ebpfMonQueryHeatNew(const ebpfMonQuerySpec *spec, double now)
{
    ebpfMonQueryHeat *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->spec = spec;
    h->bars = ebpfMonQueryBarsCount(&spec->order.plan);
    h->begin = now;
    clearCells(h->cell[0], (size_t)BARS * COLUMNS);
    return h;
}

void ebpfMonQueryHeatFree(ebpfMonQueryHeat *h)
{
    free(h);
}

/* Shifts all columns by "columns" and sets the newest one. If the thread was late, so that several columns are over, it
 * is not known in which of them the values came: all stand in the newest one. */
static void appendColumn(ebpfMonQueryHeat *h, const uint64_t *bar, unsigned columns)
{
    for (unsigned b = 0; b < h->bars; b++) {
        double *row = h->cell[b];

        memmove(row, row + columns, (COLUMNS - columns) * sizeof(*row));
        clearCells(row + COLUMNS - columns, columns);
        if (bar[b] >= h->before[b])
            row[COLUMNS - 1] = (double)(bar[b] - h->before[b]) * h->spec->order.plan.sample;
    }
}

void ebpfMonQueryHeatAdd(ebpfMonQueryHeat *h, const uint64_t *bar, double now)
{
    /* The looks of a query are not exact to the ms: a look that is early by half an interval ends the column, too */
    double columns = floor((now - h->begin + h->spec->interval / 2) / h->spec->history);

    if (columns < 1)
        return;
    appendColumn(h, bar, columns < COLUMNS ? (unsigned)columns : COLUMNS);
    memcpy(h->before, bar, sizeof(h->before));
    h->begin += columns * h->spec->history;
}

/* The first of the bars that are shown. A log2 histogram has more bars than rows: those from the least one that is in
 * the history; if the history has more than that, its greatest ones. */
static unsigned findFirst(const ebpfMonQueryHeat *h)
{
    unsigned least = h->bars, most = 0, first;

    for (unsigned b = 0; b < h->bars; b++)
        for (unsigned c = 0; c < COLUMNS; c++)
            if (h->cell[b][c] > 0) {
                least = b < least ? b : least;
                most = b;
            }
    if (least == h->bars || h->bars <= ROWS)
        return 0;
    first = most >= least + ROWS ? most - ROWS + 1 : least;
    return first + ROWS > h->bars ? h->bars - ROWS : first;
}

void ebpfMonQueryHeatCopy(const ebpfMonQueryHeat *h, ebpfMonQueryResult *result)
{
    const struct ebpfMonQueryPlan *plan = &h->spec->order.plan;
    unsigned together = plan->hist == EBPFMON_QUERY_LINEAR ? (h->bars + ROWS - 1) / ROWS : 1; /* bars in a row */
    unsigned first = plan->hist == EBPFMON_QUERY_LINEAR ? 0 : findFirst(h);

    result->heatSeconds = h->spec->history;
    for (unsigned r = 0; r < ROWS; r++) {
        double *row = &result->heat[(ROWS - 1 - r) * COLUMNS]; /* the greatest values at the top */
        unsigned from = first + r * together;

        result->heatEdge[ROWS - 1 - r] = ebpfMonQueryBarEdge(plan, from) * h->spec->scale;
        for (unsigned c = 0; c < COLUMNS; c++) {
            row[c] = from < h->bars ? h->cell[from][c] : NAN;
            for (unsigned b = from + 1; b < from + together && b < h->bars; b++)
                row[c] += h->cell[b][c];
        }
    }
}

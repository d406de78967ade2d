/* SPDX-License-Identifier: BSD-3-Clause */
/* query/queryRows.h: columns of time, rows that are shown, a thread that was late, counts that became smaller. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "query/queryRows.h"

#define ROWS    EBPFMON_QUERY_HEAT_ROWS
#define COLUMNS EBPFMON_QUERY_HEAT_COLUMNS

static ebpfMonQuerySpec spec = { .interval = 1, .history = 10, .scale = 1 };
static ebpfMonQueryResult result;

/* A cell: "row" from the bottom, "column" from the newest. */
static double cellOf(const ebpfMonQueryHeat *h, unsigned row, unsigned column)
{
    ebpfMonQueryHeatCopy(h, &result);
    return result.heat[(ROWS - 1 - row) * COLUMNS + COLUMNS - 1 - column];
}

static double edgeOf(unsigned row)
{
    return result.heatEdge[ROWS - 1 - row];
}

static void testColumns(void)
{
    uint64_t bar[EBPFMON_QUERY_BARS_MAX] = { 0 };
    ebpfMonQueryHeat *h;

    spec.order.plan = (struct ebpfMonQueryPlan){ .hist = EBPFMON_QUERY_LINEAR, .step = 5, .steps = 4, .sample = 1 };
    h = ebpfMonQueryHeatNew(&spec, 100);
    testOk(isnan(cellOf(h, 1, 0)), "at the begin no cell is known");
    bar[1] = 3;
    ebpfMonQueryHeatAdd(h, bar, 105);
    testOk(isnan(cellOf(h, 1, 0)), "… nor is one before the first column is over");
    ebpfMonQueryHeatAdd(h, bar, 109.7);
    testOk(cellOf(h, 1, 0) == 3 && cellOf(h, 2, 0) == 0 && isnan(cellOf(h, 1, 1)),
           "a look that is early by half an interval ends the column");
    testOk(edgeOf(0) == -5 && edgeOf(1) == 0 && edgeOf(5) == 20 && isnan(cellOf(h, 6, 0)),
           "there are six bars with their edges");
    bar[1] = 4;
    ebpfMonQueryHeatAdd(h, bar, 119.6);
    testOk(cellOf(h, 1, 0) == 1 && cellOf(h, 1, 1) == 3, "a column has only what came since the one before");
    bar[1] = 10;
    ebpfMonQueryHeatAdd(h, bar, 151);
    testOk(cellOf(h, 1, 0) == 6 && isnan(cellOf(h, 1, 1)) && isnan(cellOf(h, 1, 2)) && cellOf(h, 1, 3) == 1,
           "a thread that is late leaves columns empty");
    bar[1] = 2;
    ebpfMonQueryHeatAdd(h, bar, 160);
    testOk(isnan(cellOf(h, 1, 0)), "a count that became smaller gives an unknown cell");
    bar[1] = 5;
    ebpfMonQueryHeatAdd(h, bar, 170);
    testOk(cellOf(h, 1, 0) == 3, "… and the next count gives a known one");
    ebpfMonQueryHeatAdd(h, bar, 1e6);
    testOk(cellOf(h, 1, 0) == 0 && isnan(cellOf(h, 1, COLUMNS - 1)),
           "after a very long time all old columns are unknown");
    ebpfMonQueryHeatFree(h);
}

static void testRows(void)
{
    uint64_t bar[EBPFMON_QUERY_BARS_MAX] = { 0 };
    ebpfMonQueryHeat *h;

    spec.order.plan = (struct ebpfMonQueryPlan){ .hist = EBPFMON_QUERY_LINEAR, .step = 1, .steps = 40, .sample = 2 };
    h = ebpfMonQueryHeatNew(&spec, 0);
    bar[2] = 1;
    bar[3] = 4;
    bar[41] = 7;
    ebpfMonQueryHeatAdd(h, bar, 10);
    testOk(cellOf(h, 1, 0) == 10 && cellOf(h, 20, 0) == 14 && cellOf(h, 0, 0) == 0,
           "a row takes two bars, and counts are multiplied by the sample");
    testOk(edgeOf(0) == -1 && edgeOf(1) == 1 && edgeOf(20) == 39, "… and a row has the edge of its lower bar");
    ebpfMonQueryHeatFree(h);

    spec.order.plan = (struct ebpfMonQueryPlan){ .hist = EBPFMON_QUERY_LOG2, .sample = 1 };
    h = ebpfMonQueryHeatNew(&spec, 0);
    memset(bar, 0, sizeof(bar));
    bar[10] = 1;
    ebpfMonQueryHeatAdd(h, bar, 10);
    testOk(cellOf(h, 0, 0) == 1 && edgeOf(0) == 2048, "rows are powers of two from the least value on: %g", edgeOf(0));
    bar[47] = 2;
    ebpfMonQueryHeatAdd(h, bar, 20);
    testOk(cellOf(h, 31, 0) == 2 && edgeOf(0) == ebpfMonQueryBarEdge(&spec.order.plan, 16),
           "if not all fit, the rows of the greatest values are kept");
    ebpfMonQueryHeatFree(h);
}

MAIN(testQueryHeat)
{
    testPlan(13);
    testColumns();
    testRows();
    return testDone();
}

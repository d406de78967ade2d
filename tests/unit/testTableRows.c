/* SPDX-License-Identifier: BSD-3-Clause */
/* record/tableRows.h: the times of tables. */
#include <string.h>

#include <envDefs.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "ebpfMonModule.h"
#include "model/published.h"
#include "record/pvTable.h"
#include "record/tableRows.h"

#define NOON 1163851200u /* 18 November 2026, 12:00 UTC */
#define DAY  86400u

static ebpfMonTableCells column;
static ebpfMonTableMoment moment;

static void beginColumn(const char *pv)
{
    column = (ebpfMonTableCells){ .pv = ebpfMonPvFind(pv, 0), .size = 3 };
    if (!column.pv || ebpfMonTableCellsInit(&column))
        testAbort("%s is no column", pv);
}

static void addPut(epicsUInt32 seconds)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonPut put = { .time = { seconds, 283000000 }, .through = ebpfMonByCa };

    ebpfMonPublishedKeepPut(published, &put);
    ebpfMonPublishedUnlock();
}

static void expect(unsigned row, const char *text)
{
    testOk(row < moment.rows && strcmp(column.cell.text[row], text) == 0, "row %u: \"%s\"", row,
           row < moment.rows ? column.cell.text[row] : "");
}

static void testPuts(void)
{
    testDiag("puts: the first row is the newest, and its day is clear");
    addPut(NOON - DAY);
    addPut(NOON);
    beginColumn("PUT_TIMES");
    ebpfMonTableRead(&column, 1, &moment);
    expect(0, "12:00:00.283");
    expect(1, "11-17 12:00:00.283");
    addPut(NOON + DAY);
    ebpfMonTableRead(&column, 1, &moment);
    expect(0, "12:00:00.283");
    expect(1, "11-18 12:00:00.283");
    ebpfMonTableCellsFree(&column);
}

static const void *getSince(const ebpfMonPublished *published, unsigned index)
{
    static const epicsTimeStamp since[] = { { NOON - 5 * DAY, 123000000 }, { NOON - 5 * DAY, 0 }, { 0, 0 } };

    return index < 3 ? &since[index] : NULL;
}

static void testOthers(void)
{
    static ebpfMonPv pv = {"TEST_TIMES", 0, getSince, ebpfMonCellTime, 0};
    static ebpfMonModule module = { .name = "test", .pvs = &pv, .pvCount = 1 };

    testDiag("of a module: the first row may be the oldest");
    ebpfMonModuleAdd(&module);
    beginColumn("TEST_TIMES");
    ebpfMonTableRead(&column, 1, &moment);
    expect(0, "2026-11-13 12:00:00.123");
    expect(1, "2026-11-13 12:00:00.000");
    expect(2, ""); /* not known */
    ebpfMonTableCellsFree(&column);
}

MAIN(testTableRows)
{
    testPlan(7);
    epicsEnvSet("TZ", "UTC");
    ebpfMonPublishedLock()->state = ebpfMonRunning;
    ebpfMonPublishedUnlock();
    testPuts();
    testOthers();
    return testDone();
}

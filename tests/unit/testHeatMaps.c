/* SPDX-License-Identifier: BSD-3-Clause */
/* publish/rankings.h: columns of the values that are published once per second. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "publish/rankings.h"

#define LAST (EBPFMON_HEAT_COLUMNS - 1)

static ebpfMonHeatMaps *maps;
static uint64_t now = 1000000000;
static unsigned notified;

static void count(ebpfMonGroup group)
{
    notified += group == ebpfMonGroupHeat;
}

static void publish(double seconds)
{
    now += (uint64_t)(seconds * 1e9);
    ebpfMonHeatMapsPublish(maps, now);
}

static void setRecord(ebpfMonPublished *p, unsigned i, const char *name, uint64_t n)
{
    strcpy(p->processings.busiest[i].name, name);
    p->processings.busiest[i].count = n;
    if (i >= p->processings.busiestCount)
        p->processings.busiestCount = i + 1;
}

static void testRecords(ebpfMonPublished *p)
{
    setRecord(p, 0, "FAST", 1000);
    setRecord(p, 1, "SLOW", 50);
    publish(1);
    testOk(p->heat.records == 0 && isnan(p->heat.rate[LAST]), "the first reading has nothing to compare with");
    setRecord(p, 0, "SLOW", 60);
    setRecord(p, 1, "FAST", 1100);
    publish(5);
    testOk(p->heat.records == 0, "there is no column after five seconds");
    publish(5);
    testOk(p->heat.records == 2 && strcmp(p->heat.record[0].name, "FAST") == 0 && p->heat.rate[LAST] == 10 &&
           strcmp(p->heat.record[1].name, "SLOW") == 0 && p->heat.rate[EBPFMON_HEAT_COLUMNS + LAST] == 1,
           "the busiest record is the first row, wherever it was in the list");
    testOk(isnan(p->heat.rate[LAST - 1]), "before the start nothing is known");
    setRecord(p, 0, "SLOW", 260);
    setRecord(p, 1, "FAST", 7);
    publish(10);
    testOk(isnan(p->heat.rate[EBPFMON_HEAT_COLUMNS + LAST]) && p->heat.rate[EBPFMON_HEAT_COLUMNS + LAST - 1] == 10,
           "a count went down: its rate is not known, and earlier columns stay");
    testOk(strcmp(p->heat.record[0].name, "SLOW") == 0 && p->heat.rate[LAST] == 20 && p->heat.rate[LAST - 1] == 1,
           "rows are sorted by the sum of what is shown");
    p->processings.busiestCount = 1;
    publish(10);
    testOk(p->heat.records == 2 && isnan(p->heat.rate[EBPFMON_HEAT_COLUMNS + LAST]),
           "a record is not listed any more: its rate is not known");
    for (unsigned i = 0; i < EBPFMON_HEAT_COLUMNS; i++)
        publish(10);
    testOk(p->heat.records == 0, "after ten minutes without processings a record has no row");
}

static void testManyRecords(ebpfMonPublished *p)
{
    char name[32];

    for (int round = 0; round < 6; round++) {
        for (unsigned i = 0; i < EBPFMON_TOP_MAX; i++) {
            sprintf(name, "R%u", (unsigned)(round / 2) * EBPFMON_TOP_MAX + i);
            setRecord(p, i, name, 1 + (uint64_t)(round % 2) * 100 * (i + 1));
        }
        publish(10);
    }
    testOk(p->heat.records == EBPFMON_HEAT_RECORDS && strcmp(p->heat.record[0].name, "R199") == 0 &&
           strcmp(p->heat.record[1].name, "R299") == 0 && strcmp(p->heat.record[2].name, "R99") == 0,
           "of 300 new records the busiest %u are shown", EBPFMON_HEAT_RECORDS);
}

static void testChains(ebpfMonPublished *p)
{
    double *top = p->heat.chains, *bottom = p->heat.chains + (EBPFMON_HEAT_OCTAVES - 1) * EBPFMON_HEAT_COLUMNS;

    p->chains.hist[0] = 5;
    p->chains.hist[EBPFMON_HEAT_OCTAVES - 1] = 1;
    publish(10);
    p->chains.hist[0] = 12;
    publish(10);
    testOk(bottom[LAST] == 7 && top[LAST] == 0 && top[LAST - 1] == 1,
           "a column has its own chains; the longest are at the top");
    p->chains.hist[0] = 3;
    publish(10);
    testOk(isnan(bottom[LAST]) && isnan(top[LAST]) && bottom[LAST - 1] == 7, "an IOC ended: the counts are not known");
    strcpy(p->chains.selectedRoot, "OTHER");
    publish(10);
    testOk(isnan(bottom[LAST]) && isnan(bottom[LAST - 2]), "other chains: the earlier columns belong to others");
    p->chains.hist[0] = 4;
    publish(10);
    testOk(bottom[LAST] == 1, "the next column is known again");
}

MAIN(testHeatMaps)
{
    ebpfMonPublished *p = ebpfMonPublishedLock();

    ebpfMonPublishedUnlock(); /* read without the lock: there is only this thread */
    testPlan(14);
    ebpfMonPublishedSetListener(count);
    maps = ebpfMonHeatMapsNew();
    testRecords(p);
    testManyRecords(p);
    testChains(p);
    testOk(notified > 60 && notified < 90, "the records are notified of each column, %u", notified);
    ebpfMonHeatMapsFree(maps);
    return testDone();
}

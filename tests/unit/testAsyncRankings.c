/* SPDX-License-Identifier: BSD-3-Clause */
/* publish/rankings.h: asynchronous records of invented IOCs, and the published lists. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/published.h"
#include "publish/rankings.h"
#include "targetTest.h"

#define SLOT_A 100
#define SLOT_B 200
#define NOW    (100ull << EBPFMON_WINDOW_BITS) /* monotonic ns: the begin of a window */
#define MS     1000000ull

static const char *const namesA[] = { "A:FAST", "A:SLOW", "BOTH", NULL };
static const char *const namesB[] = { "BOTH", "B:ONE", NULL };
static ebpfMonTargets *targets;
static ebpfMonTarget *a, *b;
static ebpfMonAsyncRankings *rankings;
static struct { uint32_t slot; struct ebpfMonAsyncStat stat; } record[2 * EBPFMON_TOP_MAX];
static unsigned records;

static void eachAsync(void (*each)(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *stat), void *arg)
{
    for (unsigned i = 0; i < records; i++)
        each(arg, record[i].slot, &record[i].stat);
}

/* A record that completed "count" times, each after "ns", the last time at "at". */
static struct ebpfMonAsyncStat *addRecord(uint32_t slot, uint64_t ns, uint64_t count, uint64_t at)
{
    struct ebpfMonAsyncStat *s = &record[records].stat;

    record[records++].slot = slot;
    memset(s, 0, sizeof(*s));
    s->count = count;
    s->last = s->max = ns;
    s->sum = ns * count;
    s->hist[ebpfMonBucket(ns)] = (uint32_t)count;
    if (count)
        ebpfMonRecentAdd(&s->recent, at, ns, 0);
    return s;
}

/* Publishes, and copies what is published. */
static ebpfMonAsyncValues values;
static ebpfMonWatchRow watched;

static void publish(uint64_t now)
{
    const ebpfMonPublished *p;

    ebpfMonAsyncRankingsPublish(rankings, now);
    p = ebpfMonPublishedLock();
    values = p->asyncs;
    watched = p->watched.row[0];
    ebpfMonPublishedUnlock();
}

static int isRow(unsigned n, const char *name)
{
    return n < values.slowestCount && strcmp(values.slowest[n].name, name) == 0;
}

static double sumHist(void)
{
    double sum = 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        sum += values.hist[i];
    return sum;
}

static void testOrder(void)
{
    const ebpfMonAsyncRow *row = values.slowest;

    testDiag("the slowest first");
    publish(NOW);
    testOk(values.slowestCount == 0 && values.latencyMax == 0 && values.busyMax == 0 && !values.selectedFound,
           "nothing yet");
    addRecord(SLOT_A, 2 * MS, 10, NOW - 1);
    addRecord(SLOT_A + 1, 300 * MS, 4, NOW - 1)->timeouts = 1;
    addRecord(SLOT_B, 50 * MS, 1, NOW - 1);
    addRecord(SLOT_B + 1, 0, 0, 0);
    publish(NOW);
    testOk(values.slowestCount == 3 && isRow(0, "A:SLOW") && isRow(2, "A:FAST"),
           "by the mean time; a record that never completed is none");
    testOk(isRow(1, "BOTH@b"), "a name that two IOCs have tells the IOC");
    testOk(row->count == 4 && row->mean == 300 && row->max == 300 && row->timeouts == 1 && row->busy == 0,
           "%g ms in the mean", row->mean);
    testOk(row->p99 > 250 && row->p99 < 350, "99 %% within %g ms", row->p99);
    testOk(sumHist() == 15, "the histogram has all of them: %g", sumHist());
    testOk(values.selectedFound, "and there is something to see in it");
}

static void testBusy(void)
{
    struct ebpfMonAsyncStat *s = &record[3].stat; /* B:ONE */

    testDiag("records that are not complete");
    s->since = NOW - 2000 * MS;
    b->queuesSince = NOW - 3000 * MS;
    publish(NOW);
    testOk(isRow(0, "B:ONE") && values.slowest[0].busy == 2000 && values.slowest[0].count == 0 &&
               values.busyMax == 2000,
           "one that has not completed for 2 s comes before one with a mean of 0.3 s");
    b->queuesSince = NOW - 1000 * MS;
    publish(NOW);
    testOk(values.slowestCount == 3 && values.busyMax == 0,
           "if it began before the probes were set, it may have completed unseen");
    b->queuesSince = 0;
    b->level = ebpfMonLevelCounts;
    publish(NOW);
    testOk(values.busyMax == 0, "below level chains nobody sees that it completes");
    b->level = ebpfMonLevelTrace;
    s->since = NOW + MS;
    publish(NOW);
    testOk(values.busyMax == 0, "one that begins while it is read has no time yet");
    s->since = 0;
}

static void testRecent(void)
{
    uint64_t window = 1ull << EBPFMON_WINDOW_BITS;

    testDiag("the longest of the last seconds");
    publish(NOW);
    testOk(values.latencyMax == 300, "%g ms, in the window before", values.latencyMax);
    ebpfMonRecentAdd(&record[0].stat.recent, NOW, 400 * MS, 0);
    publish(NOW + 1);
    testOk(values.latencyMax == 400, "a longer one: %g ms", values.latencyMax);
    publish(NOW + window);
    testOk(values.latencyMax == 400, "in the next window it is still the longest");
    publish(NOW + 2 * window);
    testOk(values.latencyMax == 0 && values.slowest[0].max == 300,
           "after that it is forgotten, but not the maximum of its record");
}

static void testShown(void)
{
    ebpfMonPublished *p;

    testDiag("what is shown");
    a->how[1] = 0;
    publish(NOW);
    testOk(values.slowestCount == 2 && isRow(0, "BOTH@b") && sumHist() == 11,
           "a record that the filter leaves out is not in the lists");
    testOk(watched.asyncCount == 4 && watched.asyncMean == 300 && watched.asyncMax == 300,
           "but a watched record has its values");
    p = ebpfMonPublishedLock();
    snprintf(p->chains.selectedRoot, sizeof(p->chains.selectedRoot), "A:SLOW");
    ebpfMonPublishedUnlock();
    publish(NOW);
    testOk(sumHist() == 4 && values.selectedFound && values.slowestCount == 2,
           "the selected record has the histogram for itself");
    p = ebpfMonPublishedLock();
    snprintf(p->chains.selectedRoot, sizeof(p->chains.selectedRoot), "NOBODY");
    ebpfMonPublishedUnlock();
    publish(NOW);
    testOk(sumHist() == 0 && !values.selectedFound, "one that is not there has none");
    p = ebpfMonPublishedLock();
    p->chains.selectedRoot[0] = 0;
    ebpfMonPublishedUnlock();
    a->how[1] = EBPFMON_SHOWN;
    a->gone = 1;
    publish(NOW);
    testOk(values.slowestCount == 1 && isRow(0, "BOTH"),
           "an IOC that has ended has no rows, and a name that one IOC has needs no more");
    testOk(watched.asyncCount == 0 && isnan(watched.asyncMean), "nor has its watched record a value");
    a->gone = 0;
}

/* More records than there are rows. */
static void testMany(void)
{
    static char name[32][16];
    static const char *names[33];
    int isSorted = 1;

    testDiag("many records");
    records = 0;
    for (unsigned ioc = 0; ioc < 5; ioc++) {
        char text[8];

        for (unsigned i = 0; i < 32; i++) {
            snprintf(name[i], sizeof(name[i]), "C%u:%u", ioc, i);
            names[i] = name[i];
        }
        snprintf(text, sizeof(text), "c%u", ioc);
        targetTestNew(targets, text, (pid_t)(100 + ioc), 1000 + 100 * ioc, names);
        for (unsigned i = 0; i < 32; i++) /* 160 different means, in no order */
            addRecord(1000 + 100 * ioc + i, (1 + (32 * ioc + i) * 77 % 160) * MS, 1, NOW - 1);
    }
    publish(NOW);
    for (unsigned i = 0; i < values.slowestCount; i++)
        isSorted &= values.slowest[i].mean == 160 - i;
    testOk(values.slowestCount == EBPFMON_TOP_MAX && isSorted, "the %u slowest of %u, in order", values.slowestCount,
           records);
    testOk(sumHist() == 160, "the histogram has all");
}

/* A bucket of one record has 32 bits. That of all records together may have more. */
static void testLongSums(void)
{
    records = 0;
    addRecord(SLOT_A, 5 * MS, 3000000000u, NOW - 1);
    addRecord(SLOT_A + 1, 5 * MS, 3000000000u, NOW - 1);
    publish(NOW);
    testOk(sumHist() == 6e9, "billions of completions are in the histogram: %.0f", sumHist());
}

MAIN(testAsyncRankings)
{
    testPlan(7 + 4 + 4 + 6 + 2 + 1);
    targets = ebpfMonTargetsNew();
    a = targetTestNew(targets, "a", 1, SLOT_A, namesA);
    b = targetTestNew(targets, "b", 2, SLOT_B, namesB);
    rankings = ebpfMonAsyncRankingsNew(targets, eachAsync);
    if (!rankings)
        testAbort("no memory");
    ebpfMonPublishedAddWatch("A:SLOW");
    snprintf(ebpfMonPublishedLock()->watched.row[0].real, EBPFMON_NAME_SIZE, "A:SLOW");
    ebpfMonPublishedUnlock();
    testOrder();
    testBusy();
    testRecent();
    testShown();
    testMany();
    testLongSums();
    ebpfMonAsyncRankingsFree(rankings);
    return testDone();
}

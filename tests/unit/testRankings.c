/* SPDX-License-Identifier: BSD-3-Clause */
/* publish/rankings.h: counts and chains of invented IOCs, and the published lists. */
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

static const char *const namesA[] = { "A:FAST", "A:SLOW", "BOTH", NULL };
static const char *const namesB[] = { "BOTH", "B:ONE", NULL };
static ebpfMonTargets *targets;
static ebpfMonTarget *a, *b;
static ebpfMonRankings *rankings;
static uint64_t countsA[3], countsB[2];
static struct { uint32_t slot; struct ebpfMonRootStat stat; } roots[2 * EBPFMON_TOP_MAX];
static unsigned rootCount;

static void countRecords(const ebpfMonTarget *t, uint64_t *now)
{
    memcpy(now, t == a ? countsA : countsB, t->cat->count * sizeof(*now));
}

static void eachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg)
{
    for (unsigned i = 0; i < rootCount; i++)
        each(arg, roots[i].slot, &roots[i].stat);
}

static const ebpfMonRankingSources sources = { countRecords, eachRoot };

static void addRoot(uint32_t slot, uint64_t ns, uint64_t count)
{
    struct ebpfMonRootStat *s = &roots[rootCount].stat;

    roots[rootCount++].slot = slot;
    memset(s, 0, sizeof(*s));
    s->chains = s->count = count;
    s->sum = ns * count;
    s->max = s->last = ns;
    s->waitSum = 1000 * count;
    s->waitMax = 2000;
    s->hist[ebpfMonBucket(ns)] = (uint32_t)count;
}

static const ebpfMonWatchRow *watched(const ebpfMonPublished *published, const char *record)
{
    for (unsigned i = 0; i < published->watched.count; i++)
        if (strcmp(published->watched.row[i].record, record) == 0)
            return &published->watched.row[i];
    return NULL;
}

static void testRecords(void)
{
    const ebpfMonPublished *p;
    double rate;

    testDiag("busiest records");
    ebpfMonPublishedAddWatch("A:SLOW");
    ebpfMonPublishedAddWatch("NOT:THERE");
    countsA[0] = 100;
    countsA[1] = 10;
    countsA[2] = 1;
    countsB[0] = 50;
    ebpfMonRankingsPublishRecords(rankings, 1.0);
    p = ebpfMonPublishedLock();
    testOk1(p->processings.count == 161 && p->processings.rate == 80.5);
    testOk1(p->processings.busiestCount == 4 && strcmp(p->processings.busiest[0].name, "A:FAST") == 0 &&
            p->processings.busiest[0].count == 100 && p->processings.busiest[0].rate == 50);
    testOk(strcmp(p->processings.busiest[1].name, "BOTH@b") == 0 &&
               strcmp(p->processings.busiest[3].name, "BOTH@a") == 0,
           "two IOCs have it: %s, %s", p->processings.busiest[1].name, p->processings.busiest[3].name);
    testOk1(watched(p, "A:SLOW")->found && watched(p, "A:SLOW")->procCount == 10 &&
            watched(p, "A:SLOW")->procRate == 5);
    testOk1(!watched(p, "NOT:THERE")->found);
    testOk1(p->time[ebpfMonGroupProc].secPastEpoch && p->time[ebpfMonGroupWatch].secPastEpoch);
    ebpfMonPublishedUnlock();

    a->how[0] = 0; /* the filter leaves it out */
    a->how[1] = EBPFMON_SHOWN | EBPFMON_AT_LEAST;
    b->level = ebpfMonLevelPuts;
    countsA[0] = 1000;
    countsA[1] = 20;
    ebpfMonRankingsPublishRecords(rankings, 2.0);
    p = ebpfMonPublishedLock();
    testOk(p->processings.count == 171 && p->processings.busiestCount == 2,
           "a record that is not shown is not counted: %llu", (unsigned long long)p->processings.count);
    testOk1(strcmp(p->processings.busiest[0].name, "A:SLOW") == 0 && p->processings.busiest[0].atLeast &&
            watched(p, "A:SLOW")->atLeast);
    ebpfMonPublishedUnlock();
    a->gone = 1;
    for (int i = 0; i < 60; i++)
        ebpfMonRankingsPublishRecords(rankings, 1.0);
    p = ebpfMonPublishedLock();
    rate = p->processings.rate;
    testOk(p->processings.count == 171 && rate == 0 && !p->processings.busiestCount && !watched(p, "A:SLOW")->found,
           "it ended: the sum stays, the rate goes to 0 (%g)", rate);
    ebpfMonPublishedUnlock();
    a->gone = 0;
    a->how[0] = a->how[1] = EBPFMON_SHOWN;
    b->level = ebpfMonLevelTrace;
    ebpfMonRankingsPublishRecords(rankings, 1.0);
}

/* Names of records that two IOCs have. */
static void testNames(void)
{
    static const char longest[] = "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES";
    static const char *const names[] = { longest, "SHORT", NULL };
    ebpfMonTarget *one = targetTestNew(targets, "ring-vacuum-ioc-of-sector-1", 3, 300, names);
    ebpfMonTarget *two = targetTestNew(targets, "two", 4, 400, names);
    char name[EBPFMON_NAME_SIZE];

    testDiag("names that have no room");
    ebpfMonDisplayName(targets, one, 1, name, sizeof(name));
    testOk(strcmp(name, "SHORT@ring-vacuum-ioc-of-sector-1") == 0, "a long name of an IOC is whole: %s", name);
    ebpfMonDisplayName(targets, two, 0, name, sizeof(name));
    testOk(strcmp(name, "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME...@two") == 0,
           "a cut is marked: %s", name);
    ebpfMonDisplayName(targets, one, 0, name, sizeof(name));
    testOk(strcmp(name, "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-L...@ring-vacuum-ioc...") == 0,
           "both cuts are marked: %s", name);
    one->gone = two->gone = 1;
}

static double sumHist(const ebpfMonPublished *p)
{
    double sum = 0;

    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        sum += p->chains.hist[i];
    return sum;
}

/* A bucket of one root has 32 bits. That of all roots together has more than these after some weeks. */
static void testLongSums(void)
{
    const ebpfMonPublished *p;

    testDiag("billions of chains");
    rootCount = 0;
    ebpfMonPublishedSelectRoot("");
    addRoot(SLOT_A, 1000000, 3000000000u);
    addRoot(SLOT_A + 1, 1000000, 3000000000u);
    addRoot(SLOT_B, 50000000, 10000000);
    ebpfMonRankingsPublishChains(rankings);
    p = ebpfMonPublishedLock();
    testOk(sumHist(p) == 6010000000.0, "the histogram of all roots has all chains: %.0f", sumHist(p));
    testOk(p->chains.histP99 < 1200, "the quantile of all roots: %g us", p->chains.histP99);
    ebpfMonPublishedUnlock();
}

static void testChains(void)
{
    const ebpfMonPublished *p;
    unsigned inOrder = 1;

    testDiag("slowest chains");
    addRoot(SLOT_A, 1000000, 10);
    addRoot(SLOT_A + 1, 5000000, 2);
    addRoot(SLOT_B, 3000000, 1);
    addRoot(999, 9000000, 1); /* the slot of no IOC */
    ebpfMonRankingsPublishChains(rankings);
    p = ebpfMonPublishedLock();
    testOk1(p->chains.slowestCount == 3 && strcmp(p->chains.slowest[0].name, "A:SLOW") == 0 &&
            p->chains.slowest[0].mean == 5000 && p->chains.slowest[0].waitMean == 1 &&
            p->chains.slowest[0].waitMax == 2);
    testOk1(strcmp(p->chains.slowest[1].name, "BOTH@b") == 0 && strcmp(p->chains.slowest[1].root, "BOTH") == 0 &&
            strcmp(p->chains.slowest[1].ioc, "b") == 0 && p->chains.slowest[2].count == 10);
    testOk(sumHist(p) == 13 && p->chains.selectedFound, "the histogram of all roots has all chains: %g", sumHist(p));
    testOk1(watched(p, "A:SLOW")->chains == 2 && watched(p, "A:SLOW")->latMax == 5000 &&
            isnan(watched(p, "NOT:THERE")->latMean));
    ebpfMonPublishedUnlock();

    ebpfMonPublishedSelectRoot("A:FAST");
    ebpfMonRankingsPublishChains(rankings);
    p = ebpfMonPublishedLock();
    testOk(sumHist(p) == 10 && p->chains.selectedFound, "the histogram of one root has its chains: %g", sumHist(p));
    ebpfMonPublishedUnlock();
    ebpfMonPublishedSelectRoot("NOT:THERE");
    ebpfMonRankingsPublishChains(rankings);
    testOk1(!ebpfMonPublishedLock()->chains.selectedFound);
    ebpfMonPublishedUnlock();

    rootCount = 0;
    for (unsigned i = 0; i < 2 * EBPFMON_TOP_MAX; i++)
        addRoot(SLOT_A + i % 3, 1000000 + 1000 * ((i * 37) % (2 * EBPFMON_TOP_MAX)), 1);
    ebpfMonRankingsPublishChains(rankings);
    p = ebpfMonPublishedLock();
    for (unsigned i = 1; i < p->chains.slowestCount; i++)
        inOrder += p->chains.slowest[i].mean <= p->chains.slowest[i - 1].mean;
    testOk(p->chains.slowestCount == EBPFMON_TOP_MAX && inOrder == EBPFMON_TOP_MAX &&
           p->chains.slowest[0].mean == 1199 && p->chains.slowest[EBPFMON_TOP_MAX - 1].mean == 1100,
           "of too many chains the slowest are listed, in order");
    ebpfMonPublishedUnlock();
}

MAIN(testRankings)
{
    testPlan(0);
    targets = ebpfMonTargetsNew();
    a = targetTestNew(targets, "a", 1, SLOT_A, namesA);
    b = targetTestNew(targets, "b", 2, SLOT_B, namesB);
    rankings = ebpfMonRankingsNew(targets, &sources);
    testRecords();
    testChains();
    testLongSums();
    testNames();
    ebpfMonRankingsFree(rankings);
    return testDone();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/governor.h: what the counters of the kernel part say that watching took from an IOC. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "watch/followed.h"
#include "watch/governor.h"

#define SECOND EBPFMON_SECOND_NS

static const ebpfMonCosts costs = { .entryNs = 1000, .returnNs = 600, .steppedNs = 9000, .coldNs = 20000 };
static ebpfMonCatalogue cat;
static ebpfMonFilter filter;
static ebpfMonCostSpent spent;
static ebpfMonCostSample sample;
static ebpfMonFollowed followed;

/* An IOC at level chains whose passes are watched: this program. */
static ebpfMonTarget makeTarget(void)
{
    ebpfMonTarget t = { .cat = &cat, .pid = getpid(), .wantedLevel = ebpfMonLevelTrace, .level = ebpfMonLevelChains,
                        .followed = &followed };

    memset(&followed, 0, sizeof(followed));
    filter = ebpfMonFilterDefault;
    filter.budget = 0.7;
    ebpfMonBudgetInit(&t.followed->budget);
    return t;
}

static struct ebpfMonHits makeHits(uint64_t entry, uint64_t ret, uint64_t ns, uint64_t strange)
{
    struct ebpfMonHits hits;

    memset(&hits, 0, sizeof(hits));
    hits.n[EBPFMON_HIT_ENTRY] = entry;
    hits.n[EBPFMON_HIT_RETURN] = ret;
    hits.n[EBPFMON_HIT_NS] = ns;
    hits.n[EBPFMON_HIT_STRANGE] = strange;
    return hits;
}

static int take(ebpfMonTarget *t, struct ebpfMonHits hits, uint64_t now)
{
    memset(&sample, 0, sizeof(sample));
    return ebpfMonCostSampleTake(&costs, t, &filter, &hits, now, &spent, &sample);
}

/* Percent of one core in "seconds". */
static double costOf(struct ebpfMonHits hits, double stepped, double seconds)
{
    return ebpfMonCostOf(&costs, &hits, stepped) / 1e7 / seconds;
}

static int isNear(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void testFirst(void)
{
    ebpfMonTarget t = makeTarget();
    struct ebpfMonHits hits = makeHits(1000, 0, 0, 0);

    testDiag("when there is a sample");
    testOk(!take(&t, hits, 5 * SECOND), "none before the first look");
    testOk(take(&t, hits, 6 * SECOND) && sample.cost == 0 && spent.traps == 0, "no trap, no cost");
    ebpfMonCostSampleBegin(&t, &hits, 9 * SECOND);
    testOk(!take(&t, makeHits(2000, 0, 0, 0), 8 * SECOND) && spent.traps == 0,
           "none if the probes were attached after the look had begun");
    testOk(take(&t, makeHits(2000, 0, 0, 0), 10 * SECOND) && spent.traps == 1000,
           "... and these traps are in the next one");
}

static void testCost(void)
{
    ebpfMonTarget t = makeTarget();
    struct ebpfMonHits before = makeHits(100, 200, 300, 400);

    testDiag("the cost");
    ebpfMonCostSampleBegin(&t, &before, SECOND);
    testOk(take(&t, makeHits(4100, 1200, 2000300, 407), 3 * SECOND), "a sample of two seconds");
    testOk(sample.seconds == 2 && spent.traps == 2500 && spent.strange == 7, "%.0f traps a second, %d strange ones",
           spent.traps, (int)spent.strange);
    testOk(isNear(sample.cost, costOf(makeHits(4000, 1000, 2000000, 0), 0, 2)), "%.4f %% of a core", sample.cost);
    testOk(sample.cost > (4000 * 1000 + 1000 * 600 + 2000000) / 2e7, "it has what the caches cost, too");
    testOk(isNear(sample.limit, 0.7) && sample.level == ebpfMonLevelChains && sample.wantedLevel == ebpfMonLevelTrace,
           "limit and levels");
    t.followed->att.on = EBPFMON_BIT(ebpfMonProgLock) | EBPFMON_BIT(ebpfMonProgUnlock);
    t.followed->att.stepped = EBPFMON_BIT(ebpfMonProgUnlock);
    take(&t, makeHits(5100, 1200, 2000300, 407), 4 * SECOND);
    testOk(isNear(sample.cost, costOf(makeHits(1000, 0, 0, 0), 0.5, 1)) && !sample.trapOn,
           "one of two probes is single-stepped: %.4f %%", sample.cost);
    t.followed->att.on |= EBPFMON_BIT(ebpfMonProgCompleted);
    take(&t, makeHits(10, 1300, 2000300, 407), 5 * SECOND);
    testOk(spent.traps == 100 && sample.trapOn, "a counter that is smaller than before counts nothing");
}

static void testCold(void)
{
    ebpfMonTarget t = makeTarget();
    struct ebpfMonHits hits = makeHits(0, 0, 0, 0);
    double hot;

    testDiag("traps after a pause");
    ebpfMonCostSampleBegin(&t, &hits, SECOND);
    hits.n[EBPFMON_HIT_ENTRY] = 100;
    take(&t, hits, 2 * SECOND);
    hot = sample.cost;
    hits.n[EBPFMON_HIT_ENTRY] = 200;
    hits.n[EBPFMON_HIT_COLD] = 50 * EBPFMON_COLD_WHOLE;
    take(&t, hits, 3 * SECOND);
    testOk(isNear(sample.cost, hot + 50 * 20000 / 1e7) && isNear(spent.cold, 50),
           "50 of 100 found the CPU cold: %.3f %%, not %.3f", sample.cost, hot);
}

static void testLoad(void)
{
    ebpfMonTarget t = makeTarget();
    struct ebpfMonHits none = makeHits(0, 0, 0, 0);
    uint64_t cpu;

    testDiag("the load of the IOC");
    ebpfMonCostSampleBegin(&t, &none, SECOND);
    cpu = ebpfMonClockProcessCpu(getpid());
    while (ebpfMonClockProcessCpu(getpid()) < cpu + SECOND / 50)
        ;
    take(&t, none, 2 * SECOND);
    testOk(sample.load >= 1.9 && sample.load < 50, "20 ms in a second: %.1f %%", sample.load);
    take(&t, none, 2 * SECOND + SECOND / 1000);
    t.followed->cost.cpu = UINT64_MAX;
    take(&t, none, 3 * SECOND);
    testOk(sample.load == 0, "another process has this number now: no load");
}

static void testTurns(void)
{
    ebpfMonTarget t = makeTarget();
    struct ebpfMonHits none = makeHits(0, 0, 0, 0);

    testDiag("the turns in which chains are timed");
    ebpfMonCostSampleBegin(&t, &none, SECOND);
    take(&t, none, 2 * SECOND);
    testOk(sample.timed == 0 && sample.inTurns == 0, "chains are watched one by one: no turns");
    t.sweeps = 1;
    take(&t, none, 3 * SECOND);
    testOk(sample.timed > 0 && sample.inTurns == 0, "before the first turn: %.0f %% asked for", sample.timed);
    t.followed->timing.turns.lookedAt = 3 * SECOND;
    t.followed->timing.turns.timedEver = 1;
    take(&t, none, 4 * SECOND);
    testOk(sample.wasTimed == 0, "a sample that was in part before the turns says nothing of them");
    t.followed->timing.turns.timedEver += 0.25;
    take(&t, none, 5 * SECOND);
    testOk(isNear(sample.wasTimed, 0.25), "a quarter of the time: %.2f", sample.wasTimed);
    t.followed->timing.turns.timedEver += 3;
    take(&t, none, 6 * SECOND);
    testOk(sample.wasTimed == 1, "not more than all of it");
    t.level = ebpfMonLevelCounts;
    take(&t, none, 7 * SECOND);
    testOk(sample.timed == 0 && sample.wasTimed == 0, "no turns at level counts");
}

MAIN(testCostSample)
{
    testPlan(4 + 7 + 1 + 2 + 6);
    testFirst();
    testCost();
    testCold();
    testLoad();
    testTurns();
    return testDone();
}

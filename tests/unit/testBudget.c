/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/budget.h: decides on a level from samples of the cost, one for each second. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/budget.h"

#define LIMIT  1.0
#define SECOND 1000000000ull

/* An IOC that is watched as closely as its budget allows, and its costs at each level. */
typedef struct {
    ebpfMonBudget budget;
    uint64_t now;
    double   limit;
    ebpfMonLevel wantedLevel;
    int      wantsTrap;
    double   trapCost, levelCost[ebpfMonLevelCount];
    double   timed, timedCost; /* timed: FILTER_TIMED in percent of the time, 0: chains cannot be timed in turns;
                                * timedCost: cost if all chains are timed */
    double   load;       /* what the IOC takes itself */
    ebpfMonLevel ceiling; /* these three as they were when the budget last said that something changed */
    int      noTrap;
    double   allowed;
} ioc;

static void begin(ioc *x, ebpfMonLevel asked)
{
    *x = (ioc){ .now = 1000 * SECOND, .limit = LIMIT, .wantedLevel = asked, .ceiling = ebpfMonLevelTrace,
                .allowed = 100 };
    ebpfMonBudgetInit(&x->budget);
}

static ebpfMonLevel levelNow(const ioc *x)
{
    return x->wantedLevel < x->ceiling ? x->wantedLevel : x->ceiling;
}

static int trapNow(const ioc *x)
{
    return x->wantsTrap && !x->noTrap && levelNow(x) >= ebpfMonLevelCounts;
}

/* Percent of the time in which chains are timed. */
static double timedNow(const ioc *x)
{
    return levelNow(x) != ebpfMonLevelChains ? 0 : x->timed < x->allowed ? x->timed : x->allowed;
}

/* As the governor: if other probes are attached after that, the mean begins anew. */
static int addSecond(ioc *x)
{
    ebpfMonLevel level = levelNow(x);
    int trap = trapNow(x), changed;
    ebpfMonCostSample s = {
        .now = x->now += SECOND, .seconds = 1, .limit = x->limit, .wantedLevel = x->wantedLevel, .level = levelNow(x),
        .trapOn = trapNow(x), .timed = timedNow(x), .load = x->load,
        .cost = x->levelCost[levelNow(x)] + (trapNow(x) ? x->trapCost : 0) + x->timedCost * timedNow(x) / 100,
    };

    changed = ebpfMonBudgetAddSample(&x->budget, &s);
    if (changed) {
        x->ceiling = x->budget.ceiling;
        x->noTrap = x->budget.noTrap;
        x->allowed = x->budget.timed;
    }
    if (levelNow(x) != level || trapNow(x) != trap)
        ebpfMonBudgetBeginMean(&x->budget);
    return changed;
}

/* Seconds until the decision changes; -1 if this takes more than "most". */
static int untilChange(ioc *x, int most)
{
    for (int i = 1; i <= most; i++)
        if (addSecond(x))
            return i;
    return -1;
}

static void testBelow(void)
{
    ioc x;

    begin(&x, ebpfMonLevelTrace);
    x.levelCost[ebpfMonLevelTrace] = 0.99 * LIMIT;
    testOk(untilChange(&x, 1000) == -1, "below the limit nothing changes");
    testOk(x.budget.cost > 0.98 * LIMIT && x.budget.cost < LIMIT, "the cost is that of the samples: %g", x.budget.cost);
}

static void testMean(void)
{
    ioc x;

    begin(&x, ebpfMonLevelCounts);
    x.levelCost[ebpfMonLevelCounts] = 0.4;
    addSecond(&x);
    testOk(x.budget.cost > 0.39 && x.budget.cost < 0.41, "the first sample is the cost: %g", x.budget.cost);
    x.levelCost[ebpfMonLevelCounts] = 0.6;
    addSecond(&x);
    testOk(x.budget.cost > 0.49 && x.budget.cost < 0.51, "the second sample counts half: %g", x.budget.cost);
    for (int i = 0; i < 10; i++)
        addSecond(&x);
    ebpfMonBudgetBeginMean(&x.budget);
    x.levelCost[ebpfMonLevelCounts] = 0.1;
    addSecond(&x);
    testOk(x.budget.cost > 0.09 && x.budget.cost < 0.11, "after a change of probes the new cost is taken at once: %g",
           x.budget.cost);
}

static void testPeak(void)
{
    ioc x;

    begin(&x, ebpfMonLevelChains);
    x.levelCost[ebpfMonLevelChains] = 1.5 * LIMIT;
    testOk(untilChange(&x, 6) == -1, "a few seconds above the limit change nothing");
    x.levelCost[ebpfMonLevelChains] = 0;
    for (int i = 0; i < 5; i++)
        addSecond(&x);
    x.levelCost[ebpfMonLevelChains] = 1.5 * LIMIT;
    testOk(untilChange(&x, 6) == -1, "these seconds are not added to later ones");
    x.levelCost[ebpfMonLevelChains] = 0;
    for (int i = 0; i < 20; i++)
        addSecond(&x);
    x.levelCost[ebpfMonLevelChains] = 6 * LIMIT;
    addSecond(&x);
    addSecond(&x);
    x.levelCost[ebpfMonLevelChains] = 0;
    testOk(untilChange(&x, 100) == -1, "nor are those in which only the mean is above the limit");
}

static void testSteps(void)
{
    ioc x;
    int seconds;

    begin(&x, ebpfMonLevelTrace);
    x.wantsTrap = 1;
    x.trapCost = 0.005 * LIMIT;
    x.levelCost[ebpfMonLevelTrace] = x.levelCost[ebpfMonLevelChains] = x.levelCost[ebpfMonLevelCounts] =
        x.levelCost[ebpfMonLevelPuts] = 1.01 * LIMIT;
    seconds = untilChange(&x, 100);
    testOk(seconds == 10 && x.budget.noTrap && x.budget.ceiling == ebpfMonLevelTrace,
           "the trap on recGblFwdLink is removed first, after %d s", seconds);
    testOk1(untilChange(&x, 100) == 10 && x.budget.ceiling == ebpfMonLevelChains);
    testOk1(untilChange(&x, 100) == 10 && x.budget.ceiling == ebpfMonLevelCounts);
    testOk1(untilChange(&x, 100) == 10 && x.budget.ceiling == ebpfMonLevelPuts);
    testOk(untilChange(&x, 10000) == -1 && x.budget.ceiling == ebpfMonLevelPuts,
           "the level is never lowered below puts");

    begin(&x, ebpfMonLevelTrace);
    x.levelCost[ebpfMonLevelTrace] = 50 * LIMIT;
    testOk1(untilChange(&x, 100) == 3 && x.budget.ceiling == ebpfMonLevelChains);
    x.levelCost[ebpfMonLevelChains] = 2 * LIMIT;
    testOk(untilChange(&x, 100) == 5 && x.budget.ceiling == ebpfMonLevelCounts, "the more it costs, the sooner");
}

/* Before the level is lowered, chains are timed in less of the time. */
static void testTimed(void)
{
    unsigned wrong = 0;
    ioc x;

    begin(&x, ebpfMonLevelChains);
    x.timed = 100;
    x.timedCost = 3 * LIMIT;
    x.levelCost[ebpfMonLevelChains] = 0.2 * LIMIT;
    testOk(untilChange(&x, 100) > 0 && x.budget.timed < 30 && x.budget.ceiling == ebpfMonLevelTrace,
           "chains are timed in %g %% of the time", x.budget.timed);
    untilChange(&x, 100); /* the average cost had not yet reached its final value */
    testOk(untilChange(&x, 3600) == -1 && x.budget.timed > 10,
           "%g %% is enough; no more is tried for an hour, as the cost is above half of the limit", x.budget.timed);

    begin(&x, ebpfMonLevelChains);
    x.timed = 5;
    x.timedCost = 3 * LIMIT;
    x.levelCost[ebpfMonLevelChains] = 2 * LIMIT;
    testOk(untilChange(&x, 100) > 0 && x.budget.timed > 0 && x.budget.timed < 5,
           "chains are timed in %g %% of the time", x.budget.timed);
    for (int i = 0; i < 10 && x.budget.timed > 0; i++)
        untilChange(&x, 100);
    testOk1(x.budget.timed <= 0 && x.budget.ceiling == ebpfMonLevelTrace);
    testOk(untilChange(&x, 100) == 5 && x.budget.ceiling == ebpfMonLevelCounts,
           "if chains that are not timed still cost too much, the level is lowered");
    x.levelCost[ebpfMonLevelChains] = 0;
    testOk(untilChange(&x, 5000) > 0 && levelNow(&x) == ebpfMonLevelChains && x.budget.timed <= 0,
           "first the level goes up again");
    for (int i = 0; i < 20 && x.budget.timed < 100; i++) {
        double before = x.budget.timed;

        wrong += untilChange(&x, 5000) <= 0 || (before > 0 && x.budget.timed > 4.01 * before);
    }
    testOk(!wrong && x.budget.timed >= 100, "then the other steps are taken back, one by one");
    ebpfMonBudgetReset(&x.budget);
    testOk1(x.budget.timed >= 100);
}

/* One turn in ten seconds: the average cost does not follow each turn, and is right after some turns. */
static void testTurns(void)
{
    double least = 1e9, most = 0;
    ebpfMonBudget b;

    ebpfMonBudgetInit(&b);
    for (int i = 0; i < 600; i++) {
        double part = i % 10 == 3 ? 0.3 : i % 10 == 4 ? 0.2 : 0; /* half a second: 5 % of the time */
        ebpfMonCostSample s = { .now = (uint64_t)(i + 1) * SECOND, .seconds = 1, .wantedLevel = ebpfMonLevelChains,
                                .level = ebpfMonLevelChains, .timed = 5, .inTurns = 5, .wasTimed = part,
                                .cost = 0.2 + 2 * part };

        ebpfMonBudgetAddSample(&b, &s);
        least = i > 10 && b.cost < least ? b.cost : least;
        most = i > 10 && b.cost > most ? b.cost : most;
    }
    testOk(least > 0.29 && most < 0.31, "the cost is 0.2 %%, and 2 %% more in 5 %% of the time: %.3f to %.3f", least,
           most);
    for (int i = 0; i < 20; i++) { /* after a slow pass */
        ebpfMonCostSample s = { .now = 1000 * SECOND, .seconds = 1, .level = ebpfMonLevelChains, .inTurns = 100,
                                .wasTimed = 1, .cost = 2.2 };

        ebpfMonBudgetAddSample(&b, &s);
        least = i ? least : b.cost;
    }
    testOk(least > 2.1 && b.cost < 2.3, "all chains are timed: the whole cost is taken at once: %.3f, %.3f", least,
           b.cost);
    for (int i = 0; i < 30; i++) {
        ebpfMonCostSample s = { .now = 1000 * SECOND, .seconds = 1, .level = ebpfMonLevelCounts, .cost = 0.2 };

        ebpfMonBudgetAddSample(&b, &s);
    }
    testOk(b.cost > 0.19 && b.cost < 0.22, "after a change of the level its cost is taken: %.3f", b.cost);
}

/* The cost is above the limit at level chains, and low at level counts. The budget steps down, tries again, and
 * waits twice as long each time. */
static void testRetry(void)
{
    static const int expected[] = { 60, 120, 240, 480, 960, 1920, 3600, 3600 };
    unsigned wrong = 0;
    ioc x;

    begin(&x, ebpfMonLevelChains);
    x.levelCost[ebpfMonLevelChains] = 3 * LIMIT;
    x.levelCost[ebpfMonLevelCounts] = 0.1 * LIMIT;
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        int down = untilChange(&x, 100), up;

        wrong += x.budget.ceiling != ebpfMonLevelCounts || down < 4 || down > 15;
        up = untilChange(&x, 10000);
        wrong += x.budget.ceiling != ebpfMonLevelChains || up != expected[i];
        if (up != expected[i])
            testDiag("step up after %d s, expected %d", up, expected[i]);
    }
    testOk(wrong == 0, "a step up after 60 s, then after twice as long, at most an hour");
    ebpfMonBudgetReset(&x.budget);
    testOk(untilChange(&x, 100) > 0 && untilChange(&x, 10000) == 60,
           "a new filter of the operator starts all of this again");
}

/* The load of the IOC jumps up and down. Steps down that answer a new load are no failures. */
static void testJumps(void)
{
    unsigned wrong = 0;
    ioc x;

    begin(&x, ebpfMonLevelChains);
    x.levelCost[ebpfMonLevelCounts] = 0.1 * LIMIT;
    for (unsigned i = 0; i < 5; i++) {
        int up;

        x.levelCost[ebpfMonLevelChains] = 3 * LIMIT;
        wrong += untilChange(&x, 100) <= 0 || x.budget.ceiling != ebpfMonLevelCounts;
        x.levelCost[ebpfMonLevelChains] = 0.1 * LIMIT;
        up = untilChange(&x, 1000);
        wrong += up != 60;
        if (up != 60)
            testDiag("step up after %d s", up);
        wrong += untilChange(&x, 100) > 0;
    }
    testOk(wrong == 0, "after each jump the first step up comes after a minute");
}

/* After failures the next trial is far away. If the load falls, it comes soon, once. */
static void testLessLoad(void)
{
    ioc x;

    begin(&x, ebpfMonLevelChains);
    x.levelCost[ebpfMonLevelChains] = 3 * LIMIT;
    x.load = 40;
    for (unsigned i = 0; i < 5; i++) {
        untilChange(&x, 100);
        if (i < 4)
            untilChange(&x, 10000);
    }
    testOk(untilChange(&x, 500) == -1, "after five steps down: no trial for a long time");
    x.load = 30;
    testOk(untilChange(&x, 100) == -1, "a load that is a little lower changes nothing");
    x.load = 4;
    x.levelCost[ebpfMonLevelChains] = 0.3 * LIMIT;
    testOk1(untilChange(&x, 100) == 70 && x.budget.ceiling == ebpfMonLevelChains);
    testOk1(untilChange(&x, 10000) == -1);
}

/* The load comes and goes all the time. Steps up that fail become rare. */
static void testPeriodic(void)
{
    unsigned changes = 0;
    ioc x;

    begin(&x, ebpfMonLevelChains);
    for (unsigned i = 0; i < 4 * 3600; i++) {
        int busy = i % 60 < 30;

        x.load = busy ? 40 : 2;
        x.levelCost[ebpfMonLevelChains] = busy ? 6 * LIMIT : 0.01 * LIMIT;
        changes += (unsigned)addSecond(&x);
    }
    testOk(changes <= 20, "a load that comes and goes each minute: %u changes in four hours", changes);
}

/* While the first turn lasts, only the cost of timed chains is known. It is no reason to time fewer. */
static void testFirstTurn(void)
{
    ebpfMonBudget b;
    unsigned changes = 0;

    ebpfMonBudgetInit(&b);
    for (int i = 0; i < 100; i++) {
        double part = i % 10 < 2 ? 1 : i % 10 == 2 ? 0.05 : 0;
        ebpfMonCostSample s = { .now = (uint64_t)(i + 1) * SECOND, .seconds = 1, .limit = LIMIT,
                                .wantedLevel = ebpfMonLevelChains, .level = ebpfMonLevelChains, .timed = 20,
                                .inTurns = 20, .wasTimed = part, .cost = 0.1 * LIMIT + 3.5 * LIMIT * part };

        changes += (unsigned)ebpfMonBudgetAddSample(&b, &s);
    }
    testOk(!changes && b.cost < LIMIT, "two seconds in ten cost much, %.2f %% in the mean: nothing changes", b.cost);
}

/* Level chains has cost too much, and counts costs so much. */
static void beginBurst(ioc *x, double counts)
{
    begin(x, ebpfMonLevelChains);
    x->levelCost[ebpfMonLevelChains] = 3 * LIMIT;
    x->levelCost[ebpfMonLevelCounts] = counts;
    untilChange(x, 100);
}

static void testNotEnough(void)
{
    ioc x;

    beginBurst(&x, 0.6 * LIMIT);
    testOk(untilChange(&x, 3600) == -1 && x.budget.ceiling == ebpfMonLevelCounts,
           "no step up for an hour while the cost is above half the limit");
    x.levelCost[ebpfMonLevelCounts] = 0.4 * LIMIT;
    testOk1(untilChange(&x, 100) > 0 && x.budget.ceiling == ebpfMonLevelChains);
}

/* One burst, and then a load whose next level is within the limit, but which is itself above half of it. */
static void testAfterBurst(void)
{
    ioc x;

    beginBurst(&x, 0.6 * LIMIT);
    x.levelCost[ebpfMonLevelChains] = 0.7 * LIMIT;
    testOk(untilChange(&x, 4000) > 3600 && x.budget.ceiling == ebpfMonLevelChains,
           "a burst does not keep the level down for ever");
    testOk1(untilChange(&x, 10000) == -1);

    beginBurst(&x, 0.9 * LIMIT);
    testOk(untilChange(&x, 100000) == -1, "what is close to the limit gets no step up");
}

/* All chains are timed for a while after a slow pass. This is too dear, but the turns of other times are not. */
static void testSlowPass(void)
{
    ebpfMonBudget b;
    int changed = 0;

    ebpfMonBudgetInit(&b);
    for (int i = 0; i < 100 && !changed; i++) {
        int isSlow = i >= 20;
        ebpfMonCostSample s = { .now = (uint64_t)(i + 1) * SECOND, .seconds = 1, .wantedLevel = ebpfMonLevelChains,
                                .level = ebpfMonLevelChains, .limit = LIMIT, .timed = 5, .inTurns = isSlow ? 100 : 5,
                                .wasTimed = isSlow ? 1 : 0, .cost = isSlow ? 1.5 * LIMIT : 0.5 * LIMIT };

        changed = ebpfMonBudgetAddSample(&b, &s);
    }
    testOk(changed && b.timed > 50 && b.timed < 60, "slow passes are not followed any more; turns may take %g %%",
           b.timed);
}

static void testTrapBack(void)
{
    ioc x;

    begin(&x, ebpfMonLevelCounts);
    x.wantsTrap = 1;
    x.trapCost = 6 * LIMIT;
    testOk1(untilChange(&x, 100) == 3 && x.budget.noTrap);
    x.trapCost = 0;
    testOk1(untilChange(&x, 100) == 60 && !x.budget.noTrap && x.budget.ceiling == ebpfMonLevelTrace);
}

static void testNoLimit(void)
{
    ioc x;

    begin(&x, ebpfMonLevelChains);
    x.levelCost[ebpfMonLevelChains] = 3 * LIMIT;
    untilChange(&x, 100);
    x.limit = 0;
    testOk(addSecond(&x) && x.budget.ceiling == ebpfMonLevelTrace && !x.budget.noTrap,
           "without a limit everything is allowed at once");
    testOk1(untilChange(&x, 1000) == -1);
}

MAIN(testBudget)
{
    testPlan(45);
    testBelow();
    testMean();
    testPeak();
    testSteps();
    testTimed();
    testTurns();
    testRetry();
    testJumps();
    testLessLoad();
    testPeriodic();
    testFirstTurn();
    testNotEnough();
    testAfterBurst();
    testSlowPass();
    testTrapBack();
    testNoLimit();
    return testDone();
}

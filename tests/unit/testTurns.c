/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/turns.h: when chains are timed. */
#include <math.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/turns.h"

#define SECOND 1000000000ull
#define START  (1000 * SECOND)

/* Advances the time by the waits that the turns return. Returns the percentage of the time in which a turn was open. */
static double run(ebpfMonTurns *turns, uint64_t *now, double seconds, double percent, uint64_t slow, unsigned *changes)
{
    uint64_t begin = *now, open = 0;

    *changes = 0;
    while (*now - begin < (uint64_t)(seconds * 1e9)) {
        uint64_t wait;

        *changes += !!ebpfMonTurnsLook(turns, *now, percent, slow);
        wait = (uint64_t)(ebpfMonTurnsWait(turns, *now) * 1e9) + 1000;
        if (turns->isOpen)
            open += wait;
        *now += wait;
    }
    return 100.0 * (double)open / (double)(*now - begin);
}

static void testShares(void)
{
    static const double percents[] = { 1, 10, 50, 99 };

    for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        uint64_t now = START;
        ebpfMonTurns turns;
        unsigned changes;
        double open;

        ebpfMonTurnsBegin(&turns, now, 77);
        open = run(&turns, &now, 2000, percents[i], 0, &changes);
        testOk(fabs(open - percents[i]) < 1, "turns are open in %g %% of the time: %.2f %%", percents[i], open);
        testOk(percents[i] > 1 ? changes > 300 && changes < 500 : changes > 120 && changes < 200,
               "… and one turn in ten seconds, or of a quarter of a second: %u changes", changes);
        testOk(fabs(ebpfMonTurnsShare(&turns) - percents[i]) < 6, "… and the rate says so: %.2f",
               ebpfMonTurnsShare(&turns));
    }
}

static void testFirst(void)
{
    ebpfMonTurns turns;

    ebpfMonTurnsBegin(&turns, START, 1);
    testOk(ebpfMonTurnsLook(&turns, START, 10, 0) && turns.isOpen, "the first turn begins at once");
    ebpfMonTurnsBegin(&turns, START, 1);
    testOk(!ebpfMonTurnsLook(&turns, START, 0, 0) && !turns.isOpen, "with 0 %% there is no turn");
}

/* With any period, a scan list is not always at the same place of a turn. */
static void testRandom(void)
{
    unsigned in = 0, changes;
    uint64_t now = START;
    ebpfMonTurns turns;

    ebpfMonTurnsBegin(&turns, now, 5);
    for (unsigned i = 0; i < 1000; i++) { /* at each multiple of ten seconds */
        uint64_t at = START + (i + 1) * 10 * SECOND;

        if (at > now)
            run(&turns, &now, (double)(at - now) / 1e9, 10, 0, &changes);
        in += !!turns.isOpen;
    }
    testOk(in > 50 && in < 200, "a list that is scanned every ten seconds: %u of 1000 passes in a turn", in);
}

static void testDemand(void)
{
    uint64_t now = START;
    ebpfMonTurns turns;
    unsigned changes;
    double open;

    ebpfMonTurnsBegin(&turns, now, 5);
    run(&turns, &now, 100, 0, 0, &changes);
    testOk1(!turns.isOpen && changes == 0);
    open = run(&turns, &now, 20, 0, 1, &changes);
    testOk(open > 99, "after a slow pass all passes are timed for 20 s: %.1f %%", open);
    open = run(&turns, &now, 20, 0, 1, &changes);
    testOk(open < 1, "… and no longer: %.1f %%", open);
    open = run(&turns, &now, 40, 0, 2, &changes);
    testOk(open > 99, "after another slow pass they are timed for 40 s: %.1f %%", open);
    run(&turns, &now, 1, 0, 3, &changes);
    testOk1(turns.isOpen);
    open = run(&turns, &now, 20, 0, EBPFMON_TURNS_NO_DEMAND, &changes);
    testOk(open < 1, "over the budget no pass is timed: %.1f %%", open);
    for (unsigned i = 4; i < 12; i++)
        run(&turns, &now, 1, 0, i, &changes);
    testOk1(turns.demandUntil - now < 641 * SECOND);
    open = run(&turns, &now, 641, 0, 11, &changes);
    open = run(&turns, &now, 7000, 0, 11, &changes);
    testOk(open < 1, "later no pass is timed any more: %.1f %%", open);
    open = run(&turns, &now, 40, 0, 12, &changes);
    testOk(open > 45 && open < 55, "after a long time a slow pass is like the first: %.1f %%", open);
}

MAIN(testTurns)
{
    testPlan(24);
    testShares();
    testFirst();
    testRandom();
    testDemand();
    return testDone();
}

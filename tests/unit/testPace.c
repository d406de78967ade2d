/* SPDX-License-Identifier: BSD-3-Clause */
/* The time until a reader looks again. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/pace.h"

#define US 1000ull

static uint64_t look(ebpfMonPace *pace, int found, uint64_t us)
{
    return ebpfMonPaceNext(pace, found ? ebpfMonPaceMore : ebpfMonPaceNothing, us * US) / US;
}

/* A look that finds an event and all that belongs to it. */
static uint64_t lookWhole(ebpfMonPace *pace, uint64_t us)
{
    return ebpfMonPaceNext(pace, ebpfMonPaceWhole, us * US) / US;
}

static void testOneEvent(void)
{
    ebpfMonPace pace = { 0 };

    testDiag("One event after a time without events");
    testOk(look(&pace, 0, 500) == 0, "woken without an event: it goes on sleeping");
    testOk(look(&pace, 1, 1000) == 125, "after an event the next look is after 0.125 ms");
    testOk(look(&pace, 0, 1125) == 0, "after one look without an event it sleeps");
    testOk(look(&pace, 1, 3500) == 125 && look(&pace, 0, 3625) == 0, "the next event, 2.5 ms later, begins this again");
}

static void testWholeEvents(void)
{
    ebpfMonPace pace = { 0 };

    testDiag("Events that are found with all that belongs to them");
    testOk(lookWhole(&pace, 1000) == 0, "after the first one it sleeps at once");
    testOk(lookWhole(&pace, 3500) == 0, "and after another one, 2.5 ms later");
    testOk(lookWhole(&pace, 4500) == 125 && look(&pace, 0, 4625) == 250, "woken soon again, it goes on looking");
    testOk(lookWhole(&pace, 4875) == 500 && look(&pace, 0, 5375) == 1000, "and finds the next one without being woken");

    pace = (ebpfMonPace){ 0 };
    testOk(look(&pace, 1, 1000) == 125 && lookWhole(&pace, 1125) == 250, "what belongs to the first one came later");
}

static void testTwoEvents(void)
{
    ebpfMonPace pace = { 0 };

    testDiag("An event, and another one soon after it");
    testOk(look(&pace, 1, 1000) == 125, "the first one");
    testOk(look(&pace, 1, 1125) == 250, "a look finds the second one: the next look is after 0.25 ms");
    testOk(look(&pace, 0, 1375) == 500 && look(&pace, 0, 1875) == 1000 && look(&pace, 0, 2875) == 2000,
           "… 0.5, 1, 2 ms");
    testOk(look(&pace, 0, 4875) == 0, "after four looks without an event it sleeps");
    testOk(look(&pace, 1, 9000) == 125 && look(&pace, 0, 9125) == 0, "and all begins again");
}

static void testSteady(void)
{
    ebpfMonPace pace = { 0 };

    testDiag("An event each millisecond");
    testOk(look(&pace, 1, 1000) == 125 && look(&pace, 0, 1125) == 0, "after the first one it sleeps");
    testOk(look(&pace, 1, 2000) == 125 && look(&pace, 0, 2125) == 250 && look(&pace, 0, 2375) == 500,
           "it was woken soon again: it goes on looking");
    testOk(look(&pace, 0, 2875) == 1000 && look(&pace, 1, 3875) == 2000 && look(&pace, 1, 5875) == 2000,
           "and finds the others without being woken");
}

static void testFlood(void)
{
    uint64_t sum = 0, wait = 0;
    ebpfMonPace pace = { 0 };
    int looks;

    testDiag("Many events");
    for (looks = 0; sum < 1000000; looks++) {
        wait = look(&pace, 1, sum + 1);
        sum += wait;
    }
    testOk(wait == 2000 && looks < 510, "each look finds an event: %d looks in a second", looks);
    for (int i = 0; i < 3; i++)
        testOk(look(&pace, 0, sum) == 2000, "look %d finds no event", i + 1);
    testOk(look(&pace, 1, sum) == 2000, "one more event: looks without an event are counted from 0");
    for (int i = 0; i < 3; i++)
        testOk1(look(&pace, 0, sum) == 2000);
    testOk(look(&pace, 0, sum) == 0, "it sleeps");
}

MAIN(testPace)
{
    testPlan(26);
    testOneEvent();
    testWholeEvents();
    testTwoEvents();
    testSteady();
    testFlood();
    return testDone();
}

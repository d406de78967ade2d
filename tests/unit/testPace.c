/* SPDX-License-Identifier: BSD-3-Clause */
/* The time until a reader looks again. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/pace.h"

#define US 1000ull

static void testOneEvent(void)
{
    ebpfMonPace pace = { 0 };

    testDiag("One event after a time without events");
    testOk(ebpfMonPaceNext(&pace, 0) == 0, "woken without an event: it goes on sleeping");
    testOk(ebpfMonPaceNext(&pace, 1) == 250 * US, "after an event the next look is after 0.25 ms");
    testOk(ebpfMonPaceNext(&pace, 0) == 0, "after one look without an event it sleeps");
    testOk(ebpfMonPaceNext(&pace, 1) == 250 * US, "the next event begins this again");
}

static void testTwoEvents(void)
{
    ebpfMonPace pace = { 0 };

    testDiag("An event, and another one soon after it");
    testOk(ebpfMonPaceNext(&pace, 1) == 250 * US, "the first one");
    testOk(ebpfMonPaceNext(&pace, 1) == 500 * US, "the next look is after 0.5 ms");
    testOk(ebpfMonPaceNext(&pace, 0) == 1000 * US, "… then after 1 ms");
    testOk(ebpfMonPaceNext(&pace, 0) == 0, "after two looks without an event it sleeps");
    testOk(ebpfMonPaceNext(&pace, 1) == 250 * US && ebpfMonPaceNext(&pace, 0) == 0, "and all begins again");
}

static void testFlood(void)
{
    uint64_t sum = 0, wait = 0;
    ebpfMonPace pace = { 0 };
    int looks;

    testDiag("Many events");
    for (looks = 0; sum < 1000000 * US; looks++) {
        wait = ebpfMonPaceNext(&pace, 1);
        sum += wait;
    }
    testOk(wait == 2000 * US && looks < 510, "each look finds an event: %d looks in a second", looks);
    testOk(ebpfMonPaceNext(&pace, 0) == 2000 * US, "a look finds no event");
    testOk(ebpfMonPaceNext(&pace, 1) == 2000 * US, "one more event: looks without an event are counted from 0");
    testOk1(ebpfMonPaceNext(&pace, 0) == 2000 * US);
    testOk(ebpfMonPaceNext(&pace, 0) == 0, "it sleeps");
}

MAIN(testPace)
{
    testPlan(14);
    testOneEvent();
    testTwoEvents();
    testFlood();
    return testDone();
}

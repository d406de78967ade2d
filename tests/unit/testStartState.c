/* SPDX-License-Identifier: BSD-3-Clause */
/* model/startState.h: whether the monitor runs, asked by several threads. */
#include <string.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/startState.h"

#define THREADS 8
#define ROUNDS  200
#define PAUSE   1e-4 /* s. Base gives threads of root a real-time priority: without a pause, those that wait leave no
                      * CPU to the one that they wait for, nor to other programs */

static ebpfMonStartState own, *state = &own;

static void testStarts(void)
{
    char why[80] = "";
    unsigned count = 99;

    testDiag("a start that fails, and one that does not");
    testOk(!ebpfMonStartStateIsRunning(state) && ebpfMonStartStateGetStatus(state) == ebpfMonOpNotStarted,
           "it does not run at first");
    testOk(!ebpfMonStartStateRefuses(state, why, sizeof(why)) && !why[0], "it can be configured");
    testOk(!ebpfMonStartStateCountFilter(state, &count) && count == 0,
           "a filter waits for the start, and is not counted");
    testOk(!ebpfMonStartStateStop(state), "there is nothing to stop");

    testOk1(ebpfMonStartStateBegin(state) == ebpfMonStartMine);
    testOk(ebpfMonStartStateBegin(state) == ebpfMonStartBusy, "one start at a time");
    testOk(!ebpfMonStartStateIsRunning(state) && ebpfMonStartStateGetStatus(state) == ebpfMonOpNotStarted,
           "it does not run while it is started");
    testOk(ebpfMonStartStateRefuses(state, why, sizeof(why)) &&
               strcmp(why, "already started; call it before iocInit") == 0,
           "while it is started it cannot be configured: %s", why);
    ebpfMonStartStateEnd(state, 0);
    testOk(!ebpfMonStartStateIsRunning(state) && ebpfMonStartStateGetStatus(state) == ebpfMonOpStartFailed,
           "the start failed");
    testOk(!ebpfMonStartStateRefuses(state, why, sizeof(why)), "it can be configured again");

    testOk(ebpfMonStartStateBegin(state) == ebpfMonStartMine, "and started again");
    ebpfMonStartStateEnd(state, 1);
    testOk(ebpfMonStartStateIsRunning(state) && ebpfMonStartStateGetStatus(state) == ebpfMonOpDone, "it runs");
    testOk(ebpfMonStartStateBegin(state) == ebpfMonStartDone, "a further start finds that it runs");
    testOk1(ebpfMonStartStateRefuses(state, why, sizeof(why)));
    testOk(ebpfMonStartStateCountFilter(state, &count) && count == 1 && ebpfMonStartStateCountFilter(state, &count) &&
               count == 2,
           "filters are counted");
    testOk(ebpfMonStartStateStop(state) && !ebpfMonStartStateStop(state), "one caller stops it, not two");
    testOk(!ebpfMonStartStateIsRunning(state) && ebpfMonStartStateGetStatus(state) == ebpfMonOpNotStarted,
           "it has stopped");
    testOk(!ebpfMonStartStateCountFilter(state, &count) && count == 2, "the count stays");
}

/* What the threads of a round have in common. */
typedef struct {
    epicsEventId go;
    /* atomic */
    int starting, together; /* threads that start it now; how often there were two */
    int started, stopped;   /* how many of them started it, and stopped it */
} rush;

static void runRush(void *arg)
{
    rush *r = arg;

    epicsEventMustWait(r->go);
    epicsEventMustTrigger(r->go); /* the next one goes, too */
    if (ebpfMonStartStateBegin(state) == ebpfMonStartMine) {
        if (epicsAtomicIncrIntT(&r->starting) > 1)
            epicsAtomicIncrIntT(&r->together);
        epicsThreadSleep(0); /* lets the others run */
        epicsAtomicIncrIntT(&r->started);
        epicsAtomicDecrIntT(&r->starting);
        ebpfMonStartStateEnd(state, 1);
    }
    while (!ebpfMonStartStateIsRunning(state) && !epicsAtomicGetIntT(&r->stopped))
        epicsThreadSleep(PAUSE);
    if (ebpfMonStartStateStop(state))
        epicsAtomicIncrIntT(&r->stopped);
}

/* Each start is followed by one stop, and no start is lost, however many threads ask. */
static void testRush(void)
{
    int wrong = 0, starts = 0;

    testDiag("%d threads start and stop it at the same time", THREADS);
    for (int i = 0; i < ROUNDS; i++) {
        rush r = { .go = epicsEventMustCreate(epicsEventEmpty) };
        epicsThreadOpts opts = EPICS_THREAD_OPTS_INIT;
        epicsThreadId thread[THREADS];

        opts.joinable = 1;
        for (int k = 0; k < THREADS; k++)
            thread[k] = epicsThreadCreateOpt("rush", runRush, &r, &opts);
        epicsEventMustTrigger(r.go);
        for (int k = 0; k < THREADS; k++)
            epicsThreadMustJoin(thread[k]);
        wrong += r.together || r.started < 1 || r.started != r.stopped || ebpfMonStartStateIsRunning(state);
        starts += r.started;
        epicsEventDestroy(r.go);
    }
    testOk(!wrong, "in %d of %d rounds a start or a stop was lost, or two started it (%d starts)", wrong, ROUNDS,
           starts);
}

MAIN(testStartState)
{
    testPlan(19);
    testStarts();
    testRush();
    return testDone();
}

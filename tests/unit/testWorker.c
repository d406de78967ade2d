/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <unistd.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/worker.h"
#include "common/clock.h"

/* --- SharedWorker --- */

/* A worker that other threads wake while it is started and stopped. */

#define ROUNDS 300

typedef struct {
    ebpfMonSharedWorker *shared;
    int          stop, woken; /* atomic */
    epicsEventId ended;
} waker;

static void runWork(ebpfMonWorker *worker, void *arg)
{
    int *woken = arg;

    while (!ebpfMonWorkerIsStopping(worker))
        if (ebpfMonWorkerWait(worker, 60))
            epicsAtomicIncrIntT(woken);
}

static void runStubborn(ebpfMonWorker *worker, void *arg)
{
    epicsEventMustWait((epicsEventId)arg); /* even if it should stop */
    while (!ebpfMonWorkerIsStopping(worker))
        ebpfMonWorkerWait(worker, 60);
}

static void runWaker(void *arg)
{
    waker *w = arg;

    while (!epicsAtomicGetIntT(&w->stop))
        ebpfMonSharedWorkerWake(w->shared);
    epicsEventMustTrigger(w->ended);
}

/* If a worker is freed while it is woken, this program crashes, at least under ThreadSanitizer. */
static void testWakeAlways(void)
{
    ebpfMonSharedWorker shared;
    waker w = { .shared = &shared, .ended = epicsEventMustCreate(epicsEventEmpty) };
    int started = 0, stopped = 0;

    testDiag("Another thread wakes it all the time");
    ebpfMonSharedWorkerInit(&shared);
    epicsThreadMustCreate("waker", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackSmall), runWaker,
                          &w);
    for (int i = 0; i < ROUNDS; i++) {
        started += !ebpfMonSharedWorkerSet(&shared,
                                           ebpfMonWorkerStart("shared", epicsThreadPriorityLow, runWork, &w.woken));
        stopped += !ebpfMonSharedWorkerStop(&shared, 60);
    }
    epicsAtomicSetIntT(&w.stop, 1);
    epicsEventMustWait(w.ended);
    testOk(started == ROUNDS && stopped == ROUNDS, "each start and each stop has an effect: %d, %d", started, stopped);
    testOk(epicsAtomicGetIntT(&w.woken) > 0, "a worker that is started and stopped can be woken: %d times",
           epicsAtomicGetIntT(&w.woken));
    testOk(!ebpfMonSharedWorkerStop(&shared, 0), "a second stop finds no worker");
    testOk(ebpfMonSharedWorkerSet(&shared, NULL) == -1, "a worker that could not be started is not there");
    ebpfMonSharedWorkerWake(&shared);
    ebpfMonSharedWorkerDestroy(&shared);
    epicsEventDestroy(w.ended);
}

static void testStubborn(void)
{
    epicsEventId let = epicsEventMustCreate(epicsEventEmpty);
    ebpfMonSharedWorker shared;

    testDiag("It does not end in time");
    ebpfMonSharedWorkerInit(&shared);
    testOk1(!ebpfMonSharedWorkerSet(&shared, ebpfMonWorkerStart("stubborn", epicsThreadPriorityLow, runStubborn, let)));
    testOk(ebpfMonSharedWorkerStop(&shared, 0.01) == -1, "the caller is told");
    testOk(shared.worker != NULL, "a worker that did not stop in time can still be woken");
    ebpfMonSharedWorkerWake(&shared);
    epicsEventMustTrigger(let);
    testOk(!ebpfMonSharedWorkerStop(&shared, 60) && !shared.worker, "such a worker ends at the next stop");
    ebpfMonSharedWorkerDestroy(&shared);
    epicsEventDestroy(let);
}

static void runSharedWorker(void)
{
    testWakeAlways();
    testStubborn();
}

/* --- Waiter --- */

/* A thread that sleeps until it is woken, a file is readable, or a time has passed. */

static void wakeLater(void *arg)
{
    epicsThreadSleep(0.05); /* the delay that is measured */
    ebpfMonWaiterWake(arg);
}

static void runWaiter(void)
{
    ebpfMonWaiter waiter;
    int woken, pipes[2];
    uint64_t begin;

    testOk(ebpfMonWaiterMake(&waiter) == 0 && pipe(pipes) == 0, "a waiter and a pipe");
    begin = ebpfMonClockMonotonic();
    testOk(!ebpfMonWaiterWait(&waiter, -1, 0.05, &woken) && !woken, "nobody wakes it");
    testOk(ebpfMonClockMonotonic() - begin >= 50000000, "it waited for 50 ms");
    ebpfMonWaiterWake(&waiter);
    ebpfMonWaiterWake(&waiter);
    testOk(ebpfMonWaiterWait(&waiter, -1, 60, &woken) && woken, "it was woken before it waited");
    testOk(!ebpfMonWaiterWait(&waiter, -1, 0, &woken) && !woken, "two calls count once");
    begin = ebpfMonClockMonotonic();
    epicsThreadCreate("wake", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackSmall), wakeLater,
                      &waiter);
    testOk(ebpfMonWaiterWait(&waiter, pipes[0], HUGE_VAL, &woken) && woken, "another thread wakes it");
    testOk(ebpfMonClockMonotonic() - begin >= 40000000, "after 50 ms");
    testOk(!ebpfMonWaiterWait(&waiter, pipes[0], -1, &woken), "a time below 0 is 0");
    testOk(write(pipes[1], "x", 1) == 1 && ebpfMonWaiterWait(&waiter, pipes[0], 60, &woken) && !woken,
           "the file is readable");
    ebpfMonWaiterEnd(&waiter);
    testOk(waiter.file == -1, "its file is closed");
    close(pipes[0]);
    close(pipes[1]);
}

MAIN(testWorker)
{
    testPlan(8 + 10);
    runSharedWorker();
    runWaiter();
    return testDone();
}

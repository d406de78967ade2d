/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker that other threads wake while it is started and stopped. */
#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/worker.h"

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

MAIN(testSharedWorker)
{
    testPlan(8);
    testWakeAlways();
    testStubborn();
    return testDone();
}

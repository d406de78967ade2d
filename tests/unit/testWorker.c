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

/* --- NeededWorker --- */

/* A worker that starts only when its owner has begun and a configuration needs it, and takes each configuration
 * once. */

#define SECONDS 60.0

typedef struct {
    int isOn, number;
} conf;

typedef struct {
    ebpfMonNeededWorker worker;
    conf         wanted;   /* the worker's lock guards what follows */
    int          starts, canStart;
    unsigned     taken;    /* how many configurations the thread took */
    conf         last;     /* the last of them */
    epicsEventId tookOne;
} owner;

static void runNeeded(ebpfMonWorker *worker, void *arg)
{
    owner *o = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        int isNew;

        epicsMutexMustLock(o->worker.lock);
        isNew = ebpfMonNeededWorkerTake(&o->worker, &o->last);
        o->taken += (unsigned)isNew;
        epicsMutexUnlock(o->worker.lock);
        if (isNew)
            epicsEventMustTrigger(o->tookOne);
        else
            ebpfMonWorkerWait(worker, SECONDS);
    }
}

static ebpfMonWorker *startWork(void *arg)
{
    owner *o = arg;

    o->starts++;
    return o->canStart ? ebpfMonWorkerStart("needed", epicsThreadPriorityLow, runNeeded, o) : NULL;
}

static int isOn(const void *c)
{
    return ((const conf *)c)->isOn;
}

static void makeOwner(owner *o)
{
    *o = (owner){ .canStart = 1, .tookOne = epicsEventMustCreate(epicsEventEmpty) };
    ebpfMonNeededWorkerInit(&o->worker, &(ebpfMonNeededWorkerUses){
        .start = startWork, .isNeeded = isOn, .arg = o, .conf = &o->wanted, .size = sizeof(o->wanted),
    });
}

static int configure(owner *o, int on, int number)
{
    return ebpfMonNeededWorkerConfigure(&o->worker, &(conf){ on, number });
}

static int waitTaken(owner *o)
{
    return epicsEventWaitWithTimeout(o->tookOne, SECONDS) == epicsEventOK;
}

static void testStarts(void)
{
    owner o;

    testDiag("When it starts");
    makeOwner(&o);
    testOk(!configure(&o, 1, 1) && !o.starts, "the owner has not begun: no thread");
    ebpfMonNeededWorkerWake(&o.worker);
    testOk(!ebpfMonNeededWorkerBegin(&o.worker) && o.starts == 1, "the owner begins: it starts");
    testOk(waitTaken(&o) && o.last.number == 1, "it takes the configuration that was set before");
    testOk(!configure(&o, 1, 2) && waitTaken(&o) && o.last.number == 2, "a new configuration wakes it");
    testOk(!configure(&o, 0, 3) && waitTaken(&o) && !o.last.isOn,
           "it learns that it is not needed any more, and runs on");
    testOk(!configure(&o, 1, 4) && waitTaken(&o) && o.starts == 1, "needed again: no second thread");
    testOk(!ebpfMonNeededWorkerStop(&o.worker, SECONDS), "it ends");
    testOk(o.taken == 4, "it took each configuration once: %u", o.taken);
    epicsEventDestroy(o.tookOne);
}

static void testNotNeeded(void)
{
    owner o;

    testDiag("A thread that nobody needs, and one that cannot be started");
    makeOwner(&o);
    testOk(!ebpfMonNeededWorkerBegin(&o.worker) && !configure(&o, 0, 1) && !o.starts, "not needed: no thread");
    o.canStart = 0;
    testOk(configure(&o, 1, 2) == -1 && o.starts == 1, "it cannot be started: the caller is told");
    ebpfMonNeededWorkerWake(&o.worker);
    o.canStart = 1;
    testOk(!configure(&o, 1, 3) && o.starts == 2, "the next configuration starts it");
    testOk(waitTaken(&o) && o.taken == 1 && o.last.number == 3, "it takes only the newest one");
    testOk(!ebpfMonNeededWorkerStop(&o.worker, SECONDS) && !ebpfMonNeededWorkerStop(&o.worker, 0), "it ends, once");
    epicsEventDestroy(o.tookOne);
}

static void runNeededWorker(void)
{
    testStarts();
    testNotNeeded();
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
    testPlan(8 + 13 + 10);
    runSharedWorker();
    runNeededWorker();
    runWaiter();
    return testDone();
}

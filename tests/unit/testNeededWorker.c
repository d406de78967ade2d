/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker that starts only when its owner has begun and a configuration needs it, and takes each configuration
 * once. */
#include <epicsEvent.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/worker.h"

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

static void runWork(ebpfMonWorker *worker, void *arg)
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
    return o->canStart ? ebpfMonWorkerStart("needed", epicsThreadPriorityLow, runWork, o) : NULL;
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

MAIN(testNeededWorker)
{
    testPlan(13);
    testStarts();
    testNotNeeded();
    return testDone();
}

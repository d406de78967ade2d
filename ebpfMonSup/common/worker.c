/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <errlog.h>

#include "common/worker.h"

struct ebpfMonWorker {
    char     name[32];
    ebpfMonWorkerRun run;
    void    *arg;
    int      stopping;  /* atomic */
    epicsEventId wake;
    epicsEventId ended; /* triggered by the thread as the last thing that it does with this struct */
};

static void runWorker(void *arg)
{
    ebpfMonWorker *worker = arg;

    worker->run(worker, worker->arg);
    epicsEventMustTrigger(worker->ended);
}

static void freeWorker(ebpfMonWorker *worker)
{
    epicsEventDestroy(worker->wake);
    epicsEventDestroy(worker->ended);
    free(worker);
}

ebpfMonWorker *ebpfMonWorkerStart(const char *name, unsigned priority, ebpfMonWorkerRun run, void *arg)
{
    ebpfMonWorker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    snprintf(worker->name, sizeof(worker->name), "%s", name);
    worker->run = run;
    worker->arg = arg;
    worker->wake = epicsEventMustCreate(epicsEventEmpty);
    worker->ended = epicsEventMustCreate(epicsEventEmpty);
    /* not epicsThreadMustCreate: that suspends the caller, which may be the shell, for ever */
    if (epicsThreadCreate(name, priority, epicsThreadGetStackSize(epicsThreadStackBig), runWorker, worker))
        return worker;
    errlogSevPrintf(errlogMajor, "ebpfMon: thread %s cannot be started. Raise the limits of this process for threads "
                    "(ulimit -u, TasksMax) and memory, then start again\n", name);
    freeWorker(worker);
    return NULL;
}

int ebpfMonWorkerIsStopping(const ebpfMonWorker *worker)
{
    return epicsAtomicGetIntT(&worker->stopping);
}

int ebpfMonWorkerWait(ebpfMonWorker *worker, double seconds)
{
    return epicsEventWaitWithTimeout(worker->wake, seconds) == epicsEventOK;
}

void ebpfMonWorkerWake(ebpfMonWorker *worker)
{
    if (worker)
        epicsEventMustTrigger(worker->wake);
}

int ebpfMonWorkerStop(ebpfMonWorker **worker, double seconds)
{
    ebpfMonWorker *w = *worker;

    if (!w)
        return 0;
    epicsAtomicSetIntT(&w->stopping, 1);
    epicsEventMustTrigger(w->wake);
    if (epicsEventWaitWithTimeout(w->ended, seconds) != epicsEventOK) {
        errlogSevPrintf(errlogMinor, "ebpfMon: thread %s did not end within %g s. What it uses stays in memory until "
                        "this process ends\n", w->name, seconds);
        return -1;
    }
    freeWorker(w);
    *worker = NULL;
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/lazyMutex.h"
#include "common/ownPriority.h"
#include "common/waiter.h"
#include "common/worker.h"

#define NICE -10

struct ebpfMonWorker {
    char     name[32];
    unsigned priority;
    ebpfMonWorkerRun run;
    void    *arg;
    int      stopping;  /* atomic */
    int      waitsForOthers; /* atomic; nonzero: if it is stuck, a restart does not help */
    uint64_t signAt;    /* atomic; monotonic ns of the last sign of progress; UINT64_MAX: it waits, or has ended */
    ebpfMonWorker *next;
    ebpfMonWaiter wake;
    epicsEventId ended; /* triggered by the thread; the last use of this struct by it */
};

/* All workers of this process: a thread that looks for stuck threads must find each of them, in any module. The lock is
 * held only to go through the list. */
static ebpfMonWorker *workers;
static ebpfMonLazyMutex workersLock = EBPFMON_LAZY_MUTEX;

static __thread ebpfMonWorker *own; /* the worker that this thread is; NULL: it is none */

static void setSign(ebpfMonWorker *worker, uint64_t at)
{
    __atomic_store_n(&worker->signAt, at, __ATOMIC_RELAXED);
}

static void runWorker(void *arg)
{
    ebpfMonWorker *worker = arg;

    own = worker;
    /* EPICS has chosen a real-time priority, if it was allowed to */
    ebpfMonOwnPrioritySet(worker->priority >= epicsThreadPriorityMedium ? NICE : 0);
    worker->run(worker, worker->arg);
    setSign(worker, UINT64_MAX);
    epicsEventMustTrigger(worker->ended);
}

static void addToList(ebpfMonWorker *worker)
{
    ebpfMonLazyMutexLock(&workersLock);
    worker->next = workers;
    workers = worker;
    ebpfMonLazyMutexUnlock(&workersLock);
}

static void freeWorker(ebpfMonWorker *worker)
{
    ebpfMonWorker **at;

    ebpfMonLazyMutexLock(&workersLock);
    for (at = &workers; *at && *at != worker; at = &(*at)->next)
        ;
    if (*at)
        *at = worker->next;
    ebpfMonLazyMutexUnlock(&workersLock);
    ebpfMonWaiterEnd(&worker->wake);
    epicsEventDestroy(worker->ended);
    free(worker);
}

static void logNotStarted(const char *name)
{
    errlogSevPrintf(errlogMajor, "ebpfMon: thread %s cannot be started. Raise the limits of this process for threads "
                    "(ulimit -u, TasksMax), files (ulimit -n) and memory, then start again\n", name);
}

ebpfMonWorker *ebpfMonWorkerStart(const char *name, unsigned priority, ebpfMonWorkerRun run, void *arg)
{
    ebpfMonWorker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    snprintf(worker->name, sizeof(worker->name), "%s", name);
    worker->run = run;
    worker->arg = arg;
    worker->priority = priority;
    if (ebpfMonWaiterMake(&worker->wake)) {
        logNotStarted(name);
        free(worker);
        return NULL;
    }
    worker->ended = epicsEventMustCreate(epicsEventEmpty);
    setSign(worker, ebpfMonClockMonotonic());
    addToList(worker);
    /* not epicsThreadMustCreate(): that suspends the caller, which may be the shell, for ever */
    if (epicsThreadCreate(name, priority, epicsThreadGetStackSize(epicsThreadStackBig), runWorker, worker))
        return worker;
    logNotStarted(name);
    freeWorker(worker);
    return NULL;
}

void ebpfMonWorkerGiveSign(ebpfMonWorker *worker)
{
    if (worker)
        setSign(worker, ebpfMonClockMonotonic());
}

void ebpfMonWorkerGiveSignHere(void)
{
    ebpfMonWorkerGiveSign(own);
}

int ebpfMonWorkerIsStopping(ebpfMonWorker *worker)
{
    ebpfMonWorkerGiveSign(worker);
    return epicsAtomicGetIntT(&worker->stopping);
}

int ebpfMonWorkerWait(ebpfMonWorker *worker, double seconds)
{
    int woken;

    setSign(worker, UINT64_MAX);
    ebpfMonWaiterWait(&worker->wake, -1, seconds, &woken);
    setSign(worker, ebpfMonClockMonotonic());
    return woken;
}

int ebpfMonWorkerWaitFile(ebpfMonWorker *worker, int fd, uint64_t ns)
{
    int woken, ended;

    setSign(worker, UINT64_MAX);
    ended = ebpfMonWaiterWait(&worker->wake, fd, (double)ns / 1e9, &woken);
    setSign(worker, ebpfMonClockMonotonic());
    return ended;
}

/* Returns for how long it has given no sign of progress, s. */
static double findSilence(const ebpfMonWorker *worker, uint64_t now)
{
    uint64_t at = __atomic_load_n(&worker->signAt, __ATOMIC_RELAXED);

    return at < now ? (double)(now - at) / 1e9 : 0;
}

unsigned ebpfMonWorkersFindStuck(double seconds, char *text, size_t size)
{
    uint64_t now = ebpfMonClockMonotonic();
    unsigned n = 0;

    text[0] = 0;
    ebpfMonLazyMutexLock(&workersLock);
    for (const ebpfMonWorker *w = workers; w; w = w->next) {
        double since = findSilence(w, now);

        if (since > seconds) {
            size_t used = strlen(text);

            snprintf(text + used, size - used, "%s%s since %.0f s", n++ ? ", " : "", w->name, since);
        }
    }
    ebpfMonLazyMutexUnlock(&workersLock);
    return n;
}

void ebpfMonWorkerWaitsForOthers(ebpfMonWorker *worker)
{
    epicsAtomicSetIntT(&worker->waitsForOthers, 1);
}

unsigned ebpfMonWorkersCountOursStuck(double seconds)
{
    uint64_t now = ebpfMonClockMonotonic();
    unsigned n = 0;

    ebpfMonLazyMutexLock(&workersLock);
    for (const ebpfMonWorker *w = workers; w; w = w->next)
        n += !epicsAtomicGetIntT(&w->waitsForOthers) && findSilence(w, now) > seconds;
    ebpfMonLazyMutexUnlock(&workersLock);
    return n;
}

void ebpfMonWorkerWake(ebpfMonWorker *worker)
{
    if (worker)
        ebpfMonWaiterWake(&worker->wake);
}

int ebpfMonWorkerStop(ebpfMonWorker **worker, double seconds)
{
    ebpfMonWorker *w = *worker;

    if (!w)
        return 0;
    epicsAtomicSetIntT(&w->stopping, 1);
    ebpfMonWaiterWake(&w->wake);
    if (epicsEventWaitWithTimeout(w->ended, seconds) != epicsEventOK) {
        errlogSevPrintf(errlogMinor, "ebpfMon: thread %s did not end within %g s. What it uses stays in memory until "
                        "this process ends\n", w->name, seconds);
        return -1;
    }
    freeWorker(w);
    *worker = NULL;
    return 0;
}

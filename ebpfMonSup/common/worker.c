/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <errlog.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/worker.h"
#include "ebpfMon.h"

/* --- a mutex that needs no beginning --- */

static void createMutex(void *arg)
{
    ebpfMonLazyMutex *mutex = arg;

    epicsAtomicSetPtrT(&mutex->id, epicsMutexMustCreate());
}

void ebpfMonLazyMutexLock(ebpfMonLazyMutex *mutex)
{
    epicsThreadOnce(&mutex->once, createMutex, mutex);
    epicsMutexMustLock(epicsAtomicGetPtrT(&mutex->id));
}

void ebpfMonLazyMutexUnlock(ebpfMonLazyMutex *mutex)
{
    epicsMutexUnlock(epicsAtomicGetPtrT(&mutex->id));
}

/* --- waiting --- */

#define LONGEST_S 1e9

int ebpfMonWaiterMake(ebpfMonWaiter *waiter)
{
    waiter->file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return waiter->file < 0 ? -1 : 0;
}

void ebpfMonWaiterEnd(ebpfMonWaiter *waiter)
{
    if (waiter->file >= 0)
        close(waiter->file);
    waiter->file = -1;
}

void ebpfMonWaiterWake(const ebpfMonWaiter *waiter)
{
    eventfd_write(waiter->file, 1);
}

int ebpfMonWaiterWait(const ebpfMonWaiter *waiter, int fd, double seconds, int *woken)
{
    double s = seconds > 0 ? (seconds < LONGEST_S ? seconds : LONGEST_S) : 0;
    struct timespec most = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };
    struct pollfd wait[] = { { .fd = waiter->file, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
    eventfd_t count;

    *woken = 0;
    if (ppoll(wait, 2, &most, NULL) <= 0)
        return 0;
    *woken = wait[0].revents != 0;
    if (*woken)
        eventfd_read(waiter->file, &count);
    return *woken || wait[1].revents;
}

/* --- priority --- */

/* Switches CAP_SYS_NICE of this thread on or off. It stays permitted, so that it can be switched on again. */
static void switchNiceCapability(int on)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const uint32_t bit = 1u << CAP_SYS_NICE;

    if (syscall(SYS_capget, &header, data))
        return;
    data[0].effective = on ? data[0].effective | (data[0].permitted & bit) : data[0].effective & ~bit;
    syscall(SYS_capset, &header, data);
}

void ebpfMonRealTimeGiveUp(void)
{
    const struct rlimit none = { 0, 0 };

    setrlimit(RLIMIT_RTPRIO, &none);
    switchNiceCapability(0); /* threads started later inherit this */
}

int ebpfMonOwnPrioritySet(int nice)
{
    int status;

    switchNiceCapability(1);
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){ .sched_priority = 0 });
    status = setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice);
    switchNiceCapability(0);
    return status;
}

/* --- threads that may wait for ever --- */

int ebpfMonPlainThreadStart(void *(*run)(void *arg), void *arg, size_t stackBytes)
{
    sigset_t blocked, before;
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stackBytes);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
    pthread_attr_setschedparam(&attr, &(struct sched_param){ .sched_priority = 0 });
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    err = pthread_create(&thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return err;
}

/* --- workers --- */

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

/* --- workers that others wake --- */

void ebpfMonSharedWorkerInit(ebpfMonSharedWorker *shared)
{
    shared->lock = epicsMutexMustCreate();
    shared->worker = NULL;
}

void ebpfMonSharedWorkerDestroy(ebpfMonSharedWorker *shared)
{
    epicsMutexDestroy(shared->lock);
}

int ebpfMonSharedWorkerSet(ebpfMonSharedWorker *shared, ebpfMonWorker *worker)
{
    epicsMutexMustLock(shared->lock);
    shared->worker = worker;
    epicsMutexUnlock(shared->lock);
    return worker ? 0 : -1;
}

void ebpfMonSharedWorkerWake(ebpfMonSharedWorker *shared)
{
    epicsMutexMustLock(shared->lock);
    ebpfMonWorkerWake(shared->worker);
    epicsMutexUnlock(shared->lock);
}

int ebpfMonSharedWorkerStop(ebpfMonSharedWorker *shared, double seconds)
{
    ebpfMonWorker *worker;
    int status;

    epicsMutexMustLock(shared->lock);
    worker = shared->worker;
    shared->worker = NULL; /* others may still wake it, and must not find a worker that is freed */
    epicsMutexUnlock(shared->lock);
    status = ebpfMonWorkerStop(&worker, seconds);
    if (status)
        ebpfMonSharedWorkerSet(shared, worker);
    return status;
}

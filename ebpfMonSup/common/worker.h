/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of the monitor: it is started, woken, and stopped with a deadline. All threads that run beside iocCore are
 * workers, so there is one way to start, one to stop, and one to notice that a thread makes no progress.
 *
 * Workers run at ordinary priority, also where EPICS gives its threads real-time priority. They read what others wrote,
 * and nobody can promise how much that is. At real-time priority, a thread that is always busy would take a CPU from
 * all others.
 */
#ifndef EBPFMON_WORKER_H
#define EBPFMON_WORKER_H

#include <epicsAtomic.h>
#include <epicsMutex.h>
#include <epicsThread.h>
#include <stddef.h>
#include <stdint.h>

/* --- a mutex that needs no beginning ---
 *
 * A mutex for the few things that exist once in a process and may be used before any code of ours has run (by records,
 * iocsh variables, tests). Base has no static initialiser for epicsMutex. Everything else has a context with an
 * epicsMutexId. Any thread.
 */

typedef struct {
    epicsThreadOnceId once;
    EpicsAtomicPtrT   id; /* epicsMutexId; atomic, because epicsThreadOnce looks at its flag without a lock */
} ebpfMonLazyMutex;

#define EBPFMON_LAZY_MUTEX { EPICS_THREAD_ONCE_INIT, NULL }

/* Lock: the first call makes the mutex. */
void ebpfMonLazyMutexLock(ebpfMonLazyMutex *mutex);
void ebpfMonLazyMutexUnlock(ebpfMonLazyMutex *mutex);

/* --- waiting ---
 *
 * A thread sleeps until another one wakes it, or until a time has passed. epicsEventWaitWithTimeout() measures this
 * time by the wall clock (osdEvent.c: pthread_cond_timedwait). If somebody sets the clock back by an hour, it sleeps an
 * hour longer. A waiter does not.
 */

/* An eventfd. It has no owner: one thread waits, any thread wakes it, until the file is closed. */
typedef struct {
    int file;
} ebpfMonWaiter;

/* Makes a waiter. 0, or -1: this process may not open another file. */
int ebpfMonWaiterMake(ebpfMonWaiter *waiter);
void ebpfMonWaiterEnd(ebpfMonWaiter *waiter);

/* Wakes the thread that waits. One call is remembered if nobody waits. */
void ebpfMonWaiterWake(const ebpfMonWaiter *waiter);

/* Sleeps for "seconds" at most; it also ends when the file "fd" is readable, if that is not -1, or when a signal comes.
 * Nonzero: *woken tells if it was woken, else the file is readable. */
int ebpfMonWaiterWait(const ebpfMonWaiter *waiter, int fd, double seconds, int *woken);

/* --- priority ---
 *
 * The priority of the calling thread, after ebpfMonRealTimeGiveUp (ebpfMon.h).
 */

/* Takes the usual policy (SCHED_OTHER), and this nice value, for which a thread needs CAP_SYS_NICE or RLIMIT_NICE. It
 * has the capability for this call only. 0; or -1: it has neither, and the value stays. */
int ebpfMonOwnPrioritySet(int nice);

/* --- threads that may wait for ever ---
 *
 * Starts threads that may wait for ever, for example for the kernel: at ordinary priority, with all signals blocked.
 * Nobody waits for their end. (epicsThreadCreate() would give them real-time priority where that is allowed.) No state;
 * any thread.
 */

/* Starts a thread. 0, or the error of pthread_create(): there are too many threads, or no memory. */
int ebpfMonPlainThreadStart(void *(*run)(void *arg), void *arg, size_t stackBytes);

/* --- workers --- */

typedef struct ebpfMonWorker ebpfMonWorker;

/* The work of the thread: it loops until ebpfMonWorkerIsStopping, then returns. */
typedef void (*ebpfMonWorkerRun)(ebpfMonWorker *worker, void *arg);

/* Starts a worker. "name": name of the thread (the kernel shows 15 characters). "priority": from
 * epicsThreadPriorityMedium on, the thread has a higher priority than other ordinary ones (nice -10), if this process
 * may do that. "arg" stays the caller's. NULL: no memory; or this process may not have another thread, and a message
 * tells so. Needs a file descriptor. */
ebpfMonWorker *ebpfMonWorkerStart(const char *name, unsigned priority, ebpfMonWorkerRun run, void *arg);

/* Nonzero: the work shall end. Only the work itself calls it; it is also a sign of progress. */
int ebpfMonWorkerIsStopping(ebpfMonWorker *worker);

/* Gives a sign of progress. Only the work itself calls it, once a second at least, unless it is in ebpfMonWorkerWait.
 * NULL: nothing happens. */
void ebpfMonWorkerGiveSign(ebpfMonWorker *worker);

/* The same for work that is deep within functions which serve any thread. In a thread that is no worker nothing
 * happens. Only for loops that have a bound. */
void ebpfMonWorkerGiveSignHere(void);

/* Sleeps for "seconds" at most. Nonzero: it was woken. Only the work itself calls it. */
int ebpfMonWorkerWait(ebpfMonWorker *worker, double seconds);

/* The same for "ns" at most; it also ends when the file "fd" is readable. Nonzero: it was woken, or the file is
 * readable. */
int ebpfMonWorkerWaitFile(ebpfMonWorker *worker, int fd, uint64_t ns);

/* Wakes the worker. One call is remembered if it does not sleep. NULL: nothing happens. Any thread. */
void ebpfMonWorkerWake(ebpfMonWorker *worker);

/*
 * Asks the work to end, and waits for that, "seconds" at most. 0: it has ended, its memory is freed, and *worker is
 * NULL; also if *worker was NULL. -1: it still runs, and a message tells so. Then do not free or unmap what it uses;
 * the call may be repeated.
 */
int ebpfMonWorkerStop(ebpfMonWorker **worker, double seconds);

/*
 * Finds the workers that have given no sign of progress for "seconds", and are not in ebpfMonWorkerWait. Writes them to
 * "text": "ebpfMonEvent since 4 s, ebpfMonExport since 12 s". Returns their number. Waits for none of them. Any thread.
 */
unsigned ebpfMonWorkersFindStuck(double seconds, char *text, size_t size);

/* Tells that the work may have to wait for a disk or a name server, for any time. If it does, a restart of the process
 * does not help, and stops the work of all others. Only the work itself calls it, once. */
void ebpfMonWorkerWaitsForOthers(ebpfMonWorker *worker);

/* Returns the number of workers that are stuck and do not wait for others: only a restart can help them. Any thread. */
unsigned ebpfMonWorkersCountOursStuck(double seconds);

/* --- workers that others wake ---
 *
 * A worker that other threads may wake at any time, also while it is started or stopped. One thread starts and stops
 * it.
 */

typedef struct {
    epicsMutexId   lock;   /* protects "worker" */
    ebpfMonWorker *worker; /* NULL: there is nobody to wake */
} ebpfMonSharedWorker;

void ebpfMonSharedWorkerInit(ebpfMonSharedWorker *shared);

/* Only if the worker has ended, or was never set. */
void ebpfMonSharedWorkerDestroy(ebpfMonSharedWorker *shared);

/* Lets other threads wake "worker", which was just started. 0; or -1 if it is NULL, because it could not be started. */
int ebpfMonSharedWorkerSet(ebpfMonSharedWorker *shared, ebpfMonWorker *worker);

/* Wakes the worker, if there is one. Any thread. */
void ebpfMonSharedWorkerWake(ebpfMonSharedWorker *shared);

/* Stops the worker as ebpfMonWorkerStop does, with the same result. If it still runs after "seconds", others can still
 * wake it, and it can be stopped again. 0: there is none. */
int ebpfMonSharedWorkerStop(ebpfMonSharedWorker *shared, double seconds);

#endif

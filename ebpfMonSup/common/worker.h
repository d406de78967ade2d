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

#include <stdint.h>
#include <epicsThread.h>

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

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of the monitor: started once, woken, and stopped with a deadline. Everything that runs beside iocCore is one
 * of these, so that there is one way to start, one to stop, and one to notice that a thread makes no progress.
 *
 * Workers run at ordinary priority, also where EPICS gives its threads real-time priority: they read what others wrote,
 * and nobody can promise how much that is. At real-time priority a thread that is kept busy takes a CPU from all others.
 */
#ifndef EBPFMON_WORKER_H
#define EBPFMON_WORKER_H

#include <stdint.h>
#include <epicsThread.h>

typedef struct ebpfMonWorker ebpfMonWorker;

/* The work: loops until ebpfMonWorkerIsStopping, then returns. */
typedef void (*ebpfMonWorkerRun)(ebpfMonWorker *worker, void *arg);

/* "name": as the thread is called (15 characters are seen in the kernel). "priority": from epicsThreadPriorityMedium on
 * the thread goes before others of ordinary priority (nice -10), if this process may ask for that. NULL without memory, or if the process
 * may not have another thread; then with a message. Memory of "arg" stays the caller's. */
ebpfMonWorker *ebpfMonWorkerStart(const char *name, unsigned priority, ebpfMonWorkerRun run, void *arg);

/* The same for work that waits by ebpfMonWorkerWaitFile, and not by ebpfMonWorkerWait. It takes a file. */
ebpfMonWorker *ebpfMonWorkerStartForFiles(const char *name, unsigned priority, ebpfMonWorkerRun run, void *arg);

/* Nonzero: the work is to end. Called by the work alone, it is a sign of progress, too. */
int ebpfMonWorkerIsStopping(ebpfMonWorker *worker);

/* The work makes progress: to be said once a second at least, but for ebpfMonWorkerWait. Called by the work alone. NULL:
 * nothing happens. */
void ebpfMonWorkerGiveSign(ebpfMonWorker *worker);

/* The worker sleeps for at most "seconds". Nonzero: it was woken. Called by the work alone. */
int ebpfMonWorkerWait(ebpfMonWorker *worker, double seconds);

/* The same, at most "ns" long, and the wait ends once the file "fd" can be read, too. Nonzero: woken, or it can. */
int ebpfMonWorkerWaitFile(ebpfMonWorker *worker, int fd, uint64_t ns);

/* Any thread. One call is remembered while the worker does not sleep. NULL: nothing happens. */
void ebpfMonWorkerWake(ebpfMonWorker *worker);

/*
 * Asks the work to end, and waits for that at most "seconds". 0: it has ended and *worker is NULL, its memory freed; so
 * it is if *worker is NULL already. -1: it still runs. Then what it uses must not be freed or unmapped: a message says
 * so, and the call may be repeated.
 */
int ebpfMonWorkerStop(ebpfMonWorker **worker, double seconds);

/*
 * The workers that have given no sign of progress for "seconds", and are not in ebpfMonWorkerWait: "ebpfMonEvent since
 * 4 s, ebpfMonExport since 12 s". Returns their number. Any thread; it waits for none of them.
 */
unsigned ebpfMonWorkersFindStuck(double seconds, char *text, size_t size);

/* The work may have to wait for a disk or for a name service, for as long as these want: a restart would not help it, and
 * would cost what the others do. Called by the work alone, once. */
void ebpfMonWorkerWaitsForOthers(ebpfMonWorker *worker);

/* The number of those that are stuck and do not wait for others: only a restart can help. Any thread. */
unsigned ebpfMonWorkersCountOursStuck(double seconds);

#endif

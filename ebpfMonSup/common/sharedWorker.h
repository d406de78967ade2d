/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker that other threads may wake at any time, also while it is started or stopped. One thread starts and stops
 * it.
 */
#ifndef EBPFMON_SHAREDWORKER_H
#define EBPFMON_SHAREDWORKER_H

#include <epicsMutex.h>

#include "common/worker.h"

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

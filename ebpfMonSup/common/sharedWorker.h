/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker that other threads may wake while it is started and stopped: they find the worker, or nobody. One thread
 * starts and stops it.
 */
#ifndef EBPFMON_SHAREDWORKER_H
#define EBPFMON_SHAREDWORKER_H

#include <epicsMutex.h>

#include "common/worker.h"

typedef struct {
    epicsMutexId   lock;   /* of the next one */
    ebpfMonWorker *worker; /* NULL: nobody is to be woken */
} ebpfMonSharedWorker;

void ebpfMonSharedWorkerInit(ebpfMonSharedWorker *shared);

/* The worker has ended, or was never set. */
void ebpfMonSharedWorkerDestroy(ebpfMonSharedWorker *shared);

/* "worker", which was just started, can be woken from now on. 0; -1 if it is NULL, because it could not be started. */
int ebpfMonSharedWorkerSet(ebpfMonSharedWorker *shared, ebpfMonWorker *worker);

/* Any thread. */
void ebpfMonSharedWorkerWake(ebpfMonSharedWorker *shared);

/* Stops the worker as ebpfMonWorkerStop does, with its status. If it still runs after "seconds" it can be woken, and
 * stopped once more. 0 if there is none. */
int ebpfMonSharedWorkerStop(ebpfMonSharedWorker *shared, double seconds);

#endif

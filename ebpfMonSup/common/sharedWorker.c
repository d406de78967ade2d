/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/sharedWorker.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/neededWorker.h"

void ebpfMonNeededWorkerInit(ebpfMonNeededWorker *needed, const ebpfMonNeededWorkerUses *uses)
{
    *needed = (ebpfMonNeededWorker){ .uses = *uses, .lock = epicsMutexMustCreate() };
    ebpfMonSharedWorkerInit(&needed->worker);
}

/* The caller holds the lock. 0, or -1: the thread cannot be started. */
static int startIfNeeded(ebpfMonNeededWorker *needed)
{
    const ebpfMonNeededWorkerUses *uses = &needed->uses;

    if (!needed->hasBegun || needed->isStarted || !uses->isNeeded(uses->conf))
        return 0;
    needed->isStarted = ebpfMonSharedWorkerSet(&needed->worker, uses->start(uses->arg)) == 0;
    return needed->isStarted ? 0 : -1;
}

int ebpfMonNeededWorkerBegin(ebpfMonNeededWorker *needed)
{
    int status;

    epicsMutexMustLock(needed->lock);
    needed->hasBegun = 1;
    status = startIfNeeded(needed);
    epicsMutexUnlock(needed->lock);
    return status;
}

int ebpfMonNeededWorkerConfigure(ebpfMonNeededWorker *needed, const void *conf)
{
    int status;

    epicsMutexMustLock(needed->lock);
    memcpy(needed->uses.conf, conf, needed->uses.size);
    needed->generation++;
    status = startIfNeeded(needed);
    epicsMutexUnlock(needed->lock);
    ebpfMonNeededWorkerWake(needed);
    return status;
}

int ebpfMonNeededWorkerTake(ebpfMonNeededWorker *needed, void *conf)
{
    if (needed->applied == needed->generation)
        return 0;
    needed->applied = needed->generation;
    memcpy(conf, needed->uses.conf, needed->uses.size);
    return 1;
}

void ebpfMonNeededWorkerWake(ebpfMonNeededWorker *needed)
{
    ebpfMonSharedWorkerWake(&needed->worker);
}

int ebpfMonNeededWorkerStop(ebpfMonNeededWorker *needed, double seconds)
{
    return ebpfMonSharedWorkerStop(&needed->worker, seconds);
}

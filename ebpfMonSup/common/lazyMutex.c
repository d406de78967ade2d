/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/lazyMutex.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mutex for the few things that exist once in a process and may be used before any code of ours has run (by records,
 * iocsh variables, tests). Base has no static initialiser for epicsMutex. Everything else has a context with an
 * epicsMutexId. Any thread.
 */
#ifndef EBPFMON_LAZYMUTEX_H
#define EBPFMON_LAZYMUTEX_H

#include <epicsAtomic.h>
#include <epicsMutex.h>
#include <epicsThread.h>

typedef struct {
    epicsThreadOnceId once;
    EpicsAtomicPtrT   id; /* epicsMutexId; atomic, because epicsThreadOnce looks at its flag without a lock */
} ebpfMonLazyMutex;

#define EBPFMON_LAZY_MUTEX { EPICS_THREAD_ONCE_INIT, NULL }

/* Lock: the first call makes the mutex. */
void ebpfMonLazyMutexLock(ebpfMonLazyMutex *mutex);
void ebpfMonLazyMutexUnlock(ebpfMonLazyMutex *mutex);

#endif

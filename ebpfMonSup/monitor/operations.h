/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell may ask of the monitor: the table of model/monitorOps.h, filled in. */
#ifndef EBPFMON_OPERATIONS_H
#define EBPFMON_OPERATIONS_H

#include <epicsAtomic.h>
#include <epicsMutex.h>

#include "monitor/monitor.h"

/* How far the monitor has come. */
typedef struct {
    epicsMutexId  lock;
    int           starting, failed; /* a start is under way; the last one failed. Under the lock */
    unsigned      generation;       /* filters that came into force. Under the lock */
    ebpfMonFilter early;            /* the filter to begin with; set until the monitor runs. Under the lock */
    int           running;          /* atomic: the kernel part is loaded, and the threads are there */
} ebpfMonLife;

static inline int ebpfMonLifeIsRunning(const ebpfMonLife *life)
{
    return epicsAtomicGetIntT(&life->running);
}

/* Before iocInit. Both structs stay the caller's. */
void ebpfMonOperationsRegister(ebpfMonMonitor *monitor, ebpfMonLife *life,
                               long (*configure)(const ebpfMonSettings *settings), long (*start)(void));

#endif

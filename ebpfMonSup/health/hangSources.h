/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions by which the search for hangs reads threads. The search calls them through a table, so a test can give
 * its own functions and needs neither an IOC nor the kernel part. */
#ifndef EBPFMON_HANGSOURCES_H
#define EBPFMON_HANGSOURCES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "code/stack.h"

/* The publishing thread calls these functions, and holds no lock. */
typedef struct {
    /* As ebpfMonProcThread (host/procStat.h). */
    int (*readThread)(pid_t pid, pid_t tid, char name[16], char *what, size_t size);
    /* As ebpfMonProcKernelStack. */
    void (*readKernelStack)(pid_t pid, pid_t tid, char *text, size_t size);
    /* Sets the frames of a thread, innermost first. Returns their number; 0: the stack could not be read. */
    unsigned (*readStack)(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX]);
    /* The lock set of a record, whose LSET is at this address. 0: it could not be read. */
    uint64_t (*readLockSet)(pid_t pid, uint64_t lset);
    /* As ebpfMonKernelGetReleased (probe/kernelTables.h). */
    uint64_t (*getReleased)(uint32_t tgid, uint64_t lockSet);
} ebpfMonHangSources;

/* The functions of the monitor: they read /proc, the memory of the IOC, and the kernel part. */
extern const ebpfMonHangSources ebpfMonHangSourcesHost;

#endif

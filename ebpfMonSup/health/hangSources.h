/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions by which the search for hangs reads threads. They are a table, so that a test needs no IOC and no kernel
 * part. */
#ifndef EBPFMON_HANGSOURCES_H
#define EBPFMON_HANGSOURCES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "code/stack.h"

/* No function is called under a lock. */
typedef struct {
    /* As ebpfMonProcThread (host/procStat.h). */
    int (*readThread)(pid_t pid, pid_t tid, char name[16], char *what, size_t size);
    /* As ebpfMonProcKernelStack. */
    void (*readKernelStack)(pid_t pid, pid_t tid, char *text, size_t size);
    /* The frames of a thread, innermost first; how many, 0: not known. */
    unsigned (*readStack)(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX]);
    /* As ebpfMonKernelGetReleased (probe/kernelTables.h). */
    uint64_t (*getReleased)(uint32_t tgid, uint64_t lockSet);
} ebpfMonHangSources;

/* /proc, the memory of the IOC, and the kernel part. */
extern const ebpfMonHangSources ebpfMonHangSourcesHost;

#endif

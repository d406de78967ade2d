/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs and tables of one query are made from. */
#ifndef EBPFMON_QUERYORDER_H
#define EBPFMON_QUERYORDER_H

#include "ebpfMonQuery.h"
#include "probe/perfEvents.h"

/* What happens when a program of the query runs. */
typedef enum {
    ebpfMonQueryAtEntry,     /* of a function, or at an offset in it */
    ebpfMonQueryAtReturn,
    ebpfMonQueryCall,        /* from the entry to the return: its duration */
    ebpfMonQueryUsdt,        /* a place that the program's author marked; up to here those that are uprobes */
    ebpfMonQuerySyscall,     /* a system call begins */
    ebpfMonQuerySyscallCall, /* … its duration */
    ebpfMonQueryProfile,     /* so many times a second on each CPU */
    ebpfMonQueryEvent,       /* the kernel, or the CPU, counts something */
    ebpfMonQueryTracepoint,  /* a raw tracepoint */
    ebpfMonQueryCpuWait      /* a thread waited for a CPU, and has it now */
} ebpfMonQuerySource;

typedef struct {
    ebpfMonQuerySource source;
    char     tracepoint[64];
    unsigned rate;      /* of the profile, a second */
    const ebpfMonPerfEvent *event; /* of that source; one in plan.sample is looked at */
    unsigned maxKeys;
    int      needsRecord; /* it asks which record is in hand: dbProcess is probed, too */
    struct ebpfMonQueryPlan plan;
} ebpfMonQueryOrder;

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* An order: what the user part needs to know to make the programs and tables of one query. */
#ifndef EBPFMON_QUERYORDER_H
#define EBPFMON_QUERYORDER_H

#include "ebpfMonQuery.h"
#include "probe/perfEvents.h"

/* At which event a program of the query runs. */
typedef enum {
    ebpfMonQueryAtEntry,     /* the entry of a function, or an offset in it */
    ebpfMonQueryAtReturn,
    ebpfMonQueryCall,        /* a call of a function, from its entry to its return: its duration */
    ebpfMonQueryUsdt,        /* a place that the author of the program marked. This source and those before it are
                              * uprobes */
    ebpfMonQuerySyscall,     /* the begin of a system call */
    ebpfMonQuerySyscallCall, /* a system call, from its begin to its end: its duration */
    ebpfMonQueryProfile,     /* a sample, so many times a second on each CPU */
    ebpfMonQueryEvent,       /* something that the kernel, or the CPU, counts */
    ebpfMonQueryTracepoint,  /* a raw tracepoint */
    ebpfMonQueryCpuWait      /* a thread gets a CPU: how long it waited for it */
} ebpfMonQuerySource;

typedef struct {
    ebpfMonQuerySource source;
    char     tracepoint[64];
    unsigned rate;      /* samples of the profile per second */
    const ebpfMonPerfEvent *event; /* for ebpfMonQueryEvent; the query looks at one of plan.sample events */
    unsigned maxKeys;
    int      needsRecord; /* nonzero: it asks which record the thread processes, so dbProcess() is probed too */
    struct ebpfMonQueryPlan plan;
} ebpfMonQueryOrder;

#endif

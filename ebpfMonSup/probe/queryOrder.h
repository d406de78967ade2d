/* SPDX-License-Identifier: BSD-3-Clause */
/* An order: what the user part needs to know to make the programs and tables of one query. */
#ifndef EBPFMON_QUERYORDER_H
#define EBPFMON_QUERYORDER_H

#include <stddef.h>
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

/* --- sizes of tables ---
 *
 * The sizes of the tables of a query.
 */

typedef struct {
    unsigned key, value;     /* bytes of a key, and of a value in the table "cells" */
    unsigned depth, stride;  /* depth: nested calls of a thread that are kept, a power of two; stride: bytes for one
                              * call */
    unsigned calls;          /* bytes for all calls of a thread */
    unsigned callingThreads; /* threads that can be in a call; 1: the query measures no calls */
    unsigned waits;          /* threads that can wait for a CPU; 1: the query measures no waits */
    unsigned sites;          /* places of USDT probes; 1: the query has none */
    unsigned ring;           /* bytes of the ring */
    size_t   bytes;          /* bytes of all tables, on this host */
} ebpfMonQuerySizes;

/* Calculates the sizes for a query. Any thread. */
void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *sizes);

#endif

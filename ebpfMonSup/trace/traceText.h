/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace as text: a tree of records, each below the one that made it process. Event thread only. */
#ifndef EBPFMON_TRACETEXT_H
#define EBPFMON_TRACETEXT_H

#include "trace/trace.h"
#include "trace/traceWalk.h"

/* --- words for chains ---
 *
 * Texts that both the text of a trace and its spans use. Some are in the memory of the IOC: they are read before
 * (host/lateReads.h). Event thread, under ebpfMonTargetsLock. */

/* What caused the trace: "scan .1 second", "put by …". */
void ebpfMonTraceDescribeCause(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size);

/* How the chain was handed over: "scanOnce", "I/O Intr", "Event", "callback". */
void ebpfMonTraceDescribeHandOver(ebpfMonTarget *t, const ebpfMonTraceChain *c, char *buf, size_t size);

/* VAL of the record as the chain left it; empty if it is no scalar. */
void ebpfMonTraceDescribeValue(ebpfMonTarget *t, const struct ebpfMonChainRec *rec, char *buf, size_t size);

/* Something about a trace: nonzero, or 0. Under ebpfMonTargetsLock. */
typedef int (*ebpfMonTraceTestFn)(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace);

/* Reads all that the functions above need for this trace, if "isWanted" says so. The lock is not held. */
void ebpfMonTraceReadWords(ebpfMonTargets *targets, ebpfMonTrace *trace, ebpfMonTraceTestFn isWanted, void *arg);

/* The IOC of the trace. NULL: it is forgotten, or its records were read again since, and the indexes mean other
 * records. If only aliases came, the trace holds the new catalogue from now on: that has the links. Under
 * ebpfMonTargetsLock. */
ebpfMonTarget *ebpfMonTraceFindTarget(ebpfMonTargets *targets, ebpfMonTrace *trace);

/* ns that the thread slept while it held the lock: without what it slept waiting for the lock. */
uint64_t ebpfMonTraceChainGetSlept(const ebpfMonTraceChain *c);

/* --- traces as text --- */

/* Returns the length. Leaves out what is more than "size" or 100 records; of the latter it says so. "unixOffset": from
 * monotonic time to time since 1970, ns. Texts from the memory of the IOC were read before
 * (ebpfMonTraceReadWords). Under ebpfMonTargetsLock. */
size_t ebpfMonTraceTextWrite(ebpfMonTraceWalk *walk, ebpfMonTarget *t, const ebpfMonTrace *trace, uint64_t unixOffset,
                             char *buf, size_t size);

#endif

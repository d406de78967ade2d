/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that both the text of a trace and its spans use. These functions read memory of the IOC. Event thread, under
 * ebpfMonTargetsLock. */
#ifndef EBPFMON_TRACEWORDS_H
#define EBPFMON_TRACEWORDS_H

#include "trace/trace.h"

/* What caused the trace: "scan .1 second", "put by …". */
void ebpfMonTraceDescribeCause(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size);

/* How the chain was handed over: "scanOnce", "I/O Intr", "Event", "callback". */
void ebpfMonTraceDescribeHandOver(ebpfMonTarget *t, const ebpfMonTraceChain *c, char *buf, size_t size);

/* VAL of the record as the chain left it; empty if it is no scalar. */
void ebpfMonTraceDescribeValue(ebpfMonTarget *t, const struct ebpfMonChainRec *rec, char *buf, size_t size);

/* ns that the thread slept while it held the lock: without what it slept waiting for the lock. */
uint64_t ebpfMonTraceChainGetSlept(const ebpfMonTraceChain *c);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces as spans of OpenTelemetry: one for the first chain, one for each record, one for each chain that was handed
 * over, and one for each message that the trace sent or that caused it. Event thread only.
 */
#ifndef EBPFMON_TRACESPANS_H
#define EBPFMON_TRACESPANS_H

#include "trace/spanMake.h"
#include "trace/traceIds.h"
#include "trace/traceWalk.h"

typedef struct ebpfMonTraceSpans ebpfMonTraceSpans;

/* What it uses; all of it outlives the spans. */
typedef struct {
    ebpfMonTargets *targets;
    ebpfMonTraces *traces;
    ebpfMonTraceIds *ids;
    ebpfMonLinkMessages *linkMessages;
    ebpfMonTraceWalk *walk; /* others may use it, too: not at the same time */
    ebpfMonSpanSink sink;
} ebpfMonTraceSpansUses;

/* NULL without memory. */
ebpfMonTraceSpans *ebpfMonTraceSpansNew(const ebpfMonTraceSpansUses *uses);
void ebpfMonTraceSpansFree(ebpfMonTraceSpans *spans); /* NULL does no harm */

/* Exports the spans of a finished trace, 1000 of its tree at most, and chooses its id. Does nothing unless spans are
 * exported. "unixOffset": from monotonic time to time since 1970, ns; one for the whole trace, because two readings of
 * two clocks are never the same. Reads memory of the IOC. Under ebpfMonTargetsLock. */
void ebpfMonTraceSpansExport(ebpfMonTraceSpans *spans, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset);

#endif

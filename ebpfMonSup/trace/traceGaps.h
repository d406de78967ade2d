/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a trace may lack although no chain says so: messages that it sent, the message that caused it, and lost events.
 * Event thread only.
 */
#ifndef EBPFMON_TRACEGAPS_H
#define EBPFMON_TRACEGAPS_H

#include "trace/linkMessages.h"
#include "trace/trace.h"

typedef struct {
    ebpfMonLinkMessages *messages;                        /* the caller's */
    int      (*exportsSpans)(void *exporter);             /* else nobody needs messages */
    void      *exporter;
    uint64_t (*countLost)(void *arg);                     /* the events that were lost so far; NULL: nobody counts */
    void      *arg;
    uint64_t   lost, lookedAt;                            /* at the last look: how many; monotonic ns */
    uint64_t   from, to;                                  /* between these two times the last events were lost */
} ebpfMonTraceGaps;

/* A chain of the trace has come: counts the values that it wrote through CA links (trace->linkWrites). */
void ebpfMonTraceGapsAddChain(ebpfMonTraceGaps *gaps, ebpfMonTrace *trace, const ebpfMonTraceChain *c);

/* Nonzero: the message of such a value has not been seen, and may still come. "now": monotonic ns. */
int ebpfMonTraceGapsAwaitMessages(const ebpfMonTraceGaps *gaps, const ebpfMonTrace *trace, uint64_t now);

/* Nonzero: events were lost since the last look. Then all traces that are open may lack something. */
int ebpfMonTraceGapsLook(ebpfMonTraceGaps *gaps);

/* Marks the trace, which is finished now, if it may lack something. */
void ebpfMonTraceGapsJudge(const ebpfMonTraceGaps *gaps, ebpfMonTrace *trace);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room trace/, made once and connected: chains become traces, traces become text and spans. */
#ifndef EBPFMON_TRACEROOM_H
#define EBPFMON_TRACEROOM_H

#include "trace/chainParts.h"
#include "trace/putTraces.h"
#include "trace/traceSpans.h"

/* What the room needs of others. They stay the caller's. */
typedef struct {
    ebpfMonTargets    *targets;
    ebpfMonLosses     *losses;
    ebpfMonThreadPuts *threadPuts;
    ebpfMonSpanSink    spans;
    /* A trace that is finished, after it was exported as spans. Nonzero: it is the caller's now, who frees it. Event
     * thread, under the lock of the targets. */
    int  (*finished)(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset);
    /* Nonzero: "finished" will print this trace as text. Threads and lock as above. */
    int  (*isPrinted)(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace);
    ebpfMonEachThreadFn eachThread; /* as in traces.h. Event thread */
    uint64_t (*countLost)(void *arg); /* events that were lost so far. Event thread; called for each trace */
    void  *arg;
} ebpfMonTraceRoomUses;

typedef struct {
    ebpfMonLinkMessages *linkMessages; /* any thread */
    ebpfMonPutTraces    *putTraces;    /* any thread */
    ebpfMonTraces       *traces;       /* event thread, as all that follows but the last */
    ebpfMonChainParts   *chainParts;
    ebpfMonTraceWalk    *walk;
    ebpfMonTraceSpans   *spans;
    ebpfMonPutSpans      putSpans;     /* packet thread */
    ebpfMonTraceRoomUses uses;         /* fixed */
} ebpfMonTraceRoom;

/* The room must stay where it is. 0, or -1 without memory: then nothing is left. */
int ebpfMonTraceRoomMake(ebpfMonTraceRoom *room, const ebpfMonTraceRoomUses *uses);

/* An event of the kernel part; "size": its bytes. One that is too short is left out. 0: it is not about chains. Event
 * thread. */
int ebpfMonTraceRoomAddEvent(ebpfMonTraceRoom *room, const struct ebpfMonHead *head, size_t size);

/* Only while no thread uses them. */
void ebpfMonTraceRoomFree(ebpfMonTraceRoom *room);

#endif

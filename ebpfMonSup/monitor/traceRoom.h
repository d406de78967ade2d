/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room trace/, made once and connected: chains become traces, traces become text and spans. */
#ifndef EBPFMON_TRACEROOM_H
#define EBPFMON_TRACEROOM_H

#include "trace/chainParts.h"
#include "trace/putSpans.h"
#include "trace/traceSpans.h"

struct ebpfMonMonitor;

typedef struct {
    ebpfMonLinkMessages *linkMessages; /* any thread */
    ebpfMonTraces       *traces;       /* event thread, as all that follows but the last */
    ebpfMonChainParts   *chainParts;
    ebpfMonTraceIds     *ids;
    ebpfMonTraceWalk    *walk;
    ebpfMonTraceSpans   *spans;
    ebpfMonPutSpans     *putSpans;     /* packet thread */
} ebpfMonTraceRoom;

/* Makes m->trace, when m->put is made. 0, or -1 without memory: then nothing is left. */
int ebpfMonTraceRoomMake(struct ebpfMonMonitor *m);

/* Only while no thread uses them. */
void ebpfMonTraceRoomFree(ebpfMonTraceRoom *room);

#endif

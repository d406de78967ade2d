/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the modules of the room publish/ and connects them to the other rooms. */
#ifndef EBPFMON_PUBLISHROOM_H
#define EBPFMON_PUBLISHROOM_H

#include "publish/publisher.h"
#include "publish/putPublisher.h"
#include "publish/slowChains.h"

/* What the room needs of other rooms. All of it stays the caller's. */
typedef struct {
    ebpfMonTargets     *targets;
    ebpfMonSearch      *search;
    ebpfMonLosses      *losses;
    ebpfMonAudits      *audits;
    const ebpfMonCosts *costs;
    ebpfMonTraceWalk   *walk;
    ebpfMonPutPublisherCalls puts;
} ebpfMonPublishRoomUses;

typedef struct {
    ebpfMonPublisher    *publisher;    /* any thread; it also has a thread of its own */
    ebpfMonPutPublisher *putPublisher; /* any thread */
    ebpfMonTracePrinter *tracePrinter; /* any thread; it also has a thread of its own */
    ebpfMonSlowChains   *slowChains;   /* event thread */
} ebpfMonPublishRoom;

/* Makes all modules, and starts the thread of the trace printer only. "uses" is copied. 0, or -1 without memory: then
 * nothing is left. */
int ebpfMonPublishRoomMake(ebpfMonPublishRoom *room, const ebpfMonPublishRoomUses *uses);

/* Frees all modules. No thread may use them any more. */
void ebpfMonPublishRoomFree(ebpfMonPublishRoom *room);

#endif

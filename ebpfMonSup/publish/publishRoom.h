/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room publish/, made once and connected to the other rooms. */
#ifndef EBPFMON_PUBLISHROOM_H
#define EBPFMON_PUBLISHROOM_H

#include "publish/publisher.h"
#include "publish/putPublisher.h"
#include "publish/slowChains.h"
#include "publish/tracePrinter.h"

/* What the room needs of others. All of it stays the caller's. */
typedef struct {
    ebpfMonTargets     *targets;
    ebpfMonSearch      *search;
    const ebpfMonCosts *costs;
    ebpfMonTraceWalk   *walk;
    ebpfMonPutPublisherCalls puts;
} ebpfMonPublishRoomUses;

typedef struct {
    ebpfMonPublisher    *publisher;    /* any thread; has one of its own */
    ebpfMonPutPublisher *putPublisher; /* any thread */
    ebpfMonTracePrinter *tracePrinter; /* any thread; has one of its own */
    ebpfMonSlowChains   *slowChains;   /* event thread */
} ebpfMonPublishRoom;

/* No thread runs yet but the printer's. 0, or -1 without memory: then nothing is left. */
int ebpfMonPublishRoomMake(ebpfMonPublishRoom *room, const ebpfMonPublishRoomUses *uses);

/* Only while no thread uses them. */
void ebpfMonPublishRoomFree(ebpfMonPublishRoom *room);

#endif

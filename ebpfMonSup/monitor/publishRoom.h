/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room publish/, made once and connected to the other rooms. */
#ifndef EBPFMON_PUBLISHROOM_H
#define EBPFMON_PUBLISHROOM_H

#include "publish/publisher.h"
#include "publish/putPublisher.h"
#include "publish/slowChains.h"
#include "publish/tracePrinter.h"

struct ebpfMonMonitor;

typedef struct {
    ebpfMonPublisher    *publisher;    /* any thread; has one of its own */
    ebpfMonPutPublisher *putPublisher; /* any thread */
    ebpfMonTracePrinter *tracePrinter; /* any thread; has one of its own */
    ebpfMonSlowChains   *slowChains;   /* event thread */
} ebpfMonPublishRoom;

/* Makes m->publish, when m->watch and m->trace are made. No thread runs yet but the printer's. 0, or -1 without memory:
 * then nothing is left. */
int ebpfMonPublishRoomMake(struct ebpfMonMonitor *m);

/* Only while no thread uses them. */
void ebpfMonPublishRoomFree(ebpfMonPublishRoom *room);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the modules of the room publish/ and connects them to the other rooms. */
#ifndef EBPFMON_PUBLISHROOM_H
#define EBPFMON_PUBLISHROOM_H

#include "model/filter.h"
#include "model/put.h"
#include "publish/publisher.h"
#include "publish/slowChains.h"

/* --- puts ---
 *
 * Publishes a put when everything about it is known: to the rules, the published values and the logs. Any thread. */

/* What this needs of other rooms. The thread that publishes calls these functions, and holds no lock. */
typedef struct {
    /* Sets whether the put is unexpected, and by which rule. */
    void (*judge)(void *arg, ebpfMonPut *put);
    /* Copies the filter that applies now. */
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Writes a put to the logs. */
    void (*log)(void *arg, const ebpfMonPut *put);
    void *arg;
} ebpfMonPutCalls;

/* Publishes a put of a watched IOC; its texts are complete. First the rules judge it. An unexpected put is kept until
 * somebody acknowledges it, whatever the filter says. If the put passes the filter, it goes to the published values and
 * the logs, and the PVs of its groups process. */
void ebpfMonPutPublish(const ebpfMonPutCalls *calls, ebpfMonPut *put);

/* Publishes a put to the monitor's own PVs. The logs get it, whatever the filter says. The published values get it if
 * it was refused or passes the filter. The rules do not judge it, because the list of operators already did; else each
 * acknowledgement could be an unexpected put. */
void ebpfMonPutPublishOwn(const ebpfMonPutCalls *calls, ebpfMonPut *put);

/* --- the room --- */

/* What the room needs of other rooms. All of it stays the caller's. */
typedef struct {
    ebpfMonTargets     *targets;
    ebpfMonSearch      *search;
    ebpfMonLosses      *losses;
    ebpfMonAudits      *audits;
    const ebpfMonCosts *costs;
    ebpfMonTraceWalk   *walk;
    ebpfMonPutCalls     puts;
} ebpfMonPublishRoomUses;

typedef struct {
    ebpfMonPublisher    *publisher;    /* any thread; it also has a thread of its own */
    ebpfMonPutCalls      puts;         /* fixed */
    ebpfMonTracePrinter *tracePrinter; /* any thread; it also has a thread of its own */
    ebpfMonSlowChains   *slowChains;   /* event thread */
} ebpfMonPublishRoom;

/* Makes all modules, and starts the thread of the trace printer only. "uses" is copied. 0, or -1 without memory: then
 * nothing is left. */
int ebpfMonPublishRoomMake(ebpfMonPublishRoom *room, const ebpfMonPublishRoomUses *uses);

/* Frees all modules. No thread may use them any more. */
void ebpfMonPublishRoomFree(ebpfMonPublishRoom *room);

#endif

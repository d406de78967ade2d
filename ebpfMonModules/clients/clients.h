/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who uses which PV. This file makes the modules of the room and connects them. A use is seen in a put, in a packet,
 * or, every ten seconds, in the list of clients of a server. A module may keep them (ebpfMonModules/uses).
 */
#ifndef EBPFMON_USAGE_H
#define EBPFMON_USAGE_H

#include "common/textReport.h"
#include "model/put.h"
#include "put/putClients.h"
#include "clients/clientLooker.h"
#include "clients/clientTable.h"
#include "clients/iocConnections.h"
#include "clients/packetClients.h"
#include "wire/wireEvent.h"

/* Where uses go: the module that keeps them. Members NULL: there is none. */
typedef struct {
    void (*looked)(void *arg); /* the clients of all servers were read. Looking thread, without a lock */
    void (*put)(void *arg, const ebpfMonPut *put); /* a finished put, also one that the filter hides */
    /* A read, a subscription, a channel of pvAccess that was created or is still open. "server": the name of the
     * server; "iocId": its number, 0: it is no watched IOC. */
    void (*packet)(void *arg, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server);
    void *arg;
} ebpfMonUseSink;

/* All members but the sink have locks of their own. */
typedef struct ebpfMonUsage {
    ebpfMonPutClients   *clients;  /* the caller's */
    ebpfMonUseSink       sink;     /* set before the threads start */
    ebpfMonUpdateCounts *counts;   /* values that servers sent to clients */
    ebpfMonFollowedCircuits *followed;
    ebpfMonPvaClients   *pvaClients;
    ebpfMonClientTable  *table;
    ebpfMonClientLooker *looker;   /* has the thread of the room */
} ebpfMonUsage;

/* Both arguments stay the caller's. NULL without memory. */
ebpfMonUsage *ebpfMonUsageNew(ebpfMonTargets *targets, ebpfMonPutClients *clients);
/* No thread may use "usage" any more. NULL does no harm. */
void ebpfMonUsageFree(ebpfMonUsage *usage);

/* Add to the report the clients of the IOCs that match, or the channels to PVs that match. They request a look
 * first. If the look takes more than 5 s, they show the result of the last one, and the report says so. Any thread,
 * without a lock. */

void ebpfMonUsageAddClients(ebpfMonUsage *usage, ebpfMonTextReport *report, const char *iocPattern);
void ebpfMonUsageAddUsers(ebpfMonUsage *usage, ebpfMonTextReport *report, const char *pvPattern);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who uses which PV. This file makes the modules of the room and connects them. A use is seen in a put, in a packet,
 * or, every ten seconds, in the list of clients of a server. A module may keep them (ebpfMonModules/uses).
 *
 * Any thread may call these functions, except New, Start, Stop and Free, which belong to the thread that starts the
 * monitor. The caller holds no lock.
 */
#ifndef EBPFMON_USAGE_H
#define EBPFMON_USAGE_H

#include "common/textReport.h"
#include "model/put.h"
#include "put/putClients.h"
#include "usage/clients.h"
#include "usage/pvaClients.h"
#include "wire/wireEvent.h"

typedef struct ebpfMonUsage ebpfMonUsage;

/* Both arguments stay the caller's. NULL without memory. */
ebpfMonUsage *ebpfMonUsageNew(ebpfMonTargets *targets, ebpfMonPutClients *clients);
/* No thread may use "usage" any more. NULL does no harm. */
void ebpfMonUsageFree(ebpfMonUsage *usage);

/* Where uses go: the module that keeps them. */
typedef struct {
    void (*looked)(void *arg); /* the clients of all servers were read. Looking thread, without a lock */
    void (*put)(void *arg, const ebpfMonPut *put); /* as ebpfMonUsageAddPut: also one that the filter hides */
    void (*packet)(void *arg, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server); /* as …AddPacket */
    void *arg;
} ebpfMonUseSink;

/* Copies the sink. From now on looks also count the connections that are not seen. Before the threads start. */
void ebpfMonUsageSetSink(ebpfMonUsage *usage, const ebpfMonUseSink *sink);
ebpfMonPutClients *ebpfMonUsageGetPutClients(const ebpfMonUsage *usage);

/* Start and end the thread of the room. Start: 0, or -1 without memory. Stop: 0, or nonzero: the thread does not end.
 * NULL does no harm to Stop. */
int ebpfMonUsageStart(ebpfMonUsage *usage);
int ebpfMonUsageStop(ebpfMonUsage *usage);

/* --- Add what was seen --- */

/* Adds a finished put. */

void ebpfMonUsageAddPut(ebpfMonUsage *usage, const ebpfMonPut *put);

/* Nonzero: the caller should add reads and subscriptions from packets. */
int ebpfMonUsageWantsPackets(ebpfMonUsage *usage);
/* Adds one of them, or a channel of pvAccess that was created or is still open. "server": the name of the server;
 * "iocId": its number, 0: it is no watched IOC. */
void ebpfMonUsageAddPacket(ebpfMonUsage *usage, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server);

/* Adds any event of a circuit: it begins, has a gap, or ends. */
void ebpfMonUsageAddCircuit(ebpfMonUsage *usage, const ebpfMonWireEvent *ev);
/* A client of this IOC has sent something that was not read (TLS, a gap): it may have used any record. */
void ebpfMonUsageNoteUnread(ebpfMonUsage *usage, uint32_t iocId);

/* Adds a value that a server sent to a client (ebpfMonWireValue). */
void ebpfMonUsageAddUpdate(ebpfMonUsage *usage, const ebpfMonWireEvent *ev);

/* --- The clients of the servers, for modules --- */

ebpfMonPvaClients *ebpfMonUsageGetPvaClients(ebpfMonUsage *usage);
ebpfMonClientTable *ebpfMonUsageGetTable(ebpfMonUsage *usage);
int  ebpfMonUsageLook(ebpfMonUsage *usage, double seconds); /* as ebpfMonClientLookerLook … */
void ebpfMonUsageRequestLook(ebpfMonUsage *usage);          /* … and ebpfMonClientLookerRequest */

/* --- Reports --- */

/* Add to the report the clients of the IOCs that match, or the channels to PVs that match. They request a look
 * first. If the look takes more than 5 s, they show the result of the last one, and the report says so. */

void ebpfMonUsageAddClients(ebpfMonUsage *usage, ebpfMonTextReport *report, const char *iocPattern);
void ebpfMonUsageAddUsers(ebpfMonUsage *usage, ebpfMonTextReport *report, const char *pvPattern);

/* Call this when the patterns of the published clients were changed: publishes the result of the last look again. */
void ebpfMonUsagePublish(ebpfMonUsage *usage);

#endif

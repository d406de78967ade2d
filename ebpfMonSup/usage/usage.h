/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who uses which PV. This file makes the modules of the room and connects them. A use is seen in a put, in a packet,
 * or, every ten seconds, in the list of clients of a server. If a file is configured (ebpfMonUsage), uses are kept in
 * it.
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
#include "usage/useKeeper.h"
#include "usage/useNotes.h"
#include "wire/wireEvent.h"

/* --- where uses are seen ---
 *
 * Makes notes of uses from the places where they are seen: puts, packets, and the lists of clients. No state; any
 * thread, without a lock. If notes are not wanted, these functions do nothing.
 */

/* Notes a finished put, if it was made or may have been made. */
void ebpfMonUseSourcesAddPut(ebpfMonUseNotes *notes, const ebpfMonPut *put);

/* Notes a read or a subscription that was seen in a packet. "server": the name of the server. If the channel was
 * opened before the monitor read packets, the event has no name; then the name is looked up in the table, by "iocId"
 * (0: not possible). */
void ebpfMonUseSourcesAddPacket(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPutClients *clients,
                                const ebpfMonWireEvent *ev, uint32_t iocId, const char *server);

/* Notes all channels and subscriptions of the last look. Takes the lock of the table. */
void ebpfMonUseSourcesAddLook(ebpfMonUseNotes *notes, ebpfMonClientTable *table);

/* --- the room --- */

typedef struct ebpfMonUsage ebpfMonUsage;

/* Targets and clients stay the caller's; the configuration is copied. NULL without memory. */
ebpfMonUsage *ebpfMonUsageNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, const ebpfMonUsageConf *conf);
/* No thread may use "usage" any more. NULL does no harm. */
void ebpfMonUsageFree(ebpfMonUsage *usage);

/* Start and end both threads of the room. Start: 0, or -1 without memory. Stop: 0, or nonzero: a thread does not
 * end. NULL does no harm to Stop. */
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

/* Adds to the report the records that match and that nobody used for so many days. 0, or -1: "why" says what is
 * wrong. It may take some seconds. */
int ebpfMonUsageAddUnused(ebpfMonUsage *usage, ebpfMonTextReport *report, double days, const char *recordPattern,
                          char *why, size_t size);

/* Call this when the patterns of the published clients were changed: publishes the result of the last look again. */
void ebpfMonUsagePublish(ebpfMonUsage *usage);

#endif

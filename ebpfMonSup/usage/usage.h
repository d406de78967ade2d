/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who uses what: the modules of this room, made once and connected. What is told of comes from puts, from packets, and
 * every ten seconds from the servers' own lists of clients; it is kept in a file where one is configured.
 *
 * Any thread may call these functions, but for New, Start, Stop and Free.
 */
#ifndef EBPFMON_USAGE_H
#define EBPFMON_USAGE_H

#include "common/textReport.h"
#include "model/put.h"
#include "put/putClients.h"
#include "usage/useKeeper.h"
#include "wire/wireEvent.h"

typedef struct ebpfMonUsage ebpfMonUsage;

/* Targets and clients stay the caller's; the configuration is copied. NULL without memory. */
ebpfMonUsage *ebpfMonUsageNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, const ebpfMonUsageConf *conf);
/* When no thread uses it any more. NULL does no harm. */
void ebpfMonUsageFree(ebpfMonUsage *usage);

/* Both threads of the room. Start: 0, or -1 without memory. Stop: nonzero if one does not end; NULL: 0. */
int ebpfMonUsageStart(ebpfMonUsage *usage);
int ebpfMonUsageStop(ebpfMonUsage *usage);

/* --- What was seen --- */

/* A put that is finished. */
void ebpfMonUsageAddPut(ebpfMonUsage *usage, const ebpfMonPut *put);

/* Nonzero: reads and subscriptions in packets are wanted. */
int ebpfMonUsageWantsPackets(ebpfMonUsage *usage);
/* One of them, of a server with this name. */
void ebpfMonUsageAddPacket(ebpfMonUsage *usage, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server);

/* A value that a server sent to a client. */
void ebpfMonUsageAddUpdate(ebpfMonUsage *usage, const ebpfMonWireEvent *ev);

/* --- What is asked --- */

/* Adds the clients of the IOCs that match, or the channels to PVs that match, after a look at the servers' lists. A look
 * that takes more than 5 s is not waited for: then the last one is shown, and the report says so. */
void ebpfMonUsageAddClients(ebpfMonUsage *usage, ebpfMonTextReport *report, const char *iocPattern);
void ebpfMonUsageAddUsers(ebpfMonUsage *usage, ebpfMonTextReport *report, const char *pvPattern);

/* Adds the records that match and that nobody used for so many days. 0, or -1: "why". */
int ebpfMonUsageAddUnused(ebpfMonUsage *usage, ebpfMonTextReport *report, double days, const char *recordPattern,
                          char *why, size_t size);

/* The patterns of the published clients are others: publishes what was seen last. */
void ebpfMonUsagePublish(ebpfMonUsage *usage);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "usage/clients.h"
#include "usage/iocConnections.h"
#include "usage/usage.h"

#define LOOK_SECONDS 5.0

struct ebpfMonUsage {
    ebpfMonPutClients   *clients; /* fixed, as the sink; those below have locks of their own */
    ebpfMonUseSink       sink;    /* members NULL: there is none */
    ebpfMonUpdateCounts *counts;
    ebpfMonFollowedCircuits *followed;
    ebpfMonPvaClients   *pvaClients;
    ebpfMonClientTable  *table;
    ebpfMonClientLooker *looker;
};

static void onLook(void *arg)
{
    const ebpfMonUsage *u = arg;

    if (u->sink.looked)
        u->sink.looked(u->sink.arg);
}

ebpfMonUsage *ebpfMonUsageNew(ebpfMonTargets *targets, ebpfMonPutClients *clients)
{
    ebpfMonUsage *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->clients = clients;
    u->counts = ebpfMonUpdateCountsNew();
    u->followed = ebpfMonFollowedCircuitsNew();
    u->pvaClients = ebpfMonPvaClientsNew(clients);
    if (u->counts && u->followed && u->pvaClients)
        u->table = ebpfMonClientTableNew(targets, clients, u->counts);
    if (u->table)
        ebpfMonClientTableSetPvaClients(u->table, u->pvaClients);
    if (u->table)
        u->looker = ebpfMonClientLookerNew(u->table, onLook, u);
    if (u->looker)
        return u;
    ebpfMonUsageFree(u);
    return NULL;
}

void ebpfMonUsageFree(ebpfMonUsage *u)
{
    if (!u)
        return;
    ebpfMonClientLookerFree(u->looker);
    ebpfMonClientTableFree(u->table);
    ebpfMonUpdateCountsFree(u->counts);
    ebpfMonFollowedCircuitsFree(u->followed);
    ebpfMonPvaClientsFree(u->pvaClients);
    free(u);
}

void ebpfMonUsageSetSink(ebpfMonUsage *u, const ebpfMonUseSink *sink)
{
    u->sink = *sink;
    ebpfMonClientTableSetFollowed(u->table, u->followed);
}

ebpfMonPutClients *ebpfMonUsageGetPutClients(const ebpfMonUsage *u)
{
    return u->clients;
}

int ebpfMonUsageStart(ebpfMonUsage *u)
{
    return ebpfMonClientLookerStart(u->looker);
}

int ebpfMonUsageStop(ebpfMonUsage *u)
{
    return u ? ebpfMonClientLookerStop(u->looker) : 0;
}

void ebpfMonUsageAddPut(ebpfMonUsage *u, const ebpfMonPut *put)
{
    if (u->sink.put)
        u->sink.put(u->sink.arg, put);
}

int ebpfMonUsageWantsPackets(ebpfMonUsage *u)
{
    return u->sink.packet != NULL;
}

void ebpfMonUsageAddPacket(ebpfMonUsage *u, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server)
{
    u->sink.packet(u->sink.arg, ev, iocId, server);
}

void ebpfMonUsageAddCircuit(ebpfMonUsage *u, const ebpfMonWireEvent *ev)
{
    ebpfMonFollowedCircuitsAdd(u->followed, ev);
    ebpfMonPvaClientsAdd(u->pvaClients, ev);
}

void ebpfMonUsageNoteUnread(ebpfMonUsage *u, uint32_t iocId)
{
    ebpfMonClientTableNoteUnread(u->table, iocId);
}

void ebpfMonUsageAddUpdate(ebpfMonUsage *u, const ebpfMonWireEvent *ev)
{
    ebpfMonUpdateCountsAdd(u->counts, ev);
}

ebpfMonPvaClients *ebpfMonUsageGetPvaClients(ebpfMonUsage *u)
{
    return u->pvaClients;
}

ebpfMonClientTable *ebpfMonUsageGetTable(ebpfMonUsage *u)
{
    return u->table;
}

int ebpfMonUsageLook(ebpfMonUsage *u, double seconds)
{
    return ebpfMonClientLookerLook(u->looker, seconds);
}

void ebpfMonUsageRequestLook(ebpfMonUsage *u)
{
    ebpfMonClientLookerRequest(u->looker);
}

static void requestLook(ebpfMonUsage *u, ebpfMonTextReport *report)
{
    if (ebpfMonClientLookerLook(u->looker, LOOK_SECONDS))
        ebpfMonTextReportAdd(report, "Reading the clients takes longer than %.0f s. The last complete list:\n",
                             LOOK_SECONDS);
}

void ebpfMonUsageAddClients(ebpfMonUsage *u, ebpfMonTextReport *report, const char *iocPattern)
{
    requestLook(u, report);
    ebpfMonClientReportAddClients(report, u->table, iocPattern);
}

void ebpfMonUsageAddUsers(ebpfMonUsage *u, ebpfMonTextReport *report, const char *pvPattern)
{
    requestLook(u, report);
    ebpfMonClientReportAddUsers(report, u->table, pvPattern);
}

void ebpfMonUsagePublish(ebpfMonUsage *u)
{
    ebpfMonClientLookerPublish(u->looker);
}

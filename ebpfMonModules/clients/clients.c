/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "clients/clients.h"

#define LOOK_SECONDS 5.0

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
        ebpfMonClientTableSetFollowed(u->table, u->followed);
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

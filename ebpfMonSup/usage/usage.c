/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "model/published.h"
#include "usage/clientLooker.h"
#include "usage/clientReport.h"
#include "usage/followedCircuits.h"
#include "usage/unusedReport.h"
#include "usage/usage.h"
#include "usage/useSources.h"

#define LOOK_SECONDS 5.0

struct ebpfMonUsage {
    ebpfMonUsageConf     conf;    /* never changed */
    ebpfMonTargets      *targets;
    ebpfMonPutClients   *clients;
    ebpfMonUseNotes     *notes;   /* this module and those below have locks of their own */
    ebpfMonUseKeeper    *keeper;
    ebpfMonUpdateCounts *counts;
    ebpfMonFollowedCircuits *followed;
    ebpfMonClientTable  *table;
    ebpfMonClientLooker *looker;
};

static void onLook(void *arg)
{
    ebpfMonUsage *u = arg;

    ebpfMonUseSourcesAddLook(u->notes, u->table);
}

/* By lists and connections: EBPFMON_WATCHED_… */
static int findWays(void *arg, uint32_t iocId)
{
    ebpfMonUsage *u = arg;
    const ebpfMonClientIoc *ioc;
    int ways = 0;

    ebpfMonClientTableLock(u->table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(u->table, n)) != NULL; n++)
        if (ioc->id == iocId)
            ways = (ioc->isRead ? EBPFMON_WATCHED_LISTS : 0) |
                   (ebpfMonClientTableSeesAll(ioc) ? EBPFMON_WATCHED_CONNECTIONS : 0);
    ebpfMonClientTableUnlock(u->table);
    return ways;
}

ebpfMonUsage *ebpfMonUsageNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, const ebpfMonUsageConf *conf)
{
    ebpfMonUsage *u = calloc(1, sizeof(*u));
    const ebpfMonUseKeeperCalls calls = { .findWays = findWays, .arg = u };

    if (!u)
        return NULL;
    u->conf = *conf;
    u->targets = targets;
    u->clients = clients;
    u->notes = ebpfMonUseNotesNew();
    u->counts = ebpfMonUpdateCountsNew();
    u->followed = ebpfMonFollowedCircuitsNew();
    if (u->counts && u->followed)
        u->table = ebpfMonClientTableNew(targets, clients, u->counts);
    if (u->table && conf->file[0])
        ebpfMonClientTableSetFollowed(u->table, u->followed);
    if (u->table)
        u->looker = ebpfMonClientLookerNew(u->table, onLook, u);
    if (u->notes)
        u->keeper = ebpfMonUseKeeperNew(targets, u->notes, conf, &calls);
    if (u->looker && u->keeper)
        return u;
    ebpfMonUsageFree(u);
    return NULL;
}

void ebpfMonUsageFree(ebpfMonUsage *u)
{
    if (!u)
        return;
    ebpfMonUseKeeperFree(u->keeper);
    ebpfMonClientLookerFree(u->looker);
    ebpfMonClientTableFree(u->table);
    ebpfMonUpdateCountsFree(u->counts);
    ebpfMonFollowedCircuitsFree(u->followed);
    ebpfMonUseNotesFree(u->notes);
    free(u);
}

int ebpfMonUsageStart(ebpfMonUsage *u)
{
    return ebpfMonUseKeeperStart(u->keeper) || ebpfMonClientLookerStart(u->looker) ? -1 : 0;
}

int ebpfMonUsageStop(ebpfMonUsage *u)
{
    int left;

    if (!u)
        return 0;
    left = ebpfMonClientLookerStop(u->looker);
    return left | ebpfMonUseKeeperStop(u->keeper);
}

void ebpfMonUsageAddPut(ebpfMonUsage *u, const ebpfMonPut *put)
{
    ebpfMonUseSourcesAddPut(u->notes, put);
}

int ebpfMonUsageWantsPackets(ebpfMonUsage *u)
{
    return ebpfMonUseNotesAreWanted(u->notes);
}

void ebpfMonUsageAddPacket(ebpfMonUsage *u, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server)
{
    ebpfMonUseSourcesAddPacket(u->notes, u->table, u->clients, ev, iocId, server);
}

void ebpfMonUsageAddCircuit(ebpfMonUsage *u, const ebpfMonWireEvent *ev)
{
    ebpfMonFollowedCircuitsAdd(u->followed, ev);
}

void ebpfMonUsageNoteUnread(ebpfMonUsage *u, uint32_t iocId)
{
    ebpfMonClientTableNoteUnread(u->table, iocId);
}

void ebpfMonUsageAddUpdate(ebpfMonUsage *u, const ebpfMonWireEvent *ev)
{
    ebpfMonUpdateCountsAdd(u->counts, ev);
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

int ebpfMonUsageAddUnused(ebpfMonUsage *u, ebpfMonTextReport *report, double days, const char *recordPattern, char *why,
                          size_t size)
{
    ebpfMonUseStore *store;
    int rc;

    if (!u->conf.file[0]) {
        snprintf(why, size, EBPFMON_NO_USAGE ", before iocInit");
        return -1;
    }
    /* the newest uses must be in the file before it is read */
    if (ebpfMonClientLookerLook(u->looker, LOOK_SECONDS) || ebpfMonUseKeeperFlush(u->keeper, LOOK_SECONDS))
        ebpfMonTextReportAdd(report, "The newest uses are not in the file (see USAGE_MSG).\n");
    store = ebpfMonUseStoreOpen(u->conf.file, 0, 0, why, size);
    if (!store)
        return -1;
    rc = ebpfMonUnusedReportAdd(report, u->table, u->targets, store, days, recordPattern, why, size);
    ebpfMonUseStoreClose(store);
    return rc;
}

void ebpfMonUsagePublish(ebpfMonUsage *u)
{
    ebpfMonClientLookerPublish(u->looker);
}

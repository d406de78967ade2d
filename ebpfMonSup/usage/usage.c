/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "common/hash.h"
#include "model/published.h"
#include "usage/clients.h"
#include "usage/iocConnections.h"
#include "usage/unusedReport.h"
#include "usage/usage.h"

/* --- where uses are seen --- */

#define WHO_SIZE 192

/* The same form as the writer of a put (put/writerText.c). */
static void formatWho(const ebpfMonPutClient *client, char *buf, size_t size)
{
    char local[160] = "";

    if (client->peerPid)
        snprintf(local, sizeof(local), " %s[%u]%s%s", client->command, (unsigned)client->peerPid,
                 client->container[0] ? " in " : "", client->container);
    snprintf(buf, size, "%s@%s%s", client->user[0] ? client->user : "?", client->host, local);
}

static uint64_t hashPeer(uint32_t addr, uint16_t port)
{
    return ebpfMonHashMix((uint64_t)addr << 16 | port) | 1;
}

void ebpfMonUseSourcesAddPut(ebpfMonUseNotes *notes, const ebpfMonPut *put)
{
    uint64_t now = ebpfMonClockMonotonic();
    int64_t age = now > put->at ? (int64_t)((now - put->at) / EBPFMON_SECOND_NS) : 0;
    char who[WHO_SIZE];

    if (!ebpfMonUseNotesAreWanted(notes) || strncmp(put->pv, "sid ", 4) == 0 ||
        (put->result != ebpfMonPutOk && put->result != ebpfMonPutUnknown && put->result != ebpfMonPutSent))
        return;
    if (put->through == ebpfMonByLink)
        snprintf(who, sizeof(who), "link %s", put->link);
    else
        snprintf(who, sizeof(who), "%s", put->who);
    if (ebpfMonUseNotesAddLate(notes, put->ioc, put->pv, ebpfMonUseWrite,
                               ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, who, strlen(who)) | 1, ebpfMonClockUnixSeconds(),
                               age, 1))
        ebpfMonUseNotesSetWho(notes, put->ioc, put->pv, ebpfMonUseWrite, who);
}

/* Finds the name of a channel in the server's list. Nonzero: it is found. */
static int findName(ebpfMonClientTable *table, uint32_t iocId, const struct ebpfMonPeer *peer, uint32_t sid, char *buf,
                    size_t size)
{
    const ebpfMonClientIoc *ioc;
    int found = 0;

    ebpfMonClientTableLock(table);
    for (unsigned n = 0; !found && (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        const ebpfMonCaUse *use = NULL;

        if (ioc->id == iocId && ioc->clients)
            use = ebpfMonCaClientsFindUse(ioc->clients, peer->addr, peer->port, sid);
        found = use != NULL;
        if (found)
            snprintf(buf, size, "%s", ioc->clients->names + use->name);
    }
    ebpfMonClientTableUnlock(table);
    return found;
}

void ebpfMonUseSourcesAddPacket(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPutClients *clients,
                                const ebpfMonWireEvent *ev, uint32_t iocId, const char *server)
{
    ebpfMonUseKind kind = ev->kind == ebpfMonWireRead ? ebpfMonUseRead :
                          ev->kind == ebpfMonWireSubscribe || ev->isUpdate ? ebpfMonUseSubscribe : ebpfMonUseConnect;
    char name[128], who[WHO_SIZE];
    ebpfMonPutClient client;

    if (!ebpfMonUseNotesAreWanted(notes))
        return;
    if (ev->name[0])
        ebpfMonTextCopy(name, sizeof(name), ev->name);
    else if (ev->protocol != ebpfMonWireCa || !findName(table, iocId, &ev->peer, ev->sid, name, sizeof(name)))
        return;
    if (!ebpfMonUseNotesAdd(notes, server, name, kind, hashPeer(ev->peer.addr, ev->peer.port),
                            ebpfMonClockUnixSeconds(), kind == ebpfMonUseRead))
        return;
    ebpfMonPutClientsFind(clients, &ev->peer, &ev->first, ev->user, ev->host, &client);
    formatWho(&client, who, sizeof(who));
    ebpfMonUseNotesSetWho(notes, server, name, kind, who);
}

static void addUse(ebpfMonUseNotes *notes, const ebpfMonClientIoc *ioc, const ebpfMonCaUse *use, int64_t at)
{
    const ebpfMonCaClient *client = &ioc->clients->client[use->client];
    ebpfMonUseKind kind = use->subscriptions ? ebpfMonUseSubscribe : ebpfMonUseConnect;
    const char *name = ioc->clients->names + use->name;
    char who[WHO_SIZE];

    if (!ebpfMonUseNotesAdd(notes, ioc->name, name, kind, hashPeer(client->addr, client->port), at, 0))
        return;
    formatWho(&ioc->facts[use->client].who, who, sizeof(who));
    ebpfMonUseNotesSetWho(notes, ioc->name, name, kind, who);
}

void ebpfMonUseSourcesAddLook(ebpfMonUseNotes *notes, ebpfMonClientTable *table)
{
    const ebpfMonClientIoc *ioc;
    int64_t at = ebpfMonClockUnixSeconds();

    if (!ebpfMonUseNotesAreWanted(notes))
        return;
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++)
        for (size_t i = 0; ioc->isRead && i < ioc->clients->uses; i++)
            addUse(notes, ioc, &ioc->clients->use[i], at);
    ebpfMonClientTableUnlock(table);
}

/* --- the room --- */

#define LOOK_SECONDS 5.0

struct ebpfMonUsage {
    ebpfMonUsageConf     conf;    /* never changed */
    ebpfMonTargets      *targets;
    ebpfMonPutClients   *clients;
    ebpfMonUseNotes     *notes;   /* this module and those below have locks of their own */
    ebpfMonUseKeeper    *keeper;
    ebpfMonUpdateCounts *counts;
    ebpfMonFollowedCircuits *followed;
    ebpfMonPvaClients   *pvaClients;
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
    u->pvaClients = ebpfMonPvaClientsNew(clients);
    if (u->counts && u->followed && u->pvaClients)
        u->table = ebpfMonClientTableNew(targets, clients, u->counts);
    if (u->table)
        ebpfMonClientTableSetPvaClients(u->table, u->pvaClients);
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
    ebpfMonPvaClientsFree(u->pvaClients);
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

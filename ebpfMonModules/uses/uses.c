/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "uses/unusedReport.h"
#include "uses/uses.h"

/* --- where uses are seen --- */

#define WHO_SIZE 192

/* The same form as the writer of a put (put/valueText.c). */
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

/* --- the module --- */

#define LOOK_SECONDS 5.0

struct ebpfMonUses {
    ebpfMonUsageConf   conf;    /* not changed after the start */
    ebpfMonUseNotes   *notes;   /* has a lock of its own */
    const ebpfMonModule *module;
    ebpfMonUsageValues shown;   /* under the lock of the published values */
    /* of the monitor, from the start on */
    ebpfMonTargets    *targets;
    ebpfMonUsage      *usage;
    ebpfMonUseKeeper  *keeper;  /* NULL: not started */
};

ebpfMonUses *ebpfMonUsesNew(const ebpfMonModule *module)
{
    ebpfMonUses *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->module = module;
    strcpy(u->shown.message, EBPFMON_NO_USAGE);
    u->notes = ebpfMonUseNotesNew();
    if (u->notes)
        return u;
    free(u);
    return NULL;
}

const ebpfMonUsageValues *ebpfMonUsesGetValues(const ebpfMonUses *u)
{
    return &u->shown;
}

int ebpfMonUsesConfigure(ebpfMonUses *u, const char *file, int megabytes, char *why, size_t size)
{
    if (u->keeper) {
        snprintf(why, size, "already started; call it before iocInit");
        return -1;
    }
    return ebpfMonUsageConfSet(&u->conf, file, megabytes, why, size);
}

static void onLook(void *arg)
{
    ebpfMonUses *u = arg;

    ebpfMonUseSourcesAddLook(u->notes, u->usage->table);
}

static void onPut(void *arg, const ebpfMonPut *put)
{
    ebpfMonUses *u = arg;

    ebpfMonUseSourcesAddPut(u->notes, put);
}

static void onPacket(void *arg, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server)
{
    ebpfMonUses *u = arg;

    ebpfMonUseSourcesAddPacket(u->notes, u->usage->table, u->usage->clients, ev, iocId,
                               server);
}

/* By lists and connections: EBPFMON_WATCHED_… */
static int findWays(void *arg, uint32_t iocId)
{
    ebpfMonUses *u = arg;
    ebpfMonClientTable *table = u->usage->table;
    const ebpfMonClientIoc *ioc;
    int ways = 0;

    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++)
        if (ioc->id == iocId)
            ways = (ioc->isRead ? EBPFMON_WATCHED_LISTS : 0) |
                   (ebpfMonClientTableSeesAll(ioc) ? EBPFMON_WATCHED_CONNECTIONS : 0);
    ebpfMonClientTableUnlock(table);
    return ways;
}

int ebpfMonUsesStart(void *uses, const ebpfMonModuleCore *core)
{
    ebpfMonUses *u = uses;
    const ebpfMonUseSink sink = { .looked = onLook, .put = onPut, .packet = onPacket, .arg = u };
    const ebpfMonUseKeeperCalls calls = { .findWays = findWays, .arg = u };

    ebpfMonUseKeeperFree(u->keeper); /* of a start that failed */
    u->targets = core->targets;
    u->usage = core->usage;
    u->keeper = ebpfMonUseKeeperNew(u->module, &u->shown, u->targets, u->notes, &u->conf, &calls);
    if (!u->keeper)
        return -1;
    if (u->conf.file[0]) {
        u->usage->sink = sink;
        ebpfMonClientTableSetFollowed(u->usage->table, u->usage->followed); /* looks count what is not seen, too */
    }
    return ebpfMonUseKeeperStart(u->keeper);
}

int ebpfMonUsesStop(void *uses, double seconds)
{
    ebpfMonUses *u = uses;

    return ebpfMonUseKeeperStop(u->keeper);
}

int ebpfMonUsesAddUnused(ebpfMonUses *u, ebpfMonTextReport *report, double days, const char *recordPattern, char *why,
                         size_t size)
{
    ebpfMonUseStore *store;
    int rc;

    if (!u->conf.file[0]) {
        snprintf(why, size, EBPFMON_NO_USAGE ", before iocInit");
        return -1;
    }
    /* the newest uses must be in the file before it is read */
    if (ebpfMonClientLookerLook(u->usage->looker, LOOK_SECONDS) || ebpfMonUseKeeperFlush(u->keeper, LOOK_SECONDS))
        ebpfMonTextReportAdd(report, "The newest uses are not in the file (see USAGE_MSG).\n");
    store = ebpfMonUseStoreOpen(u->conf.file, 0, 0, why, size);
    if (!store)
        return -1;
    rc = ebpfMonUnusedReportAdd(report, u->usage->table, u->targets, store, days, recordPattern, why,
                                size);
    ebpfMonUseStoreClose(store);
    return rc;
}

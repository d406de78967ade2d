/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps who used which PV last in a file, if one is configured (ebpfMonUsage). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <dbDefs.h>
#include <epicsExport.h>
#include <errlog.h>

#include "clients/clients.h"
#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "common/textReport.h"
#include "record/shellCommand.h"
#include "uses/unusedReport.h"
#include "uses/useKeeper.h"
#include "uses/useNotes.h"
#include "uses/uses.h"

/* --- where uses are seen --- */

#define WHO_SIZE 192

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

/* A use by a process of this host, which may be a gateway: what needs the names of others is done without the lock of
 * the table. */
typedef struct {
    char name[128], ioc[EBPFMON_IOCNAME_SIZE];
    ebpfMonUseKind kind;
    ebpfMonPutClient client;
    uint64_t identity;
} lateUse;

/* Of a gateway: then those behind it have used it, of a read the newest one of them. */
static void noteUsers(ebpfMonUseNotes *notes, ebpfMonPacketClients *packetClients, lateUse *use, int64_t at)
{
    char who[WHO_SIZE];

    ebpfMonPacketClientsFormatUsers(packetClients, &use->client, use->name, who, sizeof(who), &use->identity);
    if (ebpfMonUseNotesAdd(notes, use->ioc, use->name, use->kind, use->identity, at, use->kind == ebpfMonUseRead))
        ebpfMonUseNotesSetWho(notes, use->ioc, use->name, use->kind, who);
}

void ebpfMonUseSourcesAddPacket(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPutClients *clients,
                                ebpfMonPacketClients *packetClients, const ebpfMonWireEvent *ev, uint32_t iocId,
                                const char *server)
{
    lateUse use = { .identity = hashPeer(ev->peer.addr, ev->peer.port),
                    .kind = ev->kind == ebpfMonWireRead ? ebpfMonUseRead :
                            ev->kind == ebpfMonWireSubscribe || ev->isUpdate ? ebpfMonUseSubscribe :
                                                                               ebpfMonUseConnect };
    int64_t now = ebpfMonClockUnixSeconds();
    char who[WHO_SIZE];
    int isBehind;

    if (!ebpfMonUseNotesAreWanted(notes))
        return;
    if (ev->name[0])
        ebpfMonTextCopy(use.name, sizeof(use.name), ev->name);
    else if (ev->protocol != ebpfMonWireCa || !findName(table, iocId, &ev->peer, ev->sid, use.name, sizeof(use.name)))
        return;
    isBehind = packetClients && ebpfMonPacketClientsHasBehind(packetClients, use.name);
    if (!isBehind && !ebpfMonUseNotesAdd(notes, server, use.name, use.kind, use.identity, now,
                                         use.kind == ebpfMonUseRead))
        return;
    ebpfMonPutClientsFind(clients, &ev->peer, &ev->first, ev->user, ev->host, &use.client);
    if (isBehind) {
        ebpfMonTextSet(use.ioc, sizeof(use.ioc), server);
        noteUsers(notes, packetClients, &use, now);
    } else {
        ebpfMonPacketClientsFormatUsers(NULL, &use.client, use.name, who, sizeof(who), &use.identity);
        ebpfMonUseNotesSetWho(notes, server, use.name, use.kind, who);
    }
}

static void addUse(ebpfMonUseNotes *notes, const ebpfMonClientIoc *ioc, const ebpfMonCaUse *use, int64_t at)
{
    const ebpfMonCaClient *client = &ioc->clients->client[use->client];
    ebpfMonUseKind kind = use->subscriptions ? ebpfMonUseSubscribe : ebpfMonUseConnect;
    const char *name = ioc->clients->names + use->name;
    uint64_t identity = hashPeer(client->addr, client->port);
    char who[WHO_SIZE];

    if (!ebpfMonUseNotesAdd(notes, ioc->name, name, kind, identity, at, 0))
        return;
    ebpfMonPacketClientsFormatUsers(NULL, &ioc->facts[use->client].who, name, who, sizeof(who), &identity);
    ebpfMonUseNotesSetWho(notes, ioc->name, name, kind, who);
}

/* Nonzero: done; else it is a use as addUse notes it. */
static int keepLateUse(ebpfMonPacketClients *packetClients, const ebpfMonClientIoc *ioc, const ebpfMonCaUse *use,
                       lateUse *late)
{
    const char *name = ioc->clients->names + use->name;
    const ebpfMonCaClient *client = &ioc->clients->client[use->client];

    if (!ioc->facts[use->client].who.peerPid || !ebpfMonPacketClientsHasBehind(packetClients, name))
        return 0;
    *late = (lateUse){ .kind = use->subscriptions ? ebpfMonUseSubscribe : ebpfMonUseConnect,
                       .client = ioc->facts[use->client].who, .identity = hashPeer(client->addr, client->port) };
    ebpfMonTextCopy(late->name, sizeof(late->name), name);
    memcpy(late->ioc, ioc->name, sizeof(late->ioc));
    return 1;
}

/* Channels that only the memory of pvxs shows, as those over TLS. */
static void addHiddenUses(ebpfMonUseNotes *notes, const ebpfMonClientIoc *ioc, int64_t at)
{
    const ebpfMonPvxsClients *all = ioc->hidden ? ioc->hidden->all : NULL;
    char who[WHO_SIZE];

    for (unsigned n = 0; all && n < ioc->hidden->clients; n++) {
        const ebpfMonHiddenClient *c = &ioc->hidden->client[n];

        for (size_t i = c->is->firstChannel; i < all->channels && &all->client[all->channel[i].client] == c->is; i++) {
            ebpfMonUseKind kind = all->channel[i].monitors ? ebpfMonUseSubscribe : ebpfMonUseConnect;
            const char *name = all->names + all->channel[i].name;
            uint64_t identity = hashPeer(c->peer.addr, c->peer.port);

            if (!ebpfMonUseNotesAdd(notes, ioc->name, name, kind, identity, at, 0))
                continue;
            ebpfMonPacketClientsFormatUsers(NULL, &c->who, name, who, sizeof(who), &identity);
            ebpfMonUseNotesSetWho(notes, ioc->name, name, kind, who);
        }
    }
}

void ebpfMonUseSourcesAddLook(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPacketClients *packetClients)
{
    const ebpfMonClientIoc *ioc;
    int64_t at = ebpfMonClockUnixSeconds();
    size_t lates = 0, room = 0;
    lateUse *late = NULL;

    if (!ebpfMonUseNotesAreWanted(notes))
        return;
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        addHiddenUses(notes, ioc, at);
        for (size_t i = 0; ioc->isRead && i < ioc->clients->uses; i++) {
            const ebpfMonCaUse *use = &ioc->clients->use[i];

            if (!ebpfMonArrayGrow(&late, &room, lates + 1, 64, sizeof(*late)) &&
                keepLateUse(packetClients, ioc, use, &late[lates]))
                lates++;
            else
                addUse(notes, ioc, use, at);
        }
    }
    ebpfMonClientTableUnlock(table);
    for (size_t i = 0; i < lates; i++)
        noteUsers(notes, packetClients, &late[i], at);
    free(late);
}

/* --- the module --- */

#define LOOK_SECONDS 5.0

typedef struct {
    ebpfMonUsageConf   conf;    /* not changed after the start */
    ebpfMonUseNotes   *notes;   /* has a lock of its own */
    const ebpfMonModule *module;
    ebpfMonUsageValues shown;   /* under the lock of the published values */
    /* of the monitor, from the start on */
    ebpfMonTargets    *targets;
    ebpfMonClients    *clients;
    ebpfMonUseKeeper  *keeper;  /* NULL: not started */
} ebpfMonUses;

/* NULL without memory */
static ebpfMonUses *newUses(const ebpfMonModule *module)
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

/* As ebpfMonUsageConfSet. Only before the start. */
static int configureUses(ebpfMonUses *u, const char *file, int megabytes, char *why, size_t size)
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

    ebpfMonUseSourcesAddLook(u->notes, u->clients->table, u->clients->packetClients);
}

static void resetLost(void *uses)
{
    ebpfMonUses *u = uses;

    ebpfMonUseNotesResetLost(u->notes);
    ebpfMonModuleLock();
    u->shown.lost = 0; /* the thread publishes less often than people look */
    ebpfMonModuleUnlock();
    ebpfMonModuleShow(u->module);
}

static void notePut(void *uses, const struct ebpfMonPut *put)
{
    ebpfMonUses *u = uses;

    if (u->conf.file[0])
        ebpfMonUseSourcesAddPut(u->notes, put);
}

static void onPacket(void *arg, const ebpfMonWireEvent *ev, uint32_t iocId, const char *server)
{
    ebpfMonUses *u = arg;

    ebpfMonUseSourcesAddPacket(u->notes, u->clients->table, u->clients->put->clients, u->clients->packetClients, ev,
                               iocId, server);
}

static void onSubscribed(void *arg, const char *server, const char *name)
{
    ebpfMonUses *u = arg;

    if (ebpfMonUseNotesAdd(u->notes, server, name, ebpfMonUseSubscribe, 1, ebpfMonClockUnixSeconds(), 0))
        ebpfMonUseNotesSetWho(u->notes, server, name, ebpfMonUseSubscribe, "pvAccess clients");
}

/* By lists and connections: EBPFMON_WATCHED_… */
static int findWays(void *arg, uint32_t iocId)
{
    ebpfMonUses *u = arg;
    ebpfMonClientTable *table = u->clients->table;
    const ebpfMonClientIoc *ioc;
    int ways = 0;

    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++)
        if (ioc->id == iocId)
            ways = (ioc->isRead ? EBPFMON_WATCHED_LISTS : 0) |
                   (ebpfMonClientTableIsComplete(ioc) ? EBPFMON_WATCHED_CONNECTIONS : 0);
    ebpfMonClientTableUnlock(table);
    return ways;
}

/* As start, stop and finished of ebpfMonModule. */
static int startUses(void *uses, const ebpfMonModuleCore *core)
{
    ebpfMonUses *u = uses;
    const ebpfMonUseSink sink = { .looked = onLook, .packet = onPacket, .subscribed = onSubscribed, .arg = u };
    const ebpfMonUseKeeperCalls calls = { .findWays = findWays, .arg = u };

    ebpfMonUseKeeperFree(u->keeper); /* of a start that failed */
    u->keeper = NULL;
    u->targets = core->targets;
    u->clients = ebpfMonClientsGet("uses");
    if (!u->clients)
        return -1;
    u->keeper = ebpfMonUseKeeperNew(u->module, &u->shown, u->targets, u->notes, &u->conf, &calls);
    if (!u->keeper)
        return -1;
    if (u->conf.file[0]) {
        u->clients->sink = sink;
        ebpfMonClientTableCountUnseen(u->clients->table);
    }
    return ebpfMonUseKeeperStart(u->keeper);
}

/* the time is that of the keeper */
static int stopUses(void *uses, double seconds)
{
    ebpfMonUses *u = uses;

    int left = ebpfMonSharedWorkerStop(&u->clients->worker, seconds); /* no use comes any more */

    return left | ebpfMonUseKeeperStop(u->keeper);
}

/* Adds to the report the records that match and that nobody used for so many days. 0, or -1: "why" says what is
 * wrong. It may take some seconds. Only after the start. */
static int addUnused(ebpfMonUses *u, ebpfMonTextReport *report, double days, const char *recordPattern, char *why,
                         size_t size)
{
    ebpfMonUseStore *store;
    int rc;

    if (!u->conf.file[0]) {
        snprintf(why, size, EBPFMON_NO_USAGE ", before iocInit");
        return -1;
    }
    /* the newest uses must be in the file before it is read */
    if (ebpfMonClientsLook(u->clients, LOOK_SECONDS) || ebpfMonUseKeeperFlush(u->keeper, LOOK_SECONDS))
        ebpfMonTextReportAdd(report, "The newest uses are not in the file (see USAGE_MSG).\n");
    store = ebpfMonUseStoreOpen(u->conf.file, 0, 0, why, size);
    if (!store)
        return -1;
    rc = ebpfMonUnusedReportAdd(report, u->clients->table, u->targets, store, days, recordPattern, why,
                                size);
    ebpfMonUseStoreClose(store);
    return rc;
}

/* --- PVs, commands, registration --------------------------------------------------------------------------------- */

#define VALUE(member) offsetof(ebpfMonUsageValues, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonUses *uses;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : &uses->shown;
}

/* In the order of ebpfMonUses.substitutions. */
static ebpfMonPv pvs[] = {
    {"USAGE_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1, .cause = 1 + VALUE(message), .light = 1},
    {"USAGE_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
    {"USAGE_ROW_CNT", 0, getValues, ebpfMonCellCount, VALUE(rows), 1},
    {"USAGE_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost), 1},
};

static ebpfMonModule module = {
    .name = "uses", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startUses,
    .stop = stopUses, .finished = notePut, .resetLost = resetLost,
};

static void setUsage(const iocshArgBuf *args)
{
    char why[160] = "give a file, such as /var/lib/ebpfmon/uses.db";
    ebpfMonOpStatus status = ebpfMonOpRefused;

    if (ebpfMonShellHasText(args[0].sval) &&
        configureUses(uses, args[0].sval, args[1].ival, why, sizeof(why)) == 0)
        status = ebpfMonOpDone;
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonUsage", status, why));
}

/* Nonzero: the file of ebpfMonUsage, by whatever name. */
static int isKept(const char *name)
{
    struct stat kept, given;

    return stat(uses->conf.file, &kept) == 0 && stat(name, &given) == 0 && kept.st_dev == given.st_dev &&
           kept.st_ino == given.st_ino;
}

/* Writes the text to a file, and sets the status of the command. */
static void writeFile(const char *name, const char *text)
{
    int isOurs = isKept(name);
    FILE *file = isOurs ? NULL : fopen(name, "w");
    int isWritten = file && fputs(text, file) >= 0;

    if (file && fclose(file))
        isWritten = 0;
    if (isOurs)
        errlogSevPrintf(errlogMajor, "ebpfMonUnused: %s has the uses themselves. Give another file for the list\n",
                        name);
    else if (!isWritten)
        errlogSevPrintf(errlogMajor, "ebpfMonUnused: %s cannot be written: %s\n", name, strerror(errno));
    ebpfMonShellSetStatus(isWritten ? 0 : -1);
}

static void listUnused(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const char *pattern = ebpfMonShellGetText(args[1].sval, "*");
    char why[256] = "give a number of days";
    ebpfMonOpStatus status = ebpfMonOpRefused;

    if (args[0].dval > 0 && !module.isStarted)
        status = ebpfMonOpNotStarted;
    else if (args[0].dval > 0 &&
             addUnused(uses, report, args[0].dval, pattern, why, sizeof(why)) == 0)
        status = ebpfMonOpDone;
    if (status == ebpfMonOpDone && ebpfMonShellHasText(args[2].sval)) {
        writeFile(args[2].sval, ebpfMonTextReportGetText(report));
        ebpfMonTextReportFree(report);
    } else {
        ebpfMonShellPrintReport("ebpfMonUnused", report, status, why);
    }
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonUsage", setUsage, {{"file", iocshArgString}, {"megabytes", iocshArgInt}},
     "Keeps in this SQLite file who last read, wrote and subscribed to each PV. The file grows to at most\n"
     "so many megabytes (256). Before iocInit. Example: ebpfMonUsage /var/lib/ebpfmon/uses.db\n"},
    {"ebpfMonUnused", listUnused, {{"days", iocshArgDouble}, {"pattern", iocshArgString}, {"file", iocshArgString}},
     "Lists the records that match and that nobody was seen to use for so many days, and when the IOCs were\n"
     "watched. With a file, writes the list there. Needs ebpfMonUsage.\n"
     "Example: ebpfMonUnused 30 \"RING:*\" /tmp/unused.txt\n"}
};

static void ebpfMonUsesRegistrar(void)
{
    uses = newUses(&module);
    ebpfMonShellAddModule(&module, uses, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonUsesRegistrar);

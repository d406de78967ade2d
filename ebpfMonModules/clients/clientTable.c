/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <epicsMutex.h>
#include <epicsString.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "ebpfMonModule.h"
#include "clients/clientTable.h"
#include "shared/functionSite.h"
#include "watch/connectionSockets.h"

/* --- the table --- */

/*
 * A look lists the IOCs under the targets lock, and then reads them without it, because reading 100,000 channels takes
 * a while. The old list of an IOC stays in the table until the new one is complete. So no reader of the table waits for
 * a look.
 */

#define IOCS_MAX 256
#define UNREAD_NS (2 * EBPFMON_WATCH_GAP * EBPFMON_SECOND_NS) /* a shorter time is no gap for the report */

struct ebpfMonClientTable {
    ebpfMonTargets    *targets;  /* fixed, as the next two */
    ebpfMonPutClients *putClients;
    ebpfMonUpdateCounts *counts;
    ebpfMonFollowedCircuits *followed; /* NULL: they are not known */
    ebpfMonPacketClients *packetClients; /* NULL: there are none */
    int                countsUnseen;
    epicsMutexId       lock;     /* guards what follows. The looking thread reads without it, because only it writes */
    ebpfMonClientIoc   ioc[IOCS_MAX];
    unsigned           iocs;
    uint64_t           cost;     /* CPU time of the last look (ns) */
};

ebpfMonClientTable *ebpfMonClientTableNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                          ebpfMonUpdateCounts *counts, ebpfMonFollowedCircuits *followed,
                                          ebpfMonPacketClients *packetClients)
{
    ebpfMonClientTable *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->targets = targets;
    table->putClients = clients;
    table->counts = counts;
    table->followed = followed;
    table->packetClients = packetClients;
    table->lock = epicsMutexMustCreate();
    return table;
}

static void freeCaClients(ebpfMonClientIoc *ioc)
{
    ebpfMonCatalogueRelease(ioc->cat);
    ebpfMonCaClientsFree(ioc->clients);
    free(ioc->facts);
    free(ioc->counts);
}

static void freeIoc(ebpfMonClientIoc *ioc)
{
    freeCaClients(ioc);
    ebpfMonHiddenClientsFree(ioc->hidden);
}

void ebpfMonClientTableFree(ebpfMonClientTable *table)
{
    if (!table)
        return;
    for (unsigned i = 0; i < table->iocs; i++)
        freeIoc(&table->ioc[i]);
    epicsMutexDestroy(table->lock);
    free(table);
}

void ebpfMonClientTableLock(ebpfMonClientTable *table)
{
    epicsMutexMustLock(table->lock);
}

void ebpfMonClientTableUnlock(ebpfMonClientTable *table)
{
    epicsMutexUnlock(table->lock);
}

const ebpfMonClientIoc *ebpfMonClientTableGet(const ebpfMonClientTable *table, unsigned index)
{
    return index < table->iocs ? &table->ioc[index] : NULL;
}

uint64_t ebpfMonClientTableGetCost(const ebpfMonClientTable *table)
{
    return table->cost;
}

ebpfMonPutClients *ebpfMonClientTableGetPutClients(const ebpfMonClientTable *table)
{
    return table->putClients;
}

ebpfMonPacketClients *ebpfMonClientTableGetPackets(const ebpfMonClientTable *table)
{
    return table->packetClients;
}

/* --- which IOCs ------------------------------------------------------------------------------------------------- */

static ebpfMonClientIoc *findIoc(ebpfMonClientTable *table, uint32_t id)
{
    for (unsigned i = 0; i < table->iocs; i++)
        if (table->ioc[i].id == id)
            return &table->ioc[i];
    return NULL;
}

static void listIoc(ebpfMonClientTable *table, const ebpfMonTarget *t)
{
    ebpfMonClientIoc *ioc = findIoc(table, t->iocId);

    if (!ioc && table->iocs == IOCS_MAX)
        return;
    if (!ioc) {
        ioc = &table->ioc[table->iocs++];
        *ioc = (ebpfMonClientIoc){ .id = t->iocId, .pid = t->pid };
        snprintf(ioc->name, sizeof(ioc->name), "%s", t->name);
    }
    if (ioc->cat != t->cat) { /* the old list has indexes of the old catalogue */
        freeCaClients(ioc);
        ioc->cat = ebpfMonCatalogueHold(t->cat);
        ioc->clients = NULL;
        ioc->facts = NULL;
        ioc->counts = NULL;
        ioc->isPvxsSought = 0;
    }
    ioc->clientQ = t->image.clientQ;
    ioc->isSeen = 1;
}

static void listIocs(ebpfMonClientTable *table)
{
    unsigned kept = 0;

    ebpfMonClientTableLock(table);
    for (unsigned i = 0; i < table->iocs; i++)
        table->ioc[i].isSeen = 0;
    ebpfMonTargetsLock(table->targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(table->targets); t; t = t->next)
        if (!t->gone && t->cat && t->running && t->level > ebpfMonLevelOff)
            listIoc(table, t);
    ebpfMonTargetsUnlock(table->targets);
    for (unsigned i = 0; i < table->iocs; i++)
        if (table->ioc[i].isSeen)
            table->ioc[kept++] = table->ioc[i];
        else
            freeIoc(&table->ioc[i]);
    table->iocs = kept;
    ebpfMonClientTableUnlock(table);
}

/* --- the other end of each client's connection ------------------------------------------------------------------ */

typedef struct {
    uint64_t key;          /* address and port */
    unsigned client;       /* index */
} clientKey;

typedef struct {
    ebpfMonClientFacts *facts;
    clientKey *order;      /* the clients, sorted by address and port */
    unsigned clients;
} connectionEnds;

static uint64_t makeKey(uint32_t addr, uint16_t port)
{
    return (uint64_t)addr << 16 | port;
}

static int compareKeys(const void *left, const void *right)
{
    uint64_t l = ((const clientKey *)left)->key, r = ((const clientKey *)right)->key;

    return (l > r) - (l < r);
}

static ebpfMonClientFacts *findFacts(const connectionEnds *e, uint32_t addr, uint16_t port)
{
    clientKey key = { .key = makeKey(addr, port) };
    const clientKey *found = bsearch(&key, e->order, e->clients, sizeof(key), compareKeys);

    return found ? &e->facts[found->client] : NULL;
}

/* Notes the server's end of a connection. One port of a client may be connected to several servers, so only the
 * sockets of this IOC count. */
static void noteEnd(const connectionEnds *e, const ebpfMonTcpRow *row)
{
    ebpfMonClientFacts *facts = row->v4 ? findFacts(e, row->remote, row->remotePort) : NULL;

    if (!facts)
        return;
    facts->peer.saddr = row->local;
    facts->peer.sport = row->localPort;
}

static void noteBytes(void *arg, const ebpfMonTcpBytes *bytes)
{
    ebpfMonClientFacts *facts = findFacts(arg, bytes->remote, bytes->remotePort);

    if (facts && facts->peer.sport == bytes->localPort && facts->peer.saddr == bytes->local)
        facts->bytes = (int64_t)bytes->sent;
}

/* Finds the server's end of each connection, the bytes that it has sent, and who the client is. */
static ebpfMonClientFacts *readFacts(ebpfMonClientTable *table, pid_t pid, const ebpfMonCaClients *clients,
                                     const ebpfMonIocSockets *sockets)
{
    size_t room = clients->clients ? clients->clients : 1;
    connectionEnds e = { .clients = clients->clients, .facts = calloc(room, sizeof(*e.facts)),
                         .order = calloc(room, sizeof(*e.order)) };
    uint32_t netns = sockets ? sockets->netns : ebpfMonProcNetns(pid);

    if (!e.facts || !e.order) {
        free(e.facts);
        free(e.order);
        return NULL;
    }
    for (unsigned i = 0; i < clients->clients; i++) {
        const ebpfMonCaClient *c = &clients->client[i];

        e.order[i] = (clientKey){ makeKey(c->addr, c->port), i };
        e.facts[i] = (ebpfMonClientFacts){ .peer = { .addr = c->addr, .port = c->port, .netns = netns }, .bytes = -1 };
    }
    qsort(e.order, e.clients, sizeof(*e.order), compareKeys);
    for (size_t i = 0; sockets && e.clients && i < sockets->rows; i++)
        noteEnd(&e, &sockets->row[i]);
    if (e.clients)
        ebpfMonTcpBytesRead(pid, noteBytes, &e);
    for (unsigned i = 0; i < clients->clients; i++)
        ebpfMonPutClientsFind(table->putClients, &e.facts[i].peer, NULL, clients->client[i].user,
                              clients->client[i].host, &e.facts[i].who);
    free(e.order);
    return e.facts;
}

/* NULL without memory: no counts are known. */
static ebpfMonUpdateCount *readCounts(ebpfMonClientTable *table, const ebpfMonCaClients *clients,
                                      const ebpfMonClientFacts *facts)
{
    ebpfMonUpdateCount *counts = calloc(clients->uses ? clients->uses : 1, sizeof(*counts));

    for (size_t i = 0; counts && i < clients->uses; i++)
        if (clients->use[i].subscriptions)
            ebpfMonUpdateCountsFind(table->counts, &facts[clients->use[i].client].peer, clients->use[i].sid,
                                    &counts[i]);
    return counts;
}

/* --- a look ----------------------------------------------------------------------------------------------------- */

void ebpfMonClientTableCountUnseen(ebpfMonClientTable *table)
{
    table->countsUnseen = 1;
}

void ebpfMonClientTableNoteUnread(ebpfMonClientTable *table, uint32_t iocId)
{
    ebpfMonClientIoc *ioc;

    ebpfMonClientTableLock(table);
    ioc = findIoc(table, iocId);
    if (ioc)
        ioc->unreadAt = ebpfMonClockMonotonic();
    ebpfMonClientTableUnlock(table);
}

/* A connection that has just begun may not have shown yet what it is: so one look alone does not count. */
int ebpfMonClientTableIsComplete(const ebpfMonClientIoc *ioc)
{
    return ioc->isCounted && !(ioc->unseen && ioc->unseenBefore) &&
           (!ioc->unreadAt || ebpfMonClockMonotonic() - ioc->unreadAt > UNREAD_NS);
}

/* 0: it has none. */
static uint64_t findPvxsServer(pid_t pid)
{
    static const char *const name = EBPFMON_PVXS_VARIABLE; /* static, so the file is that of an exported function */
    ebpfMonVariable found = { .address = 0 };

    return ebpfMonVariablesFind(pid, EBPFMON_PVXS_FUNCTION, &name, 1, &found) ? found.address : 0;
}

#define TRIES 3 /* the lists may change while they are read */

static ebpfMonPvxsClients *readPvxs(ebpfMonClientIoc *ioc, ebpfMonMem *mem)
{
    ebpfMonPvxsClients *all = NULL;

    if (!ioc->isPvxsSought) {
        ioc->pvxs = findPvxsServer(ioc->pid);
        ioc->isPvxsSought = 1;
    }
    for (int i = 0; ioc->pvxs && i < TRIES && !all; i++)
        all = ebpfMonPvxsServerRead(mem, ioc->pvxs);
    return all;
}

/* Takes over the CA clients; NULL: they could not be read. Under the lock. */
static void takeClients(ebpfMonClientIoc *ioc, ebpfMonCaClients *clients, ebpfMonClientFacts *facts,
                        ebpfMonUpdateCount *counts)
{
    ioc->isRead = facts != NULL;
    if (!facts) {
        ebpfMonCaClientsFree(clients);
        return;
    }
    ebpfMonCaClientsFree(ioc->clients);
    free(ioc->facts);
    free(ioc->counts);
    ioc->clients = clients;
    ioc->facts = facts;
    ioc->counts = counts;
    ioc->readAt = ebpfMonClockMonotonic();
}

/* What only its memory shows is read before its sockets, so each client that it has is there. */
static void readIoc(ebpfMonClientTable *table, ebpfMonClientIoc *ioc)
{
    ebpfMonMem *mem = ebpfMonMemNew(ioc->pid);
    ebpfMonCaClients *clients = mem && ioc->clientQ ? ebpfMonCaClientsRead(mem, ioc->cat, ioc->clientQ) : NULL;
    ebpfMonPvxsClients *all = mem && table->followed ? readPvxs(ioc, mem) : NULL;
    ebpfMonIocSockets *sockets = clients || all || table->countsUnseen ? ebpfMonIocSocketsRead(ioc->pid) : NULL;
    ebpfMonClientFacts *facts = clients ? readFacts(table, ioc->pid, clients, sockets) : NULL;
    ebpfMonUpdateCount *counts = facts ? readCounts(table, clients, facts) : NULL;
    ebpfMonHiddenClients *hidden = ebpfMonHiddenClientsFind(all, sockets, table->followed, table->putClients,
                                                            ioc->hidden);
    unsigned unseen = !table->countsUnseen ? 0 : ebpfMonIocSocketsCountUnseen(sockets, facts ? clients : ioc->clients,
                                                                             table->followed);

    ebpfMonMemFree(mem);
    if (hidden && hidden->clients)
        ebpfMonHiddenClientsComplete(hidden, ioc->pid, ioc->id, table->packetClients);
    ebpfMonClientTableLock(table);
    takeClients(ioc, clients, facts, counts);
    if (hidden || !ioc->pvxs) { /* else the list changed while it was read: the last one stays */
        ebpfMonHiddenClientsFree(ioc->hidden);
        ioc->hidden = hidden;
    }
    if (table->countsUnseen) {
        ioc->unseenBefore = ioc->isCounted ? ioc->unseen : unseen;
        ioc->unseen = unseen;
        ioc->isCounted = 1;
    }
    ebpfMonClientTableUnlock(table);
    ebpfMonIocSocketsFree(sockets);
}

static const char *findHiddenChannel(const ebpfMonHiddenClients *hidden, const struct ebpfMonPeer *peer, uint32_t sid)
{
    for (unsigned n = 0; hidden && n < hidden->clients; n++) {
        const ebpfMonPvxsClients *all = hidden->all;
        const ebpfMonPvxsClient *is = hidden->client[n].is;

        if (memcmp(&hidden->client[n].peer, peer, sizeof(*peer)) != 0)
            continue;
        for (size_t i = is->firstChannel; i < all->channels && &all->client[all->channel[i].client] == is; i++)
            if (all->channel[i].sid == sid)
                return all->names + all->channel[i].name;
    }
    return NULL;
}

int ebpfMonClientTableFindChannel(ebpfMonClientTable *table, const struct ebpfMonPeer *peer, uint32_t sid, char *name,
                                  size_t size)
{
    const char *found = NULL;

    ebpfMonClientTableLock(table);
    for (unsigned i = 0; i < table->iocs && !found; i++)
        found = findHiddenChannel(table->ioc[i].hidden, peer, sid);
    if (found)
        ebpfMonTextCopy(name, size, found);
    ebpfMonClientTableUnlock(table);
    return found ? 0 : -1;
}

void ebpfMonClientTableLook(ebpfMonClientTable *table, void (*sign)(void *arg), void *arg)
{
    uint64_t before = ebpfMonClockThreadCpu(), cost;

    listIocs(table);
    for (unsigned i = 0; i < table->iocs; i++) {
        readIoc(table, &table->ioc[i]);
        sign(arg);
    }
    ebpfMonUpdateCountsForget(table->counts);
    cost = ebpfMonClockThreadCpu() - before;
    ebpfMonClientTableLock(table);
    table->cost = cost;
    ebpfMonClientTableUnlock(table);
}

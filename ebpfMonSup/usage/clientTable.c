/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A look lists the IOCs under the targets lock, and then reads them without it, because reading 100,000 channels takes
 * a while. The old list of an IOC stays in the table until the new one is complete. So no reader of the table waits for
 * a look.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/array.h"
#include "common/clock.h"
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "usage/clientTable.h"
#include "usage/useStore.h"

#define IOCS_MAX 256
#define UNREAD_NS (2 * EBPFMON_WATCH_GAP * EBPFMON_SECOND_NS) /* a shorter time is no gap for the report */

struct ebpfMonClientTable {
    ebpfMonTargets    *targets;  /* fixed, as the next two */
    ebpfMonPutClients *putClients;
    ebpfMonUpdateCounts *counts;
    ebpfMonFollowedCircuits *followed; /* NULL: connections are not counted */
    epicsMutexId       lock;     /* guards what follows. The looking thread reads without it, because only it writes */
    ebpfMonClientIoc   ioc[IOCS_MAX];
    unsigned           iocs;
    uint64_t           cost;     /* CPU time of the last look (ns) */
};

ebpfMonClientTable *ebpfMonClientTableNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                          ebpfMonUpdateCounts *counts)
{
    ebpfMonClientTable *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->targets = targets;
    table->putClients = clients;
    table->counts = counts;
    table->lock = epicsMutexMustCreate();
    return table;
}

static void freeIoc(ebpfMonClientIoc *ioc)
{
    ebpfMonCatalogueRelease(ioc->cat);
    ebpfMonCaClientsFree(ioc->clients);
    free(ioc->facts);
    free(ioc->counts);
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
        freeIoc(ioc);
        ioc->cat = ebpfMonCatalogueHold(t->cat);
        ioc->clients = NULL;
        ioc->facts = NULL;
        ioc->counts = NULL;
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
    unsigned long *inode;  /* inodes of the IOC's sockets, ascending */
    size_t   inodes, room;
    uint32_t netns;
} connectionEnds;

static void addInode(void *arg, unsigned file, unsigned long inode)
{
    connectionEnds *e = arg;

    (void)file;
    if (!ebpfMonArrayGrow(&e->inode, &e->room, e->inodes + 1, 256, sizeof(*e->inode)))
        e->inode[e->inodes++] = inode;
}

static int compareInodes(const void *left, const void *right)
{
    unsigned long l = *(const unsigned long *)left, r = *(const unsigned long *)right;

    return (l > r) - (l < r);
}

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
static int noteEnd(void *arg, const ebpfMonTcpRow *row)
{
    const connectionEnds *e = arg;
    ebpfMonClientFacts *facts;

    if (!row->v4 || !e->inodes ||
        !bsearch(&row->inode, e->inode, e->inodes, sizeof(*e->inode), compareInodes))
        return 0;
    facts = findFacts(e, row->remote, row->remotePort);
    if (!facts)
        return 0;
    facts->peer.saddr = row->local;
    facts->peer.sport = row->localPort;
    return 0;
}

static void noteBytes(void *arg, const ebpfMonTcpBytes *bytes)
{
    ebpfMonClientFacts *facts = findFacts(arg, bytes->remote, bytes->remotePort);

    if (facts && facts->peer.sport == bytes->localPort && facts->peer.saddr == bytes->local)
        facts->bytes = (int64_t)bytes->sent;
}

/* Reads the server's end of each connection, and the bytes that it has sent. */
static void readEnds(connectionEnds *e, pid_t pid)
{
    ebpfMonTcpOwned(pid, addInode, e);
    if (e->inodes)
        qsort(e->inode, e->inodes, sizeof(*e->inode), compareInodes);
    qsort(e->order, e->clients, sizeof(*e->order), compareKeys);
    ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpEstablished), noteEnd, e);
    ebpfMonTcpBytesRead(pid, noteBytes, e);
}

static ebpfMonClientFacts *readFacts(ebpfMonClientTable *table, pid_t pid, const ebpfMonCaClients *clients)
{
    size_t room = clients->clients ? clients->clients : 1;
    connectionEnds e = { .clients = clients->clients, .netns = ebpfMonProcNetns(pid),
                         .facts = calloc(room, sizeof(*e.facts)), .order = calloc(room, sizeof(*e.order)) };

    if (!e.facts || !e.order) {
        free(e.facts);
        free(e.order);
        return NULL;
    }
    for (unsigned i = 0; i < clients->clients; i++) {
        const ebpfMonCaClient *c = &clients->client[i];

        e.order[i] = (clientKey){ makeKey(c->addr, c->port), i };
        e.facts[i] = (ebpfMonClientFacts){ .peer = { .addr = c->addr, .port = c->port, .netns = e.netns },
                                            .bytes = -1 };
    }
    if (clients->clients)
        readEnds(&e, pid);
    for (unsigned i = 0; i < clients->clients; i++)
        ebpfMonPutClientsFind(table->putClients, &e.facts[i].peer, NULL, clients->client[i].user,
                              clients->client[i].host, &e.facts[i].who);
    free(e.inode);
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

void ebpfMonClientTableSetFollowed(ebpfMonClientTable *table, ebpfMonFollowedCircuits *followed)
{
    table->followed = followed;
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
int ebpfMonClientTableSeesAll(const ebpfMonClientIoc *ioc)
{
    return ioc->isCounted && !(ioc->unseen && ioc->unseenBefore) &&
           (!ioc->unreadAt || ebpfMonClockMonotonic() - ioc->unreadAt > UNREAD_NS);
}

static void countConnections(ebpfMonClientTable *table, ebpfMonClientIoc *ioc)
{
    unsigned unseen = ebpfMonIocConnectionsCountUnseen(ioc->pid, ioc->clients, table->followed);

    ebpfMonClientTableLock(table);
    ioc->unseenBefore = ioc->isCounted ? ioc->unseen : unseen;
    ioc->unseen = unseen;
    ioc->isCounted = 1;
    ebpfMonClientTableUnlock(table);
}

static void readIoc(ebpfMonClientTable *table, ebpfMonClientIoc *ioc)
{
    ebpfMonMem *mem = ebpfMonMemNew(ioc->pid);
    ebpfMonCaClients *clients = mem ? ebpfMonCaClientsRead(mem, ioc->cat, ioc->clientQ) : NULL;
    ebpfMonClientFacts *facts = clients ? readFacts(table, ioc->pid, clients) : NULL;
    ebpfMonUpdateCount *counts = facts ? readCounts(table, clients, facts) : NULL;

    ebpfMonMemFree(mem);
    ebpfMonClientTableLock(table);
    ioc->isRead = facts != NULL;
    if (facts) {
        ebpfMonCaClientsFree(ioc->clients);
        free(ioc->facts);
        free(ioc->counts);
        ioc->clients = clients;
        ioc->facts = facts;
        ioc->counts = counts;
        ioc->readAt = ebpfMonClockMonotonic();
    } else {
        ebpfMonCaClientsFree(clients);
    }
    ebpfMonClientTableUnlock(table);
}

void ebpfMonClientTableLook(ebpfMonClientTable *table, void (*sign)(void *arg), void *arg)
{
    uint64_t before = ebpfMonClockThreadCpu(), cost;

    listIocs(table);
    for (unsigned i = 0; i < table->iocs; i++) {
        if (table->ioc[i].clientQ)
            readIoc(table, &table->ioc[i]);
        if (table->followed)
            countConnections(table, &table->ioc[i]);
        sign(arg);
    }
    ebpfMonUpdateCountsForget(table->counts);
    cost = ebpfMonClockThreadCpu() - before;
    ebpfMonClientTableLock(table);
    table->cost = cost;
    ebpfMonClientTableUnlock(table);
}

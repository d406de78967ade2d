/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "common/worker.h"
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "model/published.h"
#include "usage/clients.h"

/* --- counts of updates --- */

#define BUCKETS 16384 /* a power of two */
#define KEPT    2     /* A count stays if so many looks in a row did not ask for it: its channel may be newer than
                       * they are */

typedef struct entry {
    struct entry *next;  /* in its bucket */
    struct ebpfMonPeer peer;
    uint32_t sid;
    uint32_t stretch;    /* ev->stretch of its first update. Another value later means that bytes were lost */
    unsigned missed;     /* so many looks in a row did not ask for it */
    ebpfMonUpdateCount count;
} entry;

struct ebpfMonUpdateCounts {
    epicsMutexId lock;   /* guards what follows */
    entry   *bucket[BUCKETS];
    unsigned entries;
};

ebpfMonUpdateCounts *ebpfMonUpdateCountsNew(void)
{
    ebpfMonUpdateCounts *counts = calloc(1, sizeof(*counts));

    if (counts)
        counts->lock = epicsMutexMustCreate();
    return counts;
}

void ebpfMonUpdateCountsFree(ebpfMonUpdateCounts *counts)
{
    if (!counts)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (entry *e = counts->bucket[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
    epicsMutexDestroy(counts->lock);
    free(counts);
}

/* The key has both ends of the circuit, because one port of a client may be connected to several servers. */
static entry **findCountPlace(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid)
{
    uint64_t hash = ebpfMonHashMix(((uint64_t)peer->addr << 32 | peer->saddr) ^ ebpfMonHashMix((uint64_t)sid << 32 |
                                   (uint64_t)peer->port << 16 | peer->sport));
    entry **place = &counts->bucket[hash % BUCKETS];

    while (*place && ((*place)->sid != sid || memcmp(&(*place)->peer, peer, sizeof(*peer)) != 0))
        place = &(*place)->next;
    return place;
}

void ebpfMonUpdateCountsAdd(ebpfMonUpdateCounts *counts, const ebpfMonWireEvent *ev)
{
    entry **place, *e;

    if (!ev->isUpdate)
        return;
    epicsMutexMustLock(counts->lock);
    place = findCountPlace(counts, &ev->peer, ev->sid);
    if (!*place && counts->entries < EBPFMON_UPDATE_COUNTS)
        *place = calloc(1, sizeof(**place));
    e = *place;
    if (e && !e->count.updates) {
        e->peer = ev->peer;
        e->sid = ev->sid;
        e->stretch = ev->stretch;
        counts->entries++;
    }
    if (e) {
        e->count.updates++;
        e->count.bytes += ev->end - ev->seq;
        e->count.isAtLeast |= ev->stretch != e->stretch;
    }
    epicsMutexUnlock(counts->lock);
}

int ebpfMonUpdateCountsFind(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid,
                            ebpfMonUpdateCount *count)
{
    entry *e;

    epicsMutexMustLock(counts->lock);
    e = *findCountPlace(counts, peer, sid);
    if (e) {
        *count = e->count;
        e->missed = 0;
    }
    epicsMutexUnlock(counts->lock);
    return e ? 0 : -1;
}

void ebpfMonUpdateCountsForget(ebpfMonUpdateCounts *counts)
{
    epicsMutexMustLock(counts->lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (entry **place = &counts->bucket[i]; *place;) {
            entry *e = *place;

            if (e->missed++ < KEPT) {
                place = &e->next;
                continue;
            }
            *place = e->next;
            free(e);
            counts->entries--;
        }
    epicsMutexUnlock(counts->lock);
}

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
    ebpfMonFollowedCircuits *followed; /* NULL: connections are not counted */
    ebpfMonPvaClients *pvaClients;     /* NULL: there are none */
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

void ebpfMonClientTableSetPvaClients(ebpfMonClientTable *table, ebpfMonPvaClients *pvaClients)
{
    table->pvaClients = pvaClients;
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

/* Makes a look: reads the clients of all watched IOCs. Calls sign(arg) after each IOC as a sign of progress. If an
 * IOC cannot be read, its last list stays. The looking thread, without a lock. */
static void lookClientTable(ebpfMonClientTable *table, void (*sign)(void *arg), void *arg)
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

/* --- published values --- */

/* Publishes the clients that have a channel which matches the patterns. Clients with most channels come first. */

#define ELEMENT 40 /* bytes of an element of a waveform of texts: MAX_STRING_SIZE of Base */
#define CUT_USER 6 /* … of which a user's name has so many at least */

/* Returns a row for a client. If all rows are taken, the row of the client with the fewest channels, if it has fewer
 * than "channels"; else NULL. */
static ebpfMonClientRow *findRowPlace(ebpfMonClientValues *values, unsigned channels)
{
    ebpfMonClientRow *least = &values->row[0];

    values->count++;
    if (values->rows < EBPFMON_CLIENT_ROWS)
        return &values->row[values->rows++];
    for (unsigned i = 1; i < values->rows; i++)
        if (values->row[i].channels < least->channels)
            least = &values->row[i];
    return least->channels < channels ? least : NULL;
}

/* Writes user@address:port. A long name of a user is cut so that the address, which it cannot choose, is still in an
 * element of a waveform of texts; only an IPv6 address that is too long itself is cut. */
static void nameClient(const char *claimed, const struct ebpfMonPeer *peer, const char *protocol, char *text,
                       size_t size)
{
    char end[EBPFMON_PEERTEXT_SIZE + sizeof("[]:65535")], from[sizeof(end) + sizeof("@ PVA")], user[ELEMENT];
    char all[sizeof(user) + sizeof(from)];
    size_t room;

    ebpfMonPeerTextEnd(peer->addr, peer->addr6, peer->port, end, sizeof(end));
    room = (size_t)snprintf(from, sizeof(from), "@%s%s", end, protocol);
    room = room + CUT_USER < sizeof(user) ? sizeof(user) - room : CUT_USER;
    ebpfMonTextCopy(user, room, claimed);
    snprintf(all, sizeof(all), "%s%s", user, from);
    ebpfMonTextCopy(text, size < ELEMENT ? size : ELEMENT, all);
}

static void addClient(ebpfMonClientValues *values, const ebpfMonClientIoc *ioc, unsigned i, const ebpfMonCaClient *sum)
{
    const ebpfMonCaClient *client = &ioc->clients->client[i];
    ebpfMonClientRow *row = findRowPlace(values, sum->channels);

    values->channels += sum->channels;
    values->subscriptions += sum->subscriptions;
    if (!row)
        return;
    *row = (ebpfMonClientRow){ .pid = ioc->facts[i].who.peerPid, .channels = sum->channels,
                               .subscriptions = sum->subscriptions, .since = sum->since, .bytes = ioc->facts[i].bytes };
    nameClient(client->user, &ioc->facts[i].peer, "", row->name, sizeof(row->name));
    snprintf(row->ioc, sizeof(row->ioc), "%s", ioc->name);
    snprintf(row->command, sizeof(row->command), "%s", ioc->facts[i].who.command);
}

static void addClientUse(const ebpfMonCaUse *use, ebpfMonCaClient *sum)
{
    sum->channels++;
    sum->subscriptions += use->subscriptions;
    if (!sum->since.secPastEpoch || epicsTimeLessThan(&use->since, &sum->since))
        sum->since = use->since;
}

/* c->use is sorted by client, so one walk through it serves all clients. */
static void addIoc(ebpfMonClientValues *values, const ebpfMonClientIoc *ioc)
{
    const ebpfMonCaClients *c = ioc->clients;
    const char *pattern = values->pvPattern;
    size_t at = 0;

    for (unsigned i = 0; i < c->clients; i++) {
        ebpfMonCaClient sum = { .channels = 0 };

        for (; at < c->uses && c->use[at].client == i; at++)
            if (pattern[0] && (epicsStrGlobMatch(c->names + c->use[at].name, pattern) ||
                               epicsStrGlobMatch(ebpfMonCatalogueName(ioc->cat, c->use[at].record), pattern)))
                addClientUse(&c->use[at], &sum);
        if (!pattern[0])
            sum = c->client[i];
        if (!pattern[0] || sum.channels)
            addClient(values, ioc, i, &sum);
    }
}

/* --- clients of pvAccess --- */

/* A client of a server of this host, as packets show it. Channels without a monitor have no names here. */
typedef struct {
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first;
    char     user[64], host[64], ioc[EBPFMON_IOCNAME_SIZE];
    unsigned channels, monitors;
    uint64_t openedAt;      /* monotonic ns; its begin, or since it is seen */
} pvaCopy;

/* Nonzero: a client of a watched IOC, or of another server of this host. */
static int isOfThisHost(const ebpfMonPvaClient *c)
{
    return c->iocId || (c->pid && c->pid != getpid());
}

/* Those of the servers that match; with a pattern of PVs their monitors that match. "*copy" is for the caller to
 * free. */
static size_t copyPvaClients(ebpfMonClientTable *table, const char *iocPattern, const char *pvPattern, pvaCopy **copy)
{
    size_t count = 0, room = 0;

    *copy = NULL;
    if (!table->pvaClients)
        return 0;
    ebpfMonPvaClientsLock(table->pvaClients);
    for (const ebpfMonPvaClient *c = ebpfMonPvaClientsNext(table->pvaClients, NULL); c;
         c = ebpfMonPvaClientsNext(table->pvaClients, c)) {
        unsigned matching = 0;
        pvaCopy *to;

        for (const ebpfMonPvaMonitor *m = pvPattern[0] ? c->monitor : NULL; m; m = m->next)
            matching += epicsStrGlobMatch(m->name, pvPattern) != 0;
        if (!isOfThisHost(c) || (iocPattern[0] && !epicsStrGlobMatch(c->server, iocPattern)) ||
            (pvPattern[0] && !matching) ||
            ebpfMonArrayGrow(copy, &room, count + 1, 64, sizeof(**copy)))
            continue;
        to = &(*copy)[count++];
        *to = (pvaCopy){ .peer = c->peer, .first = c->first, .openedAt = c->openedAt,
                         .channels = pvPattern[0] ? matching : c->channels,
                         .monitors = pvPattern[0] ? matching : c->monitors };
        if (to->channels < to->monitors) /* those that are older are not counted */
            to->channels = to->monitors;
        memcpy(to->user, c->user, sizeof(to->user));
        memcpy(to->host, c->host, sizeof(to->host));
        memcpy(to->ioc, c->server, sizeof(to->ioc));
    }
    ebpfMonPvaClientsUnlock(table->pvaClients);
    return count;
}

static epicsTimeStamp findOpened(const pvaCopy *client)
{
    epicsTimeStamp time;

    epicsTimeGetCurrent(&time);
    epicsTimeAddSeconds(&time, -(double)(ebpfMonClockMonotonic() - client->openedAt) / 1e9);
    return time;
}

static void addPvaClients(ebpfMonClientTable *table, ebpfMonClientValues *values)
{
    pvaCopy *copy;
    size_t count = copyPvaClients(table, values->iocPattern, values->pvPattern, &copy);

    for (size_t i = 0; i < count; i++) {
        ebpfMonClientRow *row = findRowPlace(values, copy[i].channels);
        ebpfMonPutClient who = { .peer = "" };

        values->channels += copy[i].channels;
        values->subscriptions += copy[i].monitors;
        if (!row)
            continue;
        ebpfMonPvaClientsFindWho(table->pvaClients, &copy[i].peer, &copy[i].first, copy[i].user, copy[i].host, &who);
        *row = (ebpfMonClientRow){ .pid = who.peerPid, .channels = copy[i].channels, .subscriptions = copy[i].monitors,
                                   .since = findOpened(&copy[i]), .bytes = -1 };
        nameClient(copy[i].user, &copy[i].peer, " PVA", row->name, sizeof(row->name));
        snprintf(row->ioc, sizeof(row->ioc), "%s", copy[i].ioc);
        snprintf(row->command, sizeof(row->command), "%s", who.command);
    }
    free(copy);
}

static int compareRows(const void *left, const void *right)
{
    const ebpfMonClientRow *l = left, *r = right;

    if (l->channels != r->channels)
        return l->channels < r->channels ? 1 : -1;
    return strcmp(l->name, r->name);
}

/* Publishes the clients that match the patterns of the published values, and notifies the group ebpfMonGroupClients.
 * The looking thread. Without memory it does nothing. */
static void reportClientPublish(ebpfMonClientTable *table)
{
    ebpfMonClientValues *values = calloc(1, sizeof(*values));
    const ebpfMonClientIoc *ioc;
    ebpfMonPublished *published;

    if (!values)
        return;
    published = ebpfMonPublishedLock();
    memcpy(values->iocPattern, published->clients.iocPattern, sizeof(values->iocPattern));
    memcpy(values->pvPattern, published->clients.pvPattern, sizeof(values->pvPattern));
    ebpfMonPublishedUnlock();
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        if (values->iocPattern[0] && !epicsStrGlobMatch(ioc->name, values->iocPattern))
            continue;
        values->unread += !ioc->isRead && ioc->clientQ;
        if (ioc->clients)
            addIoc(values, ioc);
    }
    values->look = (double)ebpfMonClientTableGetCost(table) / 1e6;
    ebpfMonClientTableUnlock(table);
    addPvaClients(table, values);
    qsort(values->row, values->rows, sizeof(values->row[0]), compareRows);
    published = ebpfMonPublishedLock();
    /* the operator may have changed the patterns meanwhile: do not put the old ones back */
    memcpy(values->iocPattern, published->clients.iocPattern, sizeof(values->iocPattern));
    memcpy(values->pvPattern, published->clients.pvPattern, sizeof(values->pvPattern));
    published->clients = *values;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupClients]);
    ebpfMonPublishedUnlock();
    free(values);
    ebpfMonPublishedNotify(ebpfMonGroupClients);
}

/* --- reports --- */

#define USERS_MAX 20000 /* lines of ebpfMonUsers */
#define CELL ebpfMonTextReportAddCell

static void formatAddress(const ebpfMonCaClient *client, char *buf, size_t size)
{
    char addr[INET_ADDRSTRLEN] = "?";

    inet_ntop(AF_INET, &client->addr, addr, sizeof(addr));
    snprintf(buf, size, "%s:%u", addr, ntohs(client->port));
}

static void addTime(ebpfMonTextReport *report, const epicsTimeStamp *time)
{
    char text[24] = "-";

    if (time->secPastEpoch)
        epicsTimeToStrftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", time);
    CELL(report, " %s", text);
}

static void addBytes(ebpfMonTextReport *report, int64_t bytes)
{
    if (bytes < 0)
        CELL(report, "-");
    else
        CELL(report, "%lld", (long long)bytes);
}

static void addClientLine(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc, unsigned i)
{
    const ebpfMonCaClient *client = &ioc->clients->client[i];
    const ebpfMonClientFacts *facts = &ioc->facts[i];
    char address[32];

    formatAddress(client, address, sizeof(address));
    CELL(report, "%s", ioc->name);
    CELL(report, " %s@%s", client->user, client->host);
    CELL(report, " %s", address);
    if (facts->who.peerPid)
        CELL(report, "%u", (unsigned)facts->who.peerPid);
    else
        CELL(report, "-");
    CELL(report, "%u", (unsigned)client->channels);
    CELL(report, "%u", (unsigned)client->subscriptions);
    addBytes(report, facts->bytes);
    addTime(report, &client->since);
    CELL(report, " %s", facts->who.command);
}

static void addPvaLines(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern)
{
    pvaCopy *copy;
    size_t count = copyPvaClients(table, iocPattern, "", &copy);

    for (size_t i = 0; i < count; i++) {
        ebpfMonPutClient who = { .peer = "" };
        epicsTimeStamp since = findOpened(&copy[i]);

        ebpfMonPvaClientsFindWho(table->pvaClients, &copy[i].peer, &copy[i].first, copy[i].user, copy[i].host, &who);
        CELL(report, "%s", copy[i].ioc);
        CELL(report, " %s@%s", copy[i].user[0] ? copy[i].user : "?", copy[i].host);
        CELL(report, " %s PVA", who.peer);
        if (who.peerPid)
            CELL(report, "%u", (unsigned)who.peerPid);
        else
            CELL(report, "-");
        CELL(report, "%u", copy[i].channels);
        CELL(report, "%u", copy[i].monitors);
        addBytes(report, -1);
        addTime(report, &since);
        CELL(report, " %s", who.command);
    }
    free(copy);
}

/* Adds a line if the list of clients is old or not complete. Nonzero: there is no list. */
static int addNote(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc)
{
    if (!ioc->clientQ) {
        ebpfMonTextReportAdd(report, "%s: it has no CA server of EPICS Base\n", ioc->name);
        return 1;
    }
    if (!ioc->clients) {
        ebpfMonTextReportAdd(report, "%s: the list of its clients could not be read yet; try again in a moment\n",
                             ioc->name);
        return 1;
    }
    if (!ioc->isRead)
        ebpfMonTextReportAdd(report, "%s: could not be read now; this list is %.0f s old\n", ioc->name,
                             (double)(ebpfMonClockMonotonic() - ioc->readAt) / 1e9);
    if (ioc->clients->leftOut)
        ebpfMonTextReportAdd(report, "%s: %zu more channels are not listed: there are too many\n", ioc->name,
                             ioc->clients->leftOut);
    return 0;
}

void ebpfMonClientReportAddClients(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"IOC", -20}, {" client", -24}, {" address", -22}, {"pid", 8}, {"channels", 9}, {"subscribed", 11},
        {"bytes sent", 13}, {" oldest channel since", -21}, {" command", 0}
    };
    const ebpfMonClientIoc *ioc;

    ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++)
        if (epicsStrGlobMatch(ioc->name, iocPattern) && !addNote(report, ioc))
            for (unsigned i = 0; i < ioc->clients->clients; i++)
                addClientLine(report, ioc, i);
    ebpfMonClientTableUnlock(table);
    addPvaLines(report, table, iocPattern);
}

static int matchesPattern(const ebpfMonClientIoc *ioc, const ebpfMonCaUse *use, const char *pattern)
{
    return !pattern[0] || epicsStrGlobMatch(ioc->clients->names + use->name, pattern) ||
           epicsStrGlobMatch(ebpfMonCatalogueName(ioc->cat, use->record), pattern);
}

/* Adds a number that was counted in packets: ">5" is a lower bound, "-" is not known. */
static void addCount(ebpfMonTextReport *report, const ebpfMonUpdateCount *count, uint64_t number)
{
    if (!count || !count->updates)
        CELL(report, "-");
    else
        CELL(report, "%s%llu", count->isAtLeast ? ">" : "", (unsigned long long)number);
}

static void addUser(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc, size_t index)
{
    const ebpfMonCaUse *use = &ioc->clients->use[index];
    const ebpfMonUpdateCount *count = ioc->counts ? &ioc->counts[index] : NULL;
    const ebpfMonCaClient *client = &ioc->clients->client[use->client];
    const ebpfMonClientFacts *facts = &ioc->facts[use->client];
    char address[32];

    formatAddress(client, address, sizeof(address));
    CELL(report, "%s", ioc->clients->names + use->name);
    CELL(report, " %s", ioc->name);
    CELL(report, " %s@%s", client->user, client->host);
    CELL(report, " %s", address);
    CELL(report, "%u", (unsigned)use->subscriptions);
    addCount(report, count, count ? count->updates : 0);
    addCount(report, count, count ? count->bytes : 0);
    addTime(report, &use->since);
    CELL(report, " %s", facts->who.command);
}

void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"PV", -32}, {" IOC", -20}, {" client", -24}, {" address", -22}, {"subscribed", 11}, {"updates", 10},
        {"bytes", 12}, {" since", -20}, {" command", 0}
    };
    const ebpfMonClientIoc *ioc;
    unsigned found = 0;

    ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        if (addNote(report, ioc))
            continue;
        for (size_t i = 0; i < ioc->clients->uses; i++)
            if (matchesPattern(ioc, &ioc->clients->use[i], pvPattern) && found++ < USERS_MAX)
                addUser(report, ioc, i);
    }
    ebpfMonClientTableUnlock(table);
    if (found > USERS_MAX)
        ebpfMonTextReportAdd(report, "... and %u more: choose a narrower pattern\n", found - USERS_MAX);
    if (table->pvaClients)
        ebpfMonPvaClientsAddUsers(table->pvaClients, report, pvPattern);
}

/* --- the thread --- */

#define EBPFMON_CLIENT_PERIOD 10.0 /* s */

#define STOP_SECONDS 5.0
#define START_SECONDS 0.2 /* between two questions whether the IOCs are found */

struct ebpfMonClientLooker {
    ebpfMonClientTable *table; /* fixed, as the next two */
    void (*looked)(void *arg);
    void *arg;
    ebpfMonSharedWorker worker;
    epicsMutexId asking;     /* held by the thread that waits for a look */
    epicsEventId lookDone;   /* wakes this thread */
    int          isAsked;    /* atomic: a look is requested */
};

ebpfMonClientLooker *ebpfMonClientLookerNew(ebpfMonClientTable *table, void (*looked)(void *arg), void *arg)
{
    ebpfMonClientLooker *looker = calloc(1, sizeof(*looker));

    if (!looker)
        return NULL;
    looker->table = table;
    looker->looked = looked;
    looker->arg = arg;
    ebpfMonSharedWorkerInit(&looker->worker);
    looker->asking = epicsMutexMustCreate();
    looker->lookDone = epicsEventMustCreate(epicsEventEmpty);
    return looker;
}

void ebpfMonClientLookerFree(ebpfMonClientLooker *looker)
{
    if (!looker)
        return;
    ebpfMonSharedWorkerDestroy(&looker->worker);
    epicsMutexDestroy(looker->asking);
    epicsEventDestroy(looker->lookDone);
    free(looker);
}

static void giveSign(void *worker)
{
    ebpfMonWorkerGiveSign(worker);
}

static void readClients(ebpfMonClientLooker *looker, ebpfMonWorker *worker)
{
    int isAsked = epicsAtomicCmpAndSwapIntT(&looker->isAsked, 1, 0);

    lookClientTable(looker->table, giveSign, worker);
    reportClientPublish(looker->table);
    if (looker->looked)
        looker->looked(looker->arg);
    if (isAsked)
        epicsEventMustTrigger(looker->lookDone);
}

/* Nonzero: the monitor has run for a second, so the IOCs of this host are found. Before, there would seem to be no
 * clients. */
static int areIocsFound(void)
{
    int isMeasured = ebpfMonPublishedLock()->isMeasured;

    ebpfMonPublishedUnlock();
    return isMeasured;
}

static void runLooker(ebpfMonWorker *worker, void *arg)
{
    ebpfMonClientLooker *looker = arg;
    double next = 0;

    while (!areIocsFound() && !epicsAtomicGetIntT(&looker->isAsked) && !ebpfMonWorkerIsStopping(worker))
        ebpfMonWorkerWait(worker, START_SECONDS);
    while (!ebpfMonWorkerIsStopping(worker)) {
        double now = ebpfMonClockSeconds();

        if (now >= next || epicsAtomicGetIntT(&looker->isAsked)) {
            readClients(looker, worker);
            next = ebpfMonClockSeconds() + EBPFMON_CLIENT_PERIOD;
        } else if (ebpfMonWorkerWait(worker, next - now) && !epicsAtomicGetIntT(&looker->isAsked)) {
            reportClientPublish(looker->table);
        }
    }
}

int ebpfMonClientLookerStart(ebpfMonClientLooker *looker)
{
    return ebpfMonSharedWorkerSet(&looker->worker,
                                  ebpfMonWorkerStart("ebpfMonClients", epicsThreadPriorityLow, runLooker, looker));
}

int ebpfMonClientLookerStop(ebpfMonClientLooker *looker)
{
    return looker ? ebpfMonSharedWorkerStop(&looker->worker, STOP_SECONDS) : 0;
}

int ebpfMonClientLookerLook(ebpfMonClientLooker *looker, double seconds)
{
    int status;

    epicsMutexMustLock(looker->asking);
    epicsEventTryWait(looker->lookDone); /* clears the event of an earlier look that ended after its caller gave up */
    epicsAtomicSetIntT(&looker->isAsked, 1);
    ebpfMonSharedWorkerWake(&looker->worker);
    status = epicsEventWaitWithTimeout(looker->lookDone, seconds) == epicsEventOK ? 0 : -1;
    epicsMutexUnlock(looker->asking);
    return status;
}

void ebpfMonClientLookerRequest(ebpfMonClientLooker *looker)
{
    epicsAtomicSetIntT(&looker->isAsked, 1);
    ebpfMonSharedWorkerWake(&looker->worker);
}

void ebpfMonClientLookerPublish(ebpfMonClientLooker *looker)
{
    ebpfMonSharedWorkerWake(&looker->worker);
}

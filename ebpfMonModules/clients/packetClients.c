/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsTime.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "host/procNetns.h"
#include "watch/connectionSockets.h"
#include "clients/packetClients.h"

#define CLIENT_BUCKETS  1024  /* powers of two */
#define MONITOR_BUCKETS 16384
#define CHANNEL_BUCKETS 16384
#define CLIENTS_MAX     4096  /* as many as a wire has circuits */
#define NEW_NS          (30 * EBPFMON_SECOND_NS) /* so long a new client's server may be an IOC that is found soon */

struct ebpfMonPacketClients {
    ebpfMonPutClients *putClients; /* fixed */
    epicsMutexId lock;             /* guards what follows */
    ebpfMonPacketClient *client[CLIENT_BUCKETS];
    ebpfMonPacketMonitor *monitor[MONITOR_BUCKETS];
    ebpfMonPacketChannel *channel[CHANNEL_BUCKETS], *name[CHANNEL_BUCKETS]; /* by circuit and number; by name */
    unsigned clients, monitors, channels;
    uint64_t changes, serial, mark;
};

ebpfMonPacketClients *ebpfMonPacketClientsNew(ebpfMonPutClients *putClients)
{
    ebpfMonPacketClients *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->putClients = putClients;
    p->lock = epicsMutexMustCreate();
    return p;
}

/* --- their places ------------------------------------------------------------------------------------------------ */

static unsigned bucketOfClient(uint64_t circuit)
{
    return (unsigned)(ebpfMonHashMix(circuit) % CLIENT_BUCKETS);
}

static ebpfMonPacketClient **findCircuitPlace(ebpfMonPacketClients *p, uint64_t circuit)
{
    ebpfMonPacketClient **at = &p->client[bucketOfClient(circuit)];

    while (*at && (*at)->circuit != circuit)
        at = &(*at)->nextOfBucket;
    return at;
}

static ebpfMonPacketMonitor **findMonitor(ebpfMonPacketClients *p, uint64_t circuit, uint32_t ioid)
{
    ebpfMonPacketMonitor **at = &p->monitor[ebpfMonHashMix(circuit ^ ebpfMonHashMix(ioid)) % MONITOR_BUCKETS];

    while (*at && ((*at)->ioid != ioid || (*at)->client->circuit != circuit))
        at = &(*at)->nextOfBucket;
    return at;
}

static void removeMonitor(ebpfMonPacketClients *p, ebpfMonPacketMonitor **at)
{
    ebpfMonPacketMonitor *m = *at;

    if (!m)
        return;
    *at = m->nextOfBucket;
    *m->back = m->next;
    if (m->next)
        m->next->back = m->back;
    m->client->monitors--;
    p->monitors--;
    p->changes++;
    free(m);
}

static ebpfMonPacketChannel **findChannel(ebpfMonPacketClients *p, uint64_t circuit, uint32_t sid)
{
    ebpfMonPacketChannel **at = &p->channel[ebpfMonHashMix(circuit ^ ebpfMonHashMix(sid)) % CHANNEL_BUCKETS];

    while (*at && ((*at)->sid != sid || (*at)->client->circuit != circuit))
        at = &(*at)->nextOfBucket;
    return at;
}

static ebpfMonPacketChannel **bucketOfName(ebpfMonPacketClients *p, const char *name)
{
    return &p->name[ebpfMonHashMix(ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, name, strlen(name))) % CHANNEL_BUCKETS];
}

static void forgetChannel(ebpfMonPacketClients *p, ebpfMonPacketChannel **at)
{
    ebpfMonPacketChannel *ch = *at, **byName;

    if (!ch)
        return;
    for (byName = bucketOfName(p, ch->name); *byName != ch; byName = &(*byName)->nextOfName)
        ;
    *byName = ch->nextOfName;
    *at = ch->nextOfBucket;
    *ch->back = ch->next;
    if (ch->next)
        ch->next->back = ch->back;
    p->channels--;
    free(ch);
}

static void removeClient(ebpfMonPacketClients *p, ebpfMonPacketClient **at)
{
    ebpfMonPacketClient *c = *at;

    if (!c)
        return;
    while (c->channel)
        forgetChannel(p, findChannel(p, c->circuit, c->channel->sid));
    while (c->monitor)
        removeMonitor(p, findMonitor(p, c->circuit, c->monitor->ioid));
    *at = c->nextOfBucket;
    p->clients--;
    p->changes++;
    free(c);
}

void ebpfMonPacketClientsFree(ebpfMonPacketClients *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < CLIENT_BUCKETS; i++)
        while (p->client[i])
            removeClient(p, &p->client[i]);
    epicsMutexDestroy(p->lock);
    free(p);
}

/* --- what packets show ------------------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static ebpfMonPacketClient *addCircuit(ebpfMonPacketClients *p, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketClient **at = findCircuitPlace(p, ev->circuit), *c = *at;

    if (!c && p->clients < CLIENTS_MAX && (c = *at = calloc(1, sizeof(*c))) != NULL) {
        c->circuit = ev->circuit;
        c->protocol = ev->protocol;
        c->peer = ev->peer;
        c->first = ev->first;
        c->openedAt = ebpfMonClockMonotonic();
        c->isWhole = ebpfMonFirstIsKnown(&c->first);
        p->clients++;
        p->changes++;
    }
    return c;
}

/* NULL: there is no room. */
static ebpfMonPacketMonitor *addMonitor(ebpfMonPacketClients *p, ebpfMonPacketClient *c, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketMonitor **at = findMonitor(p, c->circuit, ev->ioid), *m = *at;

    if (m)
        return m;
    if (p->monitors >= EBPFMON_CLIENT_MONITORS || (m = calloc(1, sizeof(*m))) == NULL) {
        c->unkept++;
        return NULL;
    }
    *at = m;
    m->client = c;
    m->serial = ++p->serial;
    m->ioid = ev->ioid;
    m->sid = ev->sid;
    ebpfMonTextCopy(m->name, sizeof(m->name), ev->name);
    m->next = c->monitor;
    m->back = &c->monitor;
    if (m->next)
        m->next->back = &m->next;
    c->monitor = m;
    c->monitors++;
    p->monitors++;
    p->changes++;
    return m;
}

/* Without memory or room its name is not known. */
static void addChannel(ebpfMonPacketClients *p, ebpfMonPacketClient *c, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketChannel **at, **byName = bucketOfName(p, ev->name), *ch;
    size_t size = strlen(ev->name) + 1;

    c->channels++;
    forgetChannel(p, findChannel(p, c->circuit, ev->sid));
    if (size == 1 || size > EBPFMON_CHANNEL_NAME || p->channels >= EBPFMON_CLIENT_CHANNELS ||
        (ch = calloc(1, sizeof(*ch) + size)) == NULL)
        return;
    at = findChannel(p, c->circuit, ev->sid);
    *at = ch;
    ch->client = c;
    ch->sid = ev->sid;
    memcpy(ch->name, ev->name, size);
    ch->nextOfName = *byName;
    *byName = ch;
    ch->next = c->channel;
    ch->back = &c->channel;
    if (ch->next)
        ch->next->back = &ch->next;
    c->channel = ch;
    p->channels++;
}

static void setWindow(ebpfMonPacketMonitor *m, uint32_t window)
{
    m->window = window;
    if (!m->isPipelined || window)
        m->closedAt = 0;
    else if (!m->closedAt)
        m->closedAt = ebpfMonClockMonotonic();
}

static void beginMonitor(ebpfMonPacketClients *p, ebpfMonPacketClient *c, const ebpfMonWireEvent *ev)
{
    const char *size = ev->options ? strstr(ev->options, "queueSize=") : NULL;
    ebpfMonPacketMonitor *m;

    removeMonitor(p, findMonitor(p, c->circuit, ev->ioid));
    m = addMonitor(p, c, ev);
    if (!m)
        return;
    m->queueSize = size ? (uint32_t)strtoul(size + strlen("queueSize="), NULL, 10) : 0;
    m->isPipelined = ev->isPipelined != 0;
    setWindow(m, ev->taken);
}

static void countUpdate(ebpfMonPacketMonitor *m, const ebpfMonWireEvent *ev)
{
    m->updates++;
    m->bytes += ev->end - ev->seq;
    m->updatedAt = ebpfMonClockMonotonic();
    m->overruns += ev->hasOverrun > 0;
    m->unread += ev->hasOverrun < 0;
    m->isAtLeast |= !ev->name[0];
    if (m->isPipelined && m->window)
        setWindow(m, m->window - 1);
}

static void noteFlow(ebpfMonPacketClients *p, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketMonitor **at = findMonitor(p, ev->circuit, ev->ioid), *m = *at;

    if (!m)
        return;
    if (ev->flow == ebpfMonWireFlowEnded) {
        removeMonitor(p, at);
        return;
    }
    if (ev->flow != ebpfMonWireFlowTaken) {
        m->isStopped = ev->flow == ebpfMonWireFlowStopped;
        m->stoppedAt = m->isStopped ? ebpfMonClockMonotonic() : 0;
    }
    if (ev->taken)
        setWindow(m, m->window + ev->taken);
}

static void noteMissing(ebpfMonPacketClient *c, int fromServer)
{
    for (ebpfMonPacketMonitor *m = c->monitor; m; m = m->next) {
        m->isAtLeast |= fromServer != 0;
        m->isUnsure |= !fromServer;
        m->isPipelined = 0; /* its window is not known any more */
        setWindow(m, 0);
    }
}

static void removeChannel(ebpfMonPacketClients *p, ebpfMonPacketClient *c, uint32_t sid)
{
    c->channels -= c->channels != 0;
    forgetChannel(p, findChannel(p, c->circuit, sid));
    for (ebpfMonPacketMonitor *m = c->monitor, *next; m; m = next) {
        next = m->next;
        if (m->sid == sid && m->name[0])
            removeMonitor(p, findMonitor(p, c->circuit, m->ioid));
    }
}

static void addToClient(ebpfMonPacketClients *p, ebpfMonPacketClient *c, const ebpfMonWireEvent *ev)
{
    ebpfMonPacketMonitor *m;

    switch (ev->kind) {
    case ebpfMonWireUser:
        ebpfMonTextCopy(c->user, sizeof(c->user), ev->user);
        ebpfMonTextMarkClaim(c->user, sizeof(c->user));
        ebpfMonTextCopy(c->host, sizeof(c->host), ev->host);
        c->isWhole |= c->protocol == ebpfMonWirePva; /* a client says it before it has channels */
        p->changes++;
        break;
    case ebpfMonWireChannel:
        addChannel(p, c, ev);
        break;
    case ebpfMonWireChannelGone:
        removeChannel(p, c, ev->sid);
        break;
    case ebpfMonWireSubscribe:
        beginMonitor(p, c, ev);
        break;
    case ebpfMonWireUpdate:
    case ebpfMonWireValue:
        m = ev->kind == ebpfMonWireUpdate || ev->isUpdate ? addMonitor(p, c, ev) : NULL;
        if (m)
            countUpdate(m, ev);
        break;
    case ebpfMonWireGap:
        noteMissing(c, ev->fromServer);
        break;
    default:
        break;
    }
}

static void setServer(ebpfMonPacketClients *p, ebpfMonPacketClient *c, const ebpfMonServer *server)
{
    static const ebpfMonServer none;

    if (server->off || server->isElsewhere)
        server = &none;
    if (c->iocId != server->iocId || c->pid != server->pid) {
        p->changes++;
        c->gateway = !server->iocId && ebpfMonProcIsOurNetns(server->pid, c->peer.netns) ? server->pid : 0;
    }
    c->iocId = server->iocId;
    c->pid = server->pid;
    memcpy(c->server, server->name, sizeof(c->server));
}

void ebpfMonPacketClientsAdd(ebpfMonPacketClients *p, const ebpfMonWireEvent *ev, const ebpfMonServer *server)
{
    ebpfMonPacketClient *c;

    if (!ev->circuit)
        return;
    epicsMutexMustLock(p->lock);
    if (ev->kind == ebpfMonWireClosed || ev->kind == ebpfMonWireGivenUp || ev->kind == ebpfMonWireCrowded) {
        removeClient(p, findCircuitPlace(p, ev->circuit));
    } else if (ev->kind == ebpfMonWireFlow) {
        noteFlow(p, ev);
    } else {
        c = ev->kind == ebpfMonWireOpened ? addCircuit(p, ev) : *findCircuitPlace(p, ev->circuit);
        if (c && ev->kind == ebpfMonWireOpened && server)
            setServer(p, c, server);
        if (c)
            addToClient(p, c, ev);
    }
    epicsMutexUnlock(p->lock);
}

/* --- servers ----------------------------------------------------------------------------------------------------- */

void ebpfMonPacketClientsFindServers(ebpfMonPacketClients *p, ebpfMonServers *servers, int all)
{
    uint64_t now = ebpfMonClockMonotonic();

    epicsMutexMustLock(p->lock);
    for (const ebpfMonPacketClient *at = ebpfMonPacketClientsNext(p, NULL), *next; at; at = next) {
        ebpfMonPacketClient *c = *findCircuitPlace(p, at->circuit);
        const struct ebpfMonPeer peer = c->peer;
        const uint64_t circuit = c->circuit;
        ebpfMonServer server;

        next = ebpfMonPacketClientsNext(p, at);
        if (!all && (c->iocId || now - c->openedAt > NEW_NS))
            continue;
        epicsMutexUnlock(p->lock); /* only this thread removes clients */
        server = *ebpfMonServersFind(servers, &peer, now);
        epicsMutexMustLock(p->lock);
        c = *findCircuitPlace(p, circuit);
        setServer(p, c, &server);
        if (c->protocol == ebpfMonWireCa && c->iocId) /* it was not known as an IOC when this client came */
            removeClient(p, findCircuitPlace(p, circuit));
    }
    epicsMutexUnlock(p->lock);
}

/* --- readers ----------------------------------------------------------------------------------------------------- */

void ebpfMonPacketClientsLock(ebpfMonPacketClients *p)
{
    epicsMutexMustLock(p->lock);
}

void ebpfMonPacketClientsUnlock(ebpfMonPacketClients *p)
{
    epicsMutexUnlock(p->lock);
}

const ebpfMonPacketClient *ebpfMonPacketClientsNext(const ebpfMonPacketClients *p, const ebpfMonPacketClient *client)
{
    unsigned i = client ? bucketOfClient(client->circuit) + 1 : 0;

    if (client && client->nextOfBucket)
        return client->nextOfBucket;
    while (i < CLIENT_BUCKETS && !p->client[i])
        i++;
    return i < CLIENT_BUCKETS ? p->client[i] : NULL;
}

#define USES_MAX   20000 /* lines of ebpfMonUsers */
#define IN_A_ROW   4     /* gateways, one behind the other */
#define CELL       ebpfMonTextReportAddCell

/* A monitor, or a channel without one, copied. */
typedef struct {
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first;
    ebpfMonWireProtocol protocol;
    char     user[64], host[64], server[EBPFMON_IOCNAME_SIZE], name[EBPFMON_CHANNEL_NAME];
    uint32_t iocId;
    pid_t    pid, gateway, of; /* "of": the process of the client itself, if it was looked for */
    uint64_t openedAt, updates, bytes; /* openedAt 0: not known */
    int      isMonitor, isAtLeast, isShown;
} userCopy;

typedef struct {
    userCopy *user;
    size_t users, room;
    const char *pattern;
} userCopies;

/* NULL: it does not match, or there is no room or memory. */
static userCopy *copyUser(userCopies *to, const ebpfMonPacketClient *c, const char *name)
{
    userCopy *copy;

    if (!name[0] || (to->pattern[0] && !epicsStrGlobMatch(name, to->pattern)) || to->users == USES_MAX ||
        ebpfMonArrayGrow(&to->user, &to->room, to->users + 1, 64, sizeof(*to->user)))
        return NULL;
    copy = &to->user[to->users++];
    *copy = (userCopy){ .peer = c->peer, .first = c->first, .protocol = c->protocol, .iocId = c->iocId,
                        .pid = c->pid, .gateway = c->gateway, .openedAt = c->isWhole ? c->openedAt : 0 };
    memcpy(copy->user, c->user, sizeof(copy->user));
    memcpy(copy->host, c->host, sizeof(copy->host));
    memcpy(copy->server, c->server, sizeof(copy->server));
    ebpfMonTextCopy(copy->name, sizeof(copy->name), name);
    return copy;
}

/* All that match; to->user is for the caller to free. */
static void copyUsers(ebpfMonPacketClients *p, userCopies *to)
{
    epicsMutexMustLock(p->lock);
    p->mark++;
    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(p, NULL); c; c = ebpfMonPacketClientsNext(p, c)) {
        for (const ebpfMonPacketMonitor *m = c->monitor; m; m = m->next) {
            ebpfMonPacketChannel *ch = *findChannel(p, c->circuit, m->sid);
            userCopy *copy = copyUser(to, c, m->name);

            if (ch && strcmp(ch->name, m->name) == 0)
                ch->mark = p->mark;
            if (copy) {
                copy->isMonitor = 1;
                copy->updates = m->updates;
                copy->bytes = m->bytes;
                copy->isAtLeast = m->isAtLeast;
            }
        }
        for (const ebpfMonPacketChannel *ch = c->channel; ch; ch = ch->next)
            if (ch->mark != p->mark)
                copyUser(to, c, ch->name);
    }
    epicsMutexUnlock(p->lock);
}

static void addUserLine(ebpfMonTextReport *report, const userCopy *m, const ebpfMonPutClient *who, const char *gateway)
{
    const char *atLeast = m->isAtLeast ? ">" : "";
    epicsTimeStamp since;
    char time[24] = "-";

    epicsTimeGetCurrent(&since);
    epicsTimeAddSeconds(&since, -(double)(ebpfMonClockMonotonic() - m->openedAt) / 1e9);
    if (m->openedAt)
        epicsTimeToStrftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", &since);
    CELL(report, "%s", m->name);
    CELL(report, " %s", m->server);
    CELL(report, " %s@%s", who->user[0] ? who->user : "?", who->host);
    CELL(report, " %s%s", who->peer, m->protocol == ebpfMonWirePva ? " PVA" : "");
    CELL(report, "%d", m->isMonitor);
    if (m->isMonitor) {
        CELL(report, "%s%llu", atLeast, (unsigned long long)m->updates);
        CELL(report, "%s%llu", atLeast, (unsigned long long)m->bytes);
    } else {
        CELL(report, "-");
        CELL(report, "-");
    }
    CELL(report, " %s", time);
    CELL(report, " %s%s%s", who->command, gateway[0] ? " through gateway " : "", gateway);
}

/* What ebpfMonUsers shows. */
typedef struct {
    ebpfMonPacketClients *p;
    ebpfMonTextReport *report;
    userCopies all;
} usersReport;

static void addUserAndBehind(usersReport *r, userCopy *m, const char *way, unsigned depth);

/* Those who have a channel of this name to the process of "gateway". "way": the gateways so far. */
static void addBehind(usersReport *r, const ebpfMonPutClient *gateway, const char *name, const char *way,
                      unsigned depth)
{
    char process[64], next[200];

    ebpfMonPutClientNameProcess(gateway, process, sizeof(process));
    snprintf(next, sizeof(next), "%s%s%.120s", process, way[0] ? ", " : "", way);
    for (size_t i = 0; i < r->all.users; i++)
        if (r->all.user[i].gateway == (pid_t)gateway->peerPid && strcmp(r->all.user[i].name, name) == 0)
            addUserAndBehind(r, &r->all.user[i], next, depth + 1);
}

static void findUser(usersReport *r, const userCopy *m, ebpfMonPutClient *who)
{
    ebpfMonPutClientsFind(r->p->putClients, &m->peer, &m->first, m->user, m->host, who);
}

static void addUserAndBehind(usersReport *r, userCopy *m, const char *way, unsigned depth)
{
    ebpfMonPutClient who = { .peer = "" };

    m->isShown = 1;
    findUser(r, m, &who);
    addUserLine(r->report, m, &who, way);
    if (who.peerPid && depth < IN_A_ROW)
        addBehind(r, &who, m->name, way, depth);
}

/* Nonzero: its server is a gateway, and a line of that has or will have this one. */
static int isBehind(const usersReport *r, const userCopy *m)
{
    for (size_t i = 0; m->gateway && i < r->all.users; i++)
        if (r->all.user[i].of == m->gateway && strcmp(r->all.user[i].name, m->name) == 0)
            return 1;
    return 0;
}

/* Clients of servers of this host that are no IOCs, with those behind them. */
static void addOtherUsers(usersReport *r)
{
    for (size_t i = 0; i < r->all.users; i++) {
        userCopy *m = &r->all.user[i];
        ebpfMonPutClient who = { .peer = "" };

        if (!m->iocId && !m->isShown && m->pid && m->pid != getpid())
            findUser(r, m, &who);
        m->of = (pid_t)who.peerPid;
    }
    for (int all = 0; all < 2; all++) /* then those whose gateways are clients of each other */
        for (size_t i = 0; i < r->all.users; i++) {
            userCopy *m = &r->all.user[i];

            if (!m->iocId && !m->isShown && m->pid && m->pid != getpid() && (all || !isBehind(r, m)))
                addUserAndBehind(r, m, "", 0);
        }
}

void ebpfMonPacketClientsAddUsers(ebpfMonPacketClients *p, ebpfMonTextReport *report, const char *pvPattern,
                                  const ebpfMonPacketCaUser *ca, size_t cas)
{
    usersReport r = { .p = p, .report = report, .all.pattern = pvPattern };

    copyUsers(p, &r.all);
    for (size_t i = 0; i < cas; i++) {
        ebpfMonPutClient gateway = { .peerPid = (uint32_t)ca[i].pid };

        memcpy(gateway.command, ca[i].command, sizeof(gateway.command));
        addBehind(&r, &gateway, ca[i].name, "", 0);
    }
    for (size_t i = 0; i < r.all.users; i++)
        if (r.all.user[i].iocId)
            addUserAndBehind(&r, &r.all.user[i], "", 0);
    addOtherUsers(&r);
    free(r.all.user);
}

/* --- who is behind a gateway ------------------------------------------------------------------------------------- */

int ebpfMonPacketClientsHas(ebpfMonPacketClients *p, const struct ebpfMonPeer *peer, const char *name)
{
    const ebpfMonPacketChannel *ch;

    epicsMutexMustLock(p->lock);
    ch = *bucketOfName(p, name);
    while (ch && (memcmp(&ch->client->peer, peer, sizeof(*peer)) != 0 || strcmp(ch->name, name) != 0))
        ch = ch->nextOfName;
    epicsMutexUnlock(p->lock);
    return ch != NULL;
}

int ebpfMonPacketClientsHasBehind(ebpfMonPacketClients *p, const char *name)
{
    const ebpfMonPacketChannel *ch;

    epicsMutexMustLock(p->lock);
    ch = *bucketOfName(p, name);
    while (ch && (!ch->client->gateway || strcmp(ch->name, name) != 0))
        ch = ch->nextOfName;
    epicsMutexUnlock(p->lock);
    return ch != NULL;
}

void ebpfMonPacketClientsFindBehind(ebpfMonPacketClients *p, pid_t gateway, const char *name,
                                    ebpfMonPacketBehind *behind)
{
    const ebpfMonPacketClient *newest = NULL;

    *behind = (ebpfMonPacketBehind){ .clients = 0 };
    if (!gateway || gateway == getpid())
        return;
    epicsMutexMustLock(p->lock);
    p->mark++;
    for (const ebpfMonPacketChannel *ch = *bucketOfName(p, name); ch; ch = ch->nextOfName) {
        ebpfMonPacketClient *c = ch->client;

        if (c->gateway != gateway || c->mark == p->mark || strcmp(ch->name, name) != 0)
            continue;
        c->mark = p->mark;
        behind->clients++;
        if (!newest || c->openedAt > newest->openedAt)
            newest = c;
    }
    if (newest) {
        behind->peer = newest->peer;
        behind->first = newest->first;
        memcpy(behind->user, newest->user, sizeof(behind->user));
        memcpy(behind->host, newest->host, sizeof(behind->host));
    }
    for (const ebpfMonPacketClient *c = newest || !name[0] ? ebpfMonPacketClientsNext(p, NULL) : NULL; c;
         c = ebpfMonPacketClientsNext(p, c))
        behind->unknown += c->gateway == gateway && c->mark != p->mark && !c->isWhole;
    epicsMutexUnlock(p->lock);
}

unsigned ebpfMonPacketClientsFormatUsers(ebpfMonPacketClients *p, const ebpfMonPutClient *client, const char *name,
                                         char *text, size_t size, uint64_t *identity)
{
    char way[200] = "", longer[200], process[64], local[160] = "", more[40] = "";
    unsigned others = 0, unknown = 0, isGateway = 0;
    ebpfMonPutClient who = *client;
    ebpfMonPacketBehind behind;

    for (unsigned depth = 0; p && who.peerPid && depth < IN_A_ROW; depth++) {
        ebpfMonPacketClientsFindBehind(p, (pid_t)who.peerPid, name, &behind);
        if (!behind.clients)
            break;
        ebpfMonPutClientNameProcess(&who, process, sizeof(process));
        snprintf(longer, sizeof(longer), "%s%s%.120s", process, way[0] ? ", " : "", way);
        memcpy(way, longer, sizeof(way));
        ebpfMonPutClientsFind(p->putClients, &behind.peer, &behind.first, behind.user, behind.host, &who);
        *identity = ebpfMonHashMix(*identity ^ ebpfMonHashMix(((uint64_t)behind.peer.addr << 16 | behind.peer.port) +
                                                              behind.clients)) | 1;
        isGateway = 1;
        others += behind.clients - 1;
        unknown += behind.unknown;
    }
    if (who.peerPid)
        snprintf(local, sizeof(local), " %s[%u]%s%s", who.command, (unsigned)who.peerPid,
                 who.container[0] ? " in " : "", who.container);
    if (others)
        snprintf(more, sizeof(more), " and %u more%s", others, unknown ? " at least" : "");
    else if (unknown)
        strcpy(more, " and perhaps others");
    snprintf(text, size, "%s@%s%s%s%s%s", who.user[0] ? who.user : "?", who.host, local, more,
             isGateway ? " through gateway " : "", way);
    return isGateway ? others + 1 : 0;
}

uint64_t ebpfMonPacketClientsCountChanges(const ebpfMonPacketClients *p)
{
    return p->changes;
}

void ebpfMonPacketClientsFindWho(ebpfMonPacketClients *p, const struct ebpfMonPeer *peer,
                                 const struct ebpfMonFirst *first, const char *user, const char *host,
                                 ebpfMonPutClient *who)
{
    ebpfMonPutClientsFind(p->putClients, peer, first, user, host, who);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsTime.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "usage/pvaClients.h"

#define CLIENT_BUCKETS  1024  /* powers of two */
#define MONITOR_BUCKETS 16384
#define CLIENTS_MAX     4096  /* as many as a wire has circuits */
#define NEW_NS          (30 * EBPFMON_SECOND_NS) /* so long a new client's server may be an IOC that is found soon */

struct ebpfMonPvaClients {
    ebpfMonPutClients *putClients; /* fixed */
    epicsMutexId lock;             /* guards what follows */
    ebpfMonPvaClient *client[CLIENT_BUCKETS];
    ebpfMonPvaMonitor *monitor[MONITOR_BUCKETS];
    unsigned clients, monitors;
    uint64_t changes, serial;
};

ebpfMonPvaClients *ebpfMonPvaClientsNew(ebpfMonPutClients *putClients)
{
    ebpfMonPvaClients *p = calloc(1, sizeof(*p));

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

static ebpfMonPvaClient **findCircuitPlace(ebpfMonPvaClients *p, uint64_t circuit)
{
    ebpfMonPvaClient **at = &p->client[bucketOfClient(circuit)];

    while (*at && (*at)->circuit != circuit)
        at = &(*at)->nextOfBucket;
    return at;
}

static ebpfMonPvaMonitor **findMonitor(ebpfMonPvaClients *p, uint64_t circuit, uint32_t ioid)
{
    ebpfMonPvaMonitor **at = &p->monitor[ebpfMonHashMix(circuit ^ ebpfMonHashMix(ioid)) % MONITOR_BUCKETS];

    while (*at && ((*at)->ioid != ioid || (*at)->client->circuit != circuit))
        at = &(*at)->nextOfBucket;
    return at;
}

static void removeMonitor(ebpfMonPvaClients *p, ebpfMonPvaMonitor **at)
{
    ebpfMonPvaMonitor *m = *at;

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

static void removeClient(ebpfMonPvaClients *p, ebpfMonPvaClient **at)
{
    ebpfMonPvaClient *c = *at;

    if (!c)
        return;
    while (c->monitor)
        removeMonitor(p, findMonitor(p, c->circuit, c->monitor->ioid));
    *at = c->nextOfBucket;
    p->clients--;
    p->changes++;
    free(c);
}

void ebpfMonPvaClientsFree(ebpfMonPvaClients *p)
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
static ebpfMonPvaClient *addCircuit(ebpfMonPvaClients *p, const ebpfMonWireEvent *ev)
{
    ebpfMonPvaClient **at = findCircuitPlace(p, ev->circuit), *c = *at;

    if (!c && p->clients < CLIENTS_MAX && (c = *at = calloc(1, sizeof(*c))) != NULL) {
        c->circuit = ev->circuit;
        c->peer = ev->peer;
        c->first = ev->first;
        c->openedAt = ebpfMonClockMonotonic();
        p->clients++;
        p->changes++;
    }
    return c;
}

/* NULL: there is no room. */
static ebpfMonPvaMonitor *addMonitor(ebpfMonPvaClients *p, ebpfMonPvaClient *c, const ebpfMonWireEvent *ev)
{
    ebpfMonPvaMonitor **at = findMonitor(p, c->circuit, ev->ioid), *m = *at;

    if (m)
        return m;
    if (p->monitors >= EBPFMON_PVA_MONITORS || (m = calloc(1, sizeof(*m))) == NULL) {
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

static void setWindow(ebpfMonPvaMonitor *m, uint32_t window)
{
    m->window = window;
    if (!m->isPipelined || window)
        m->closedAt = 0;
    else if (!m->closedAt)
        m->closedAt = ebpfMonClockMonotonic();
}

static void beginMonitor(ebpfMonPvaClients *p, ebpfMonPvaClient *c, const ebpfMonWireEvent *ev)
{
    const char *size = strstr(ev->options, "queueSize=");
    ebpfMonPvaMonitor *m;

    removeMonitor(p, findMonitor(p, c->circuit, ev->ioid));
    m = addMonitor(p, c, ev);
    if (!m)
        return;
    m->queueSize = size ? (uint32_t)strtoul(size + strlen("queueSize="), NULL, 10) : 0;
    m->isPipelined = ev->isPipelined != 0;
    setWindow(m, ev->taken);
}

static void countUpdate(ebpfMonPvaMonitor *m, const ebpfMonWireEvent *ev)
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

static void noteFlow(ebpfMonPvaClients *p, const ebpfMonWireEvent *ev)
{
    ebpfMonPvaMonitor **at = findMonitor(p, ev->circuit, ev->ioid), *m = *at;

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

static void noteMissing(ebpfMonPvaClient *c, int fromServer)
{
    for (ebpfMonPvaMonitor *m = c->monitor; m; m = m->next) {
        m->isAtLeast |= fromServer != 0;
        m->isUnsure |= !fromServer;
        m->isPipelined = 0; /* its window is not known any more */
        setWindow(m, 0);
    }
}

static void removeChannel(ebpfMonPvaClients *p, ebpfMonPvaClient *c, uint32_t sid)
{
    c->channels -= c->channels != 0;
    for (ebpfMonPvaMonitor *m = c->monitor, *next; m; m = next) {
        next = m->next;
        if (m->sid == sid && m->name[0])
            removeMonitor(p, findMonitor(p, c->circuit, m->ioid));
    }
}

static void addToClient(ebpfMonPvaClients *p, ebpfMonPvaClient *c, const ebpfMonWireEvent *ev)
{
    ebpfMonPvaMonitor *m;

    switch (ev->kind) {
    case ebpfMonWireUser:
        ebpfMonTextCopy(c->user, sizeof(c->user), ev->user);
        ebpfMonTextMarkClaim(c->user, sizeof(c->user));
        ebpfMonTextCopy(c->host, sizeof(c->host), ev->host);
        p->changes++;
        break;
    case ebpfMonWireChannel:
        c->channels++;
        break;
    case ebpfMonWireChannelGone:
        removeChannel(p, c, ev->sid);
        break;
    case ebpfMonWireSubscribe:
        beginMonitor(p, c, ev);
        break;
    case ebpfMonWireUpdate:
        m = addMonitor(p, c, ev);
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

void ebpfMonPvaClientsAdd(ebpfMonPvaClients *p, const ebpfMonWireEvent *ev)
{
    ebpfMonPvaClient *c;

    if (ev->protocol != ebpfMonWirePva || !ev->circuit)
        return;
    epicsMutexMustLock(p->lock);
    if (ev->kind == ebpfMonWireClosed || ev->kind == ebpfMonWireGivenUp || ev->kind == ebpfMonWireCrowded) {
        removeClient(p, findCircuitPlace(p, ev->circuit));
    } else if (ev->kind == ebpfMonWireFlow) {
        noteFlow(p, ev);
    } else {
        c = ev->kind == ebpfMonWireOpened ? addCircuit(p, ev) : *findCircuitPlace(p, ev->circuit);
        if (c)
            addToClient(p, c, ev);
    }
    epicsMutexUnlock(p->lock);
}

/* --- servers ----------------------------------------------------------------------------------------------------- */

void ebpfMonPvaClientsFindServers(ebpfMonPvaClients *p, ebpfMonServers *servers, int all)
{
    uint64_t now = ebpfMonClockMonotonic();

    epicsMutexMustLock(p->lock);
    for (const ebpfMonPvaClient *next = ebpfMonPvaClientsNext(p, NULL); next; next = ebpfMonPvaClientsNext(p, next)) {
        ebpfMonPvaClient *c = *findCircuitPlace(p, next->circuit);
        const struct ebpfMonPeer peer = c->peer;
        const uint64_t circuit = c->circuit;
        ebpfMonServer server;

        if (!all && (c->iocId || now - c->openedAt > NEW_NS))
            continue;
        epicsMutexUnlock(p->lock); /* only this thread removes clients */
        server = *ebpfMonServersFind(servers, &peer, now);
        epicsMutexMustLock(p->lock);
        c = *findCircuitPlace(p, circuit);
        if (server.off || server.isElsewhere)
            server = (ebpfMonServer){ .iocId = 0 };
        p->changes += c->iocId != server.iocId || c->pid != server.pid;
        c->iocId = server.iocId;
        c->pid = server.pid;
        memcpy(c->server, server.name, sizeof(c->server));
    }
    epicsMutexUnlock(p->lock);
}

/* --- readers ----------------------------------------------------------------------------------------------------- */

void ebpfMonPvaClientsLock(ebpfMonPvaClients *p)
{
    epicsMutexMustLock(p->lock);
}

void ebpfMonPvaClientsUnlock(ebpfMonPvaClients *p)
{
    epicsMutexUnlock(p->lock);
}

const ebpfMonPvaClient *ebpfMonPvaClientsNext(const ebpfMonPvaClients *p, const ebpfMonPvaClient *client)
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

/* A monitor, copied. */
typedef struct {
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first;
    char     user[64], host[64], server[EBPFMON_IOCNAME_SIZE], name[EBPFMON_PVA_NAME];
    uint32_t iocId;
    pid_t    pid;      /* of the server */
    uint64_t openedAt, updates, bytes;
    int      isAtLeast;
} monitorCopy;

/* Those that match. "*copy" is for the caller to free. */
static size_t copyMonitors(ebpfMonPvaClients *p, const char *pattern, monitorCopy **copy)
{
    size_t count = 0, room = 0;

    *copy = NULL;
    epicsMutexMustLock(p->lock);
    for (const ebpfMonPvaClient *c = ebpfMonPvaClientsNext(p, NULL); c; c = ebpfMonPvaClientsNext(p, c))
        for (const ebpfMonPvaMonitor *m = c->monitor; m && count < USES_MAX; m = m->next) {
            monitorCopy *to;

            if (!m->name[0] || (pattern[0] && !epicsStrGlobMatch(m->name, pattern)) ||
                ebpfMonArrayGrow(copy, &room, count + 1, 64, sizeof(**copy)))
                continue;
            to = &(*copy)[count++];
            *to = (monitorCopy){ .peer = c->peer, .first = c->first, .iocId = c->iocId, .pid = c->pid,
                                 .openedAt = c->openedAt, .updates = m->updates, .bytes = m->bytes,
                                 .isAtLeast = m->isAtLeast };
            memcpy(to->user, c->user, sizeof(to->user));
            memcpy(to->host, c->host, sizeof(to->host));
            memcpy(to->server, c->server, sizeof(to->server));
            memcpy(to->name, m->name, sizeof(to->name));
        }
    epicsMutexUnlock(p->lock);
    return count;
}

static void addMonitorLine(ebpfMonTextReport *report, const monitorCopy *m, const ebpfMonPutClient *who,
                           const char *gateway)
{
    const char *atLeast = m->isAtLeast ? ">" : "";
    epicsTimeStamp since;
    char time[24];

    epicsTimeGetCurrent(&since);
    epicsTimeAddSeconds(&since, -(double)(ebpfMonClockMonotonic() - m->openedAt) / 1e9);
    epicsTimeToStrftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", &since);
    CELL(report, "%s", m->name);
    CELL(report, " %s", m->server);
    CELL(report, " %s@%s", m->user[0] ? m->user : "?", m->host);
    CELL(report, " %s PVA", who->peer);
    CELL(report, "1");
    CELL(report, "%s%llu", atLeast, (unsigned long long)m->updates);
    CELL(report, "%s%llu", atLeast, (unsigned long long)m->bytes);
    CELL(report, " %s", time);
    CELL(report, " %s%s%s", who->command, gateway[0] ? " through gateway " : "", gateway);
}

/* A monitor, and if its client is a gateway, those behind it. "way": the gateways so far. */
static void addMonitorAndBehind(ebpfMonPvaClients *p, ebpfMonTextReport *report, const monitorCopy *all, size_t count,
                                const monitorCopy *m, const char *way, unsigned depth)
{
    ebpfMonPutClient who = { .peer = "" };
    char next[200];

    ebpfMonPutClientsFind(p->putClients, &m->peer, &m->first, m->user, m->host, &who);
    addMonitorLine(report, m, &who, way);
    if (!who.peerPid || depth == IN_A_ROW)
        return;
    snprintf(next, sizeof(next), "%.60s[%u]%s%.100s", who.command, who.peerPid, way[0] ? ", " : "", way);
    for (size_t i = 0; i < count; i++)
        if (!all[i].iocId && all[i].pid == (pid_t)who.peerPid && strcmp(all[i].name, m->name) == 0)
            addMonitorAndBehind(p, report, all, count, &all[i], next, depth + 1);
}

void ebpfMonPvaClientsAddUsers(ebpfMonPvaClients *p, ebpfMonTextReport *report, const char *pvPattern)
{
    monitorCopy *all;
    size_t count = copyMonitors(p, pvPattern, &all);

    for (size_t i = 0; i < count; i++)
        if (all[i].iocId)
            addMonitorAndBehind(p, report, all, count, &all[i], "", 0);
    free(all);
}

uint64_t ebpfMonPvaClientsCountChanges(const ebpfMonPvaClients *p)
{
    return p->changes;
}

void ebpfMonPvaClientsFindWho(ebpfMonPvaClients *p, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                              const char *user, const char *host, ebpfMonPutClient *who)
{
    ebpfMonPutClientsFind(p->putClients, peer, first, user, host, who);
}

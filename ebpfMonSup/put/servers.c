/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "host/tcpSockets.h"
#include "put/servers.h"
#include "watch/target.h"

#define LISTENERS_MAX 1024
#define COVERED_MAX   64   /* more than there are packet sources */
#define PLACES        1024 /* servers that are remembered, by hash */
#define WAYS          8    /* … each in one of so many places */
#define VALID_NS (10 * EBPFMON_SECOND_NS) /* after this another process may be the server */
#define WHOLE_NS (60 * EBPFMON_SECOND_NS) /* … and a socket may be another process' that is not noticed otherwise */

/* A server that was looked for. */
typedef struct {
    struct ebpfMonPeer at; /* the server's end, and the namespace of the packets */
    uint64_t lookedAt, used; /* monotonic ns; 0: never */
    uint64_t start;          /* of its process, as ebpfMonProcStart has it */
    int      isIoc;          /* a watched IOC */
    size_t   changes;        /* of the targets, when "server" was filled */
    ebpfMonServer server;
} knownServer;

struct ebpfMonServers {
    ebpfMonTargets      *targets;       /* the caller's */
    ebpfMonServerReaders readers;
    ebpfMonServerSocket *listeners;     /* of the watched IOCs … */
    ebpfMonServer       *listenerServer;/* … and what each is, by the same index */
    unsigned             listenerCount;
    ebpfMonSocketOwners *owners;        /* of the listeners */
    ebpfMonHostSockets  *host;          /* all other servers */
    uint32_t             ownNetns;
    uint32_t             covered[COVERED_MAX];
    uint64_t             coveredSince[COVERED_MAX];
    unsigned             coveredCount;
    uint64_t             wholeAt;       /* when all open files were gone through, monotonic ns */
    knownServer          known[PLACES];
};

static const ebpfMonServerReaders procReaders = {
    .readSockets = ebpfMonServerSocketsRead, .accepts = ebpfMonServerSocketAccepts,
    .findProcess = ebpfMonHostSocketsFind, .readName = ebpfMonProcIocName,
    .readQueue = ebpfMonTcpDiagReadQueue,
    .readNetns = ebpfMonProcNetns,
};

ebpfMonServers *ebpfMonServersNew(ebpfMonTargets *targets, const ebpfMonServerReaders *readers)
{
    ebpfMonServers *servers = calloc(1, sizeof(*servers));

    if (!servers)
        return NULL;
    servers->owners = ebpfMonSocketOwnersNew();
    servers->host = ebpfMonHostSocketsNew();
    if (!servers->owners || !servers->host) {
        ebpfMonServersFree(servers);
        return NULL;
    }
    servers->targets = targets;
    servers->ownNetns = ebpfMonProcNetns(getpid());
    servers->readers = readers ? *readers : procReaders;
    return servers;
}

void ebpfMonServersFree(ebpfMonServers *servers)
{
    if (!servers)
        return;
    ebpfMonSocketOwnersFree(servers->owners);
    ebpfMonHostSocketsFree(servers->host);
    free(servers->listeners);
    free(servers->listenerServer);
    free(servers);
}

/* Each put is seen in the IOC: dbPut, and dbPutField for link fields. */
static int isSeenInIoc(const ebpfMonTarget *t)
{
    return (t->probesOn & EBPFMON_BIT(ebpfMonProgPut)) && (t->probesOn & EBPFMON_BIT(ebpfMonProgPutField));
}

static void fillServer(ebpfMonServer *s, const ebpfMonTarget *t)
{
    s->iocId = t->iocId;
    s->pid = t->pid;
    s->isSeen = isSeenInIoc(t);
    s->off = t->wantedLevel == ebpfMonLevelOff;
    snprintf(s->name, sizeof(s->name), "%s", t->name);
}

/* The IOCs as they are now: malloc'ed lists of their processes and servers, first of those that are watched. Returns
 * their number; *watched: so many are. */
static unsigned listIocs(ebpfMonServers *servers, pid_t **pids, ebpfMonServer **list, unsigned *watched)
{
    unsigned n = 0, size = 0;

    *watched = 0;
    ebpfMonTargetsLock(servers->targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(servers->targets); t; t = t->next)
        size += !t->gone;
    *pids = calloc(size ? size : 1, sizeof(**pids));
    *list = calloc(size ? size : 1, sizeof(**list));
    for (int isOff = 0; isOff <= 1 && *pids && *list; isOff++)
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(servers->targets); t && n < size; t = t->next) {
            if (t->gone || (t->wantedLevel == ebpfMonLevelOff) != isOff)
                continue;
            (*pids)[n] = t->pid;
            fillServer(&(*list)[n++], t);
            *watched += !isOff;
        }
    ebpfMonTargetsUnlock(servers->targets);
    return n;
}

/* The process of this IOC; 0: it has ended. */
static pid_t findRunning(ebpfMonServers *servers, uint32_t iocId)
{
    ebpfMonTarget *t;
    pid_t pid;

    ebpfMonTargetsLock(servers->targets);
    t = ebpfMonTargetsFindById(servers->targets, iocId);
    pid = t && !t->gone ? t->pid : 0;
    ebpfMonTargetsUnlock(servers->targets);
    return pid;
}

int ebpfMonServersIsRunning(ebpfMonServers *servers, uint32_t iocId)
{
    return findRunning(servers, iocId) != 0;
}

int ebpfMonServersHasUnread(ebpfMonServers *servers, uint32_t iocId, const struct ebpfMonPeer *peer)
{
    pid_t pid = findRunning(servers, iocId);

    return pid && servers->readers.readQueue(pid, peer) > 1; /* the FIN counts as one */
}

/* Only where packets are read: in a host of many containers, to read the sockets of each takes milliseconds. A server
 * elsewhere is looked for when somebody writes to it. */
static void readListeners(ebpfMonServers *servers, const pid_t *pids, unsigned watched, unsigned iocs)
{
    uint64_t now = ebpfMonClockMonotonic();
    ebpfMonServerSocket *sockets = NULL;
    int count;

    if (now >= servers->wholeAt + WHOLE_NS) {
        ebpfMonSocketOwnersForget(servers->owners);
        servers->wholeAt = now;
    }
    count = servers->readers.readSockets(pids, watched, iocs, LISTENERS_MAX, servers->owners, &sockets);
    if (count < 0)
        return;
    free(servers->listeners);
    free(servers->listenerServer);
    servers->listeners = sockets;
    servers->listenerServer = calloc(count ? (size_t)count : 1, sizeof(*servers->listenerServer));
    servers->listenerCount = servers->listenerServer ? (unsigned)count : 0;
}

/* The servers to the sockets that were read. */
static void setServers(ebpfMonServers *servers, const pid_t *pids, const ebpfMonServer *list, unsigned iocs)
{
    for (unsigned i = 0; i < servers->listenerCount; i++)
        for (unsigned k = 0; k < iocs; k++)
            if (pids[k] == servers->listeners[i].pid)
                servers->listenerServer[i] = list[k];
}

/* The number of the listener at this end of a connection; listenerCount: there is none. */
static unsigned findListener(const ebpfMonServers *servers, const struct ebpfMonPeer *peer)
{
    unsigned i = 0;

    while (i < servers->listenerCount && !servers->readers.accepts(&servers->listeners[i], peer))
        i++;
    return i;
}

const ebpfMonServer *ebpfMonServersFindKnown(const ebpfMonServers *servers, const struct ebpfMonPeer *peer)
{
    unsigned i = findListener(servers, peer);

    return i < servers->listenerCount ? &servers->listenerServer[i] : NULL;
}

/* Whether this server is a watched IOC now. */
static int isListener(const ebpfMonServers *servers, const knownServer *k)
{
    return findListener(servers, &k->at) < servers->listenerCount;
}

/* An IOC that began to serve after the last refresh. Nonzero: the process is a watched IOC. */
static int findIoc(ebpfMonServers *servers, pid_t pid, ebpfMonServer *server)
{
    ebpfMonTarget *t;

    ebpfMonTargetsLock(servers->targets);
    t = ebpfMonTargetsFindByPid(servers->targets, pid);
    if (t)
        fillServer(server, t);
    ebpfMonTargetsUnlock(servers->targets);
    return t != NULL;
}

/* Nonzero: a server that was looked for may be another one now. An IOC may, and one that was no IOC when it was looked
 * for: otherwise its puts would be published twice until the time of that look has passed. IOCs at level off are looked
 * for again when their time has come, because that takes milliseconds. */
static int mayHaveChanged(ebpfMonServers *servers, knownServer *k)
{
    if (isListener(servers, k))
        return 1;
    return k->isIoc && !(k->server.off && findIoc(servers, k->server.pid, &k->server) && k->server.off);
}

void ebpfMonServersRefresh(ebpfMonServers *servers, void (*port)(void *arg, uint32_t netns, uint16_t port), void *arg)
{
    ebpfMonServer *list;
    pid_t *pids;
    unsigned watched, iocs = listIocs(servers, &pids, &list, &watched);

    readListeners(servers, pids, watched, iocs);
    setServers(servers, pids, list, iocs);
    for (unsigned i = 0; i < servers->listenerCount; i++)
        port(arg, servers->listeners[i].netns, ntohs(servers->listeners[i].port));
    free(pids);
    free(list);
    for (unsigned i = 0; i < PLACES; i++)
        if (servers->known[i].lookedAt && mayHaveChanged(servers, &servers->known[i]))
            servers->known[i].lookedAt = 0;
}

/* The place of a server; a new one takes that of the server that was asked for longest ago. */
static knownServer *getKnown(ebpfMonServers *servers, const struct ebpfMonPeer *peer)
{
    unsigned h = (peer->saddr * 2654435761u ^ peer->sport * 40503u ^ peer->netns) % PLACES;
    knownServer *oldest = &servers->known[h];

    for (unsigned i = 0; i < WAYS; i++) {
        knownServer *k = &servers->known[(h + i) % PLACES];

        if (k->used && k->at.sport == peer->sport && k->at.netns == peer->netns &&
            ebpfMonIsSameAddress(k->at.saddr, k->at.saddr6, peer->saddr, peer->saddr6))
            return k;
        if (k->used < oldest->used)
            oldest = k;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->at = (struct ebpfMonPeer){ .netns = peer->netns, .saddr = peer->saddr, .sport = peer->sport };
    memcpy(oldest->at.saddr6, peer->saddr6, sizeof(peer->saddr6));
    return oldest;
}

pid_t ebpfMonServersFindProcess(ebpfMonServers *servers, const struct ebpfMonPeer *peer)
{
    ebpfMonHostLook look = { .isRead = 0 };

    return servers->readers.findProcess(servers->host, peer, &look);
}

void ebpfMonServersSetCovered(ebpfMonServers *servers, const uint32_t *netns, const uint64_t *since, unsigned count)
{
    count = count < COVERED_MAX ? count : COVERED_MAX;
    if (count == servers->coveredCount && memcmp(netns, servers->covered, count * sizeof(*netns)) == 0 &&
        memcmp(since, servers->coveredSince, count * sizeof(*since)) == 0)
        return;
    servers->coveredCount = count;
    memcpy(servers->covered, netns, count * sizeof(*netns));
    memcpy(servers->coveredSince, since, count * sizeof(*since));
    for (unsigned i = 0; i < PLACES; i++)
        if (servers->known[i].server.netns != servers->known[i].at.netns)
            servers->known[i].lookedAt = 0;
}

uint64_t ebpfMonServersGetCovered(const ebpfMonServers *servers, uint32_t netns)
{
    for (unsigned i = 0; i < servers->coveredCount; i++)
        if (servers->covered[i] == netns)
            return servers->coveredSince[i];
    return UINT64_MAX;
}

/* Judges packets of a server whose socket is in another namespace than theirs. */
static void judgeAway(const ebpfMonServers *servers, knownServer *k)
{
    ebpfMonServer *s = &k->server;

    if (!s->netns || s->netns == k->at.netns)
        return;
    s->elsewhereSince = s->iocId && !s->off ? 0 : ebpfMonServersGetCovered(servers, s->netns);
    s->isElsewhere = s->elsewhereSince != UINT64_MAX;
    s->off |= k->at.netns != servers->ownNetns;
}

/* Finds the process that listens there, in the namespace of the packets or else in another one: *netns. 0: none. */
static pid_t findAnywhere(ebpfMonServers *servers, const struct ebpfMonPeer *peer, uint32_t *netns,
                          ebpfMonHostLook *look)
{
    struct ebpfMonPeer any = *peer;
    pid_t pid = servers->readers.findProcess(servers->host, peer, look);

    *netns = peer->netns;
    if (pid || !peer->netns || ebpfMonIsLoopback(peer->saddr, peer->saddr6))
        return pid;
    any.netns = 0;
    pid = servers->readers.findProcess(servers->host, &any, look);
    *netns = pid ? servers->readers.readNetns(pid) : 0;
    return pid;
}

static void lookForServer(ebpfMonServers *servers, knownServer *k, const struct ebpfMonPeer *peer)
{
    unsigned i = findListener(servers, peer);
    ebpfMonHostLook look = { .isUrgent = k->server.pid != 0 }; /* its port may be another server's now */
    uint32_t netns;
    pid_t pid;

    if (i < servers->listenerCount) {
        k->isIoc = 1;
        k->server = servers->listenerServer[i];
        k->server.netns = peer->netns;
        findIoc(servers, servers->listeners[i].pid, &k->server); /* it may have changed since the last refresh */
        return;
    }
    pid = findAnywhere(servers, peer, &netns, &look);
    if (!pid && look.again) /* another one may listen since then */
        k->lookedAt = look.again - VALID_NS;
    if (!pid && k->server.name[0])
        return; /* it has ended; packets that are still read were for it */
    memset(&k->server, 0, sizeof(k->server));
    k->server.pid = pid;
    k->start = pid ? ebpfMonProcStart(pid) : 0;
    k->server.netns = netns;
    k->isIoc = pid && findIoc(servers, pid, &k->server);
    /* ourselves, unless that was asked for: then we are a watched IOC */
    k->server.off |= !k->isIoc && pid == getpid();
    judgeAway(servers, k);
    if (k->isIoc)
        return;
    if (pid && servers->readers.readName(pid, k->server.name, sizeof(k->server.name)) >= 0)
        ebpfMonTargetTextTellApart(servers->targets, pid, k->server.name);
    else
        ebpfMonPeerTextEnd(peer->saddr, peer->saddr6, peer->sport, k->server.name, sizeof(k->server.name));
}

void ebpfMonServersNoteOpened(ebpfMonServers *servers, const struct ebpfMonPeer *peer)
{
    knownServer *k = getKnown(servers, peer);

    if (!k->isIoc && k->start && !ebpfMonProcLives(k->server.pid, k->start))
        k->lookedAt = 0;
}

const ebpfMonServer *ebpfMonServersFind(ebpfMonServers *servers, const struct ebpfMonPeer *peer, uint64_t now)
{
    size_t changes = ebpfMonTargetsCountChanges(servers->targets); /* before what has changed is read */
    knownServer *k = getKnown(servers, peer);

    k->used = now;
    if (!k->lookedAt || now - k->lookedAt >= VALID_NS) {
        k->lookedAt = now;
        lookForServer(servers, k, peer);
    } else if (k->changes != changes && k->server.pid && findIoc(servers, k->server.pid, &k->server)) {
        k->isIoc = 1; /* not only at the next refresh: packets are wanted, or not, from the change on */
        judgeAway(servers, k);
    }
    k->changes = changes;
    return &k->server;
}

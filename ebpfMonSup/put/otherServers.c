/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <errlog.h>

#include "common/clock.h"
#include "host/procInfo.h"
#include "model/filter.h"
#include "model/published.h"
#include "put/otherServers.h"

#define PROTOCOLS   2                          /* ebpfMonWireCa, ebpfMonWirePva */
#define FOUND_NS    (5 * EBPFMON_SECOND_NS)    /* so long the follower may need to find an IOC that has just started */
#define LISTENS_NS  (60 * EBPFMON_SECOND_NS)   /* between two looks whether a server still listens */
#define DOUBTFUL_NS (60 * EBPFMON_SECOND_NS)   /* between two looks at a beacon that proved nothing */
#define DOUBTFUL    256                        /* such beacons that are remembered, by hash */

typedef struct {
    pid_t    pid;      /* 0: this place is free */
    uint64_t start;    /* with the pid its identity */
    uint64_t since;    /* monotonic ns: first proof, as all times here */
    uint64_t listensAt;
    int      isLogged;
    struct ebpfMonPeer at[PROTOCOLS]; /* its address; sport 0: it does not serve this protocol */
    char     name[EBPFMON_IOCNAME_SIZE];
} otherServer;

/* A beacon whose sender was looked for: a hash of its server, and when. */
typedef struct {
    uint64_t server, lookedAt;
} doubtfulBeacon;

struct ebpfMonOtherServers {
    ebpfMonTargets *targets; /* both are the caller's */
    ebpfMonServers *servers;
    ebpfMonPacketServers *known; /* the caller's, too */
    otherServer     server[EBPFMON_OTHERS_MAX];
    doubtfulBeacon  doubtful[DOUBTFUL];
    ebpfMonIocRow   row[EBPFMON_OTHERS_MAX];
    ebpfMonPacketServer list[EBPFMON_OTHERS_MAX];
};

ebpfMonOtherServers *ebpfMonOtherServersNew(ebpfMonTargets *targets, ebpfMonServers *servers,
                                            ebpfMonPacketServers *known)
{
    ebpfMonOtherServers *others = calloc(1, sizeof(*others));

    if (others) {
        others->targets = targets;
        others->servers = servers;
        others->known = known;
    }
    return others;
}

void ebpfMonOtherServersFree(ebpfMonOtherServers *others)
{
    free(others);
}

/* NULL: the list is full. */
static otherServer *getServer(ebpfMonOtherServers *others, pid_t pid, uint64_t start, const char *name, uint64_t now)
{
    otherServer *room = NULL;

    for (otherServer *s = others->server; s < others->server + EBPFMON_OTHERS_MAX; s++) {
        if (s->pid == pid && s->start == start)
            return s;
        if (!s->pid && !room)
            room = s;
    }
    if (!room)
        return NULL;
    *room = (otherServer){ .pid = pid, .start = start, .since = now, .listensAt = now };
    snprintf(room->name, sizeof(room->name), "%s", name);
    return room;
}

/* This process is proven to serve there. NULL: it has ended, or the list is full. */
static otherServer *addServer(ebpfMonOtherServers *others, ebpfMonWireProtocol protocol, const struct ebpfMonPeer *peer,
                      const ebpfMonServer *server, uint64_t now)
{
    uint64_t start = ebpfMonProcStart(server->pid);
    otherServer *s = start ? getServer(others, server->pid, start, server->name, now) : NULL;

    if (!s)
        return NULL;
    s->at[protocol] = (struct ebpfMonPeer){ .netns = server->netns, .saddr = peer->saddr, .sport = peer->sport };
    memcpy(s->at[protocol].saddr6, peer->saddr6, sizeof(peer->saddr6));
    return s;
}

static int isKnown(const ebpfMonOtherServers *others, ebpfMonWireProtocol protocol, const struct ebpfMonPeer *peer)
{
    for (const otherServer *s = others->server; s < others->server + EBPFMON_OTHERS_MAX; s++) {
        const struct ebpfMonPeer *at = &s->at[protocol];

        if (s->pid && at->sport == peer->sport && at->netns == peer->netns &&
            ebpfMonIsSameAddress(at->saddr, at->saddr6, peer->saddr, peer->saddr6))
            return 1;
    }
    return 0;
}

/* Nonzero: the sender of this beacon was looked for a short time ago. */
static int isDoubtful(ebpfMonOtherServers *others, ebpfMonWireProtocol protocol, const struct ebpfMonPeer *peer,
                      uint64_t now)
{
    uint64_t key = ((uint64_t)peer->saddr << 17 | (uint64_t)peer->sport << 1 | (uint64_t)protocol) ^
                   (uint64_t)peer->netns << 32;
    doubtfulBeacon *d = &others->doubtful[(key * 0x9e3779b97f4a7c15ull >> 32) % DOUBTFUL];

    if (d->lookedAt && d->server == key && now - d->lookedAt < DOUBTFUL_NS)
        return 1;
    *d = (doubtfulBeacon){ key, now };
    return 0;
}

/* The process that listens there, if it is neither an IOC that is watched, nor ourselves, and the packet counts for
 * it. */
static const ebpfMonServer *findOther(ebpfMonOtherServers *others, const struct ebpfMonPeer *peer, uint64_t now)
{
    const ebpfMonServer *server = ebpfMonServersFind(others->servers, peer, now);

    return server->pid && !server->iocId && !server->isElsewhere && !server->off ? server : NULL;
}

/* Most beacons come from other hosts, and to find the owner of a socket takes milliseconds. */
static void addBeacon(ebpfMonOtherServers *others, const ebpfMonWireEvent *ev, uint64_t now)
{
    const struct ebpfMonPeer *peer = &ev->peer;
    const ebpfMonServer *server;

    if (!ebpfMonServerSocketsIsOurHost(peer) || isKnown(others, ev->protocol, peer) ||
        isDoubtful(others, ev->protocol, peer, now))
        return;
    server = findOther(others, peer, now);
    if (server && ebpfMonServerSocketsSends(server->pid, peer))
        addServer(others, ev->protocol, peer, server, now);
}

void ebpfMonOtherServersAddEvent(ebpfMonOtherServers *others, const ebpfMonWireEvent *ev, uint64_t now)
{
    if (ev->kind == ebpfMonWireBeacon) {
        addBeacon(others, ev, now);
    } else if (ev->kind == ebpfMonWireChannel && ev->fromServer && ev->circuit && !ev->stretch) {
        const ebpfMonServer *server = findOther(others, &ev->peer, now);
        const otherServer *s = server ? addServer(others, ev->protocol, &ev->peer, server, now) : NULL;

        if (s)
            ebpfMonPacketServersAddPv(others->known, s->pid, s->start, ev->name);
    }
}

static int isWatched(ebpfMonOtherServers *others, pid_t pid)
{
    int found;

    ebpfMonTargetsLock(others->targets);
    found = ebpfMonTargetsFindByPid(others->targets, pid) != NULL;
    ebpfMonTargetsUnlock(others->targets);
    return found;
}

/* Forgets the protocols that the server does not serve any more. Nonzero: there is another one. */
static int stillListens(ebpfMonOtherServers *others, otherServer *s, uint64_t now)
{
    int count = 0;

    if (now - s->listensAt < LISTENS_NS)
        return 1;
    s->listensAt = now;
    for (int i = 0; i < PROTOCOLS; i++) {
        if (s->at[i].sport && ebpfMonServersFindProcess(others->servers, &s->at[i]) != s->pid)
            s->at[i].sport = 0;
        count += s->at[i].sport != 0;
    }
    return count > 0;
}

static void makeRow(const otherServer *s, ebpfMonIocRow *row)
{
    unsigned ca = ntohs(s->at[ebpfMonWireCa].sport), pva = ntohs(s->at[ebpfMonWirePva].sport);
    char ports[40];

    memset(row, 0, sizeof(*row)); /* the rows of two seconds are compared byte by byte */
    snprintf(row->name, sizeof(row->name), "%s", s->name);
    row->pid = (int32_t)s->pid;
    row->level = ebpfMonLevelOff;
    row->timed = NAN;
    if (ca && pva)
        snprintf(ports, sizeof(ports), "CA port %u, PVA port %u", ca, pva);
    else
        snprintf(ports, sizeof(ports), "%s port %u", ca ? "CA" : "PVA", ca ? ca : pva);
    /* the begin of it must fit into an element of IOC_NOTES */
    snprintf(row->note, sizeof(row->note),
             "packets only (%s): no records of EPICS Base were found in this server, so there are no counts "
             "and no chains",
             ports);
}

static void logServer(otherServer *s, const ebpfMonIocRow *row)
{
    if (!s->isLogged)
        errlogSevPrintf(errlogInfo, "ebpfMon: %s (pid %d): %s\n", row->name, (int)row->pid, row->note);
    s->isLogged = 1;
}

static int compareRows(const void *a, const void *b)
{
    const ebpfMonIocRow *x = a, *y = b;
    int byName = strcmp(x->name, y->name);

    return byName ? byName : x->pid - y->pid;
}

static void listServer(const otherServer *s, int isListed, const ebpfMonFilter *filter, ebpfMonPacketServer *listed)
{
    *listed = (ebpfMonPacketServer){
        .pid = s->pid, .start = s->start, .caPort = ntohs(s->at[ebpfMonWireCa].sport),
        .pvaPort = ntohs(s->at[ebpfMonWirePva].sport),
        .isListed = isListed && filter->level > ebpfMonLevelOff && ebpfMonPatternMatchesIoc(filter->ioc, s->name),
    };
    snprintf(listed->name, sizeof(listed->name), "%s", s->name);
}

void ebpfMonOtherServersPublish(ebpfMonOtherServers *others, const ebpfMonFilter *filter, uint64_t now)
{
    ebpfMonPublished *published;
    unsigned n = 0, known = 0;

    for (otherServer *s = others->server; s < others->server + EBPFMON_OTHERS_MAX; s++) {
        int isRow;

        if (s->pid && (!ebpfMonProcLives(s->pid, s->start) || !stillListens(others, s, now)))
            s->pid = 0;
        if (!s->pid)
            continue;
        isRow = now - s->since >= FOUND_NS && !isWatched(others, s->pid);
        listServer(s, isRow, filter, &others->list[known++]);
        if (!isRow)
            continue;
        makeRow(s, &others->row[n]);
        logServer(s, &others->row[n++]);
    }
    ebpfMonPacketServersSetList(others->known, others->list, known);
    qsort(others->row, n, sizeof(others->row[0]), compareRows);
    published = ebpfMonPublishedLock();
    published->others.count = n;
    memcpy(published->others.ioc, others->row, n * sizeof(others->row[0]));
    ebpfMonPublishedUnlock();
}

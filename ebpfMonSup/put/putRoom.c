/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <math.h>
#include <errlog.h>

#include "access/guard.h"
#include "common/clock.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "host/procStat.h"
#include "ioc/catalogue.h"
#include "model/filter.h"
#include "model/published.h"
#include "put/putRoom.h"
#include "put/valueText.h"

/* --- servers that are no IOCs --- */

#define PROTOCOLS   2                          /* ebpfMonWireCa, ebpfMonWirePva */
#define FOUND_NS    (5 * EBPFMON_SECOND_NS)    /* so long the follower may need to find an IOC that has just started */
#define UNDECIDED_NS (60 * EBPFMON_SECOND_NS)  /* … on a host that leaves it no time; then the server has a row */
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

/* "known": gets the servers, and the names of their PVs. The arguments stay the caller's. NULL without memory. */
static ebpfMonOtherServers *newOtherServers(ebpfMonTargets *targets, ebpfMonServers *servers,
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

/* Nonzero: the follower has looked at this process, which is no IOC; or that takes too long. */
static int isNoIoc(ebpfMonOtherServers *others, const otherServer *s, uint64_t now)
{
    uint64_t waited = now - s->since, searched = ebpfMonTargetsGetSearched(others->targets);

    if (waited < FOUND_NS || isWatched(others, s->pid))
        return 0;
    return waited >= UNDECIDED_NS || (searched && ebpfMonProcUptime(s->start, searched) > 0);
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
        isRow = isNoIoc(others, s, now);
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

/* --- puts to the monitor's own PVs --- */

struct ebpfMonOwnPuts {
    ebpfMonPutClients *clients;               /* these three are the caller's */
    ebpfMonUserNames  *users;
    ebpfMonLosses     *losses;
    int               watchSelf;
    void            (*publish)(void *arg, ebpfMonPut *put);
    void             *arg;
    char              ioc[EBPFMON_NAME_SIZE]; /* our own name as an IOC */
    uint32_t          netns;                  /* … and network namespace */
    ebpfMonGuardedPut from;                   /* these two are the one in hand: too large for the stack */
    ebpfMonPut        put;
};

/* "publish" gets each put, with its texts. "watchSelf": the monitor is a target, too. Clients, users and losses stay
 * the caller's. NULL without memory. */
static ebpfMonOwnPuts *newOwnPuts(ebpfMonPutClients *clients, ebpfMonUserNames *users, ebpfMonLosses *losses,
                                  int watchSelf, void (*publish)(void *arg, ebpfMonPut *put), void *arg)
{
    ebpfMonOwnPuts *puts = calloc(1, sizeof(*puts));

    if (!puts)
        return NULL;
    puts->clients = clients;
    puts->users = users;
    puts->losses = losses;
    puts->watchSelf = watchSelf;
    puts->publish = publish;
    puts->arg = arg;
    puts->netns = (uint32_t)ebpfMonProcNetns(getpid());
    if (ebpfMonProcIocName(getpid(), puts->ioc, sizeof(puts->ioc)) < 0)
        snprintf(puts->ioc, sizeof(puts->ioc), "ebpfMon");
    return puts;
}

static void setSent(const ebpfMonGuardedPut *from, ebpfMonPut *put)
{
    /* db_access.h: DBR_STRING … DBR_DOUBLE */
    static const int types[] = {ebpfMonDbfString, ebpfMonDbfShort, ebpfMonDbfFloat, ebpfMonDbfEnum, ebpfMonDbfUchar,
                                ebpfMonDbfLong, ebpfMonDbfDouble};
    ebpfMonValue value = { .data = from->data, .len = from->have, .size = EBPFMON_MAX_STRING, .count = from->count };

    put->count = from->count;
    put->oldCount = -1;
    if (from->type < 0) { /* over PVA the sent value is not known: the value of the field is taken for it, unless the
                           * put was refused */
        snprintf(put->val, sizeof(put->val), "%s", from->hasAfter ? from->after : "?");
        return;
    }
    value.type = types[from->type];
    ebpfMonValueTextFormat(NULL, NULL, 0, &value, put->val, sizeof(put->val));
    put->isText = ebpfMonValueTextIsText(&value);
    put->isNumber = ebpfMonValueTextGetNumber(&value, &put->number);
    if (from->hasAfter && strcmp(from->after, put->val) != 0)
        snprintf(put->after, sizeof(put->after), "%s", from->after);
}

static void setClient(ebpfMonOwnPuts *puts, const ebpfMonGuardedPut *from, ebpfMonPut *put)
{
    const ebpfMonPeerUser *user = &from->client.user;
    struct ebpfMonPeer peer = user->connection;
    ebpfMonPutClient client;

    peer.netns = puts->netns;
    ebpfMonPutClientsFind(puts->clients, &peer, NULL, from->user, from->host, &client);
    if (user->kind == ebpfMonPeerLocal) {
        client.peerUid = user->uid;
        ebpfMonUserNamesFind(puts->users, user->uid, client.realUser, sizeof(client.realUser));
    }
    ebpfMonPutClientSet(&client, put);
}

static void setOwnResult(const ebpfMonGuardedPut *from, ebpfMonPut *put)
{
    if (!from->isAllowed) {
        put->result = ebpfMonPutDenied;
        snprintf(put->message, sizeof(put->message), "%s", from->why);
    } else if (from->type >= 0 && from->hasOld && from->hasAfter && strcmp(from->old, from->after) == 0 &&
               strcmp(put->val, from->after) != 0) {
        put->result = ebpfMonPutUnknown; /* asTrapWrite tells no status, and the field is as it was */
    } else {
        put->result = ebpfMonPutOk;
    }
}

static void finishOwnPut(ebpfMonOwnPuts *puts)
{
    const ebpfMonGuardedPut *from = &puts->from;
    ebpfMonPut *put = &puts->put;

    memset(put, 0, sizeof(*put));
    put->time = from->time;
    put->at = from->at;
    put->seen = EBPFMON_SEEN_INSIDE;
    put->through = from->client.server == ebpfMonClientPva ? ebpfMonByPva : ebpfMonByCa;
    snprintf(put->ioc, sizeof(put->ioc), "%s", puts->ioc);
    snprintf(put->pv, sizeof(put->pv), "%.*s", (int)sizeof(put->pv) - 1, from->pv);
    if (strcmp(from->channel, from->pv) != 0)
        snprintf(put->channel, sizeof(put->channel), "%s", from->channel);
    put->hasOld = from->hasOld;
    snprintf(put->old, sizeof(put->old), "%s", from->old);
    setSent(from, put);
    setClient(puts, from, put);
    setOwnResult(from, put);
    ebpfMonWriterTextComplete(put);
    puts->publish(puts->arg, put);
}

unsigned ebpfMonOwnPutsPublish(ebpfMonOwnPuts *puts)
{
    unsigned n = 0;

    for (unsigned lost = ebpfMonGuardedPutsTakeLost(); lost > 0; lost--)
        ebpfMonLossesAdd(puts->losses, ebpfMonLossOwnPut);
    for (; ebpfMonGuardedPutsTake(&puts->from); n++)
        finishOwnPut(puts);
    return n;
}

int ebpfMonOwnPutsHas(const ebpfMonOwnPuts *puts, const ebpfMonPut *put)
{
    return puts->watchSelf && (put->through == ebpfMonByCa || put->through == ebpfMonByPva) &&
           strcmp(put->ioc, puts->ioc) == 0 && ebpfMonGuardHasPv(put->pv);
}

/* --- the room --- */

/* A name service answers within microseconds (files) or some milliseconds (LDAP). If it hangs the event thread waits
 * this long, once; meanwhile the event ring has room for the events of all IOCs. */
#define USER_NAME_DEADLINE 0.1 /* s */
#define USER_NAME_STOP     1.0 /* s */

static void publishHeld(void *arg, ebpfMonPut *put)
{
    const ebpfMonPutRoom *room = arg;

    room->heldPut(room->arg, put);
}

static void wakePackets(void *arg)
{
    const ebpfMonPutRoom *room = arg;

    if (room->wakes.wake)
        room->wakes.wake(room->wakes.packets);
}

int ebpfMonPutRoomMake(ebpfMonPutRoom *room, const ebpfMonPutRoomUses *uses)
{
    const ebpfMonGatewayCalls gateways = { .publish = publishHeld, .wake = wakePackets, .arg = room,
                                           .findPayer = ebpfMonProcPayer };

    memset(room, 0, sizeof(*room));
    room->wakes = uses->wakes;
    room->heldPut = uses->heldPut;
    room->arg = uses->arg;
    room->users = ebpfMonUserNamesNew(ebpfMonProcUser, USER_NAME_DEADLINE);
    room->clients = ebpfMonPutClientsNew(room->users, uses->findOwner, uses->findCertificate);
    room->linkWrites = ebpfMonLinkWritesNew();
    room->join = ebpfMonPutJoinNew(uses->targets);
    if (room->join)
        ebpfMonPutJoinSetWakes(room->join, &uses->wakes);
    room->threadPuts = ebpfMonThreadPutsNew();
    room->iocPuts = ebpfMonIocPutsNew(uses->targets, room->clients, room->join, room->linkWrites, room->threadPuts,
                                      uses->losses, uses->audits, &uses->iocPuts);
    room->servers = ebpfMonServersNew(uses->targets, NULL);
    if (room->servers)
        room->otherServers = newOtherServers(uses->targets, room->servers, uses->packetServers);
    room->packetPuts = ebpfMonPacketPutsNew(uses->targets, room->clients, room->linkWrites, uses->packetPut, uses->arg);
    room->gateways = ebpfMonGatewaysNew(room->clients, &gateways);
    if (room->gateways)
        room->packetEvents = ebpfMonPacketEventsNew(room->join, room->servers, room->packetPuts, room->gateways,
                                                    uses->audits, &uses->packets, uses->canJoin);
    room->ownPuts = newOwnPuts(room->clients, room->users, uses->losses, uses->watchSelf, uses->ownPut,
                                      uses->arg);
    if (room->users && room->clients && room->linkWrites && room->join && room->threadPuts && room->iocPuts &&
        room->otherServers && room->packetPuts && room->packetEvents && room->ownPuts)
        return 0;
    ebpfMonPutRoomFree(room);
    return -1;
}

void ebpfMonPutRoomFree(ebpfMonPutRoom *room)
{
    free(room->ownPuts);
    ebpfMonPacketEventsFree(room->packetEvents);
    ebpfMonGatewaysFree(room->gateways);
    ebpfMonPacketPutsFree(room->packetPuts);
    free(room->otherServers);
    ebpfMonServersFree(room->servers);
    ebpfMonIocPutsFree(room->iocPuts);
    ebpfMonThreadPutsFree(room->threadPuts);
    ebpfMonPutJoinFree(room->join);
    ebpfMonLinkWritesFree(room->linkWrites);
    ebpfMonPutClientsFree(room->clients);
    ebpfMonUserNamesFree(room->users, USER_NAME_STOP); /* if the name service hangs, its thread and memory stay */
    memset(room, 0, sizeof(*room));
}

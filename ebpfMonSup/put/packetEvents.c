/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "host/procNetns.h"
#include "model/filter.h"
#include "put/lastValues.h"
#include "put/packetEvents.h"
#include "put/translated.h"
#include "wire/caType.h"

#define DELAY_MAX   60000000000ull /* from a packet to us */
#define ASK_NS      100000000ull   /* the kernel is not asked for sockets more often than that */

struct ebpfMonPacketEvents {
    ebpfMonPutJoin          *join;     /* these four are the caller's */
    ebpfMonServers          *servers;
    ebpfMonPacketPuts       *puts;
    ebpfMonAudits           *audits;
    ebpfMonPacketEventCalls  calls;
    int                      canJoin;
    ebpfMonLastValues       *lastValues;
    ebpfMonTranslated       *translated;
    ebpfMonRealCircuits     *realCircuits;
    uint64_t                 lost;     /* events of IOCs, when they were counted last */
    uint64_t                 lostAt;   /* monotonic ns: when there were more than before */
    uint64_t                 packetsLost, packetsLostAt; /* the same of packets */
    uint64_t                 askedAt;  /* monotonic ns: when the kernel was asked for a socket */
};

ebpfMonPacketEvents *ebpfMonPacketEventsNew(ebpfMonPutJoin *join, ebpfMonServers *servers, ebpfMonPacketPuts *puts,
                                            ebpfMonAudits *audits, const ebpfMonPacketEventCalls *calls, int canJoin)
{
    ebpfMonPacketEvents *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->join = join;
    e->servers = servers;
    e->puts = puts;
    e->audits = audits;
    e->calls = *calls;
    e->canJoin = canJoin;
    e->lastValues = ebpfMonLastValuesNew();
    e->translated = ebpfMonTranslatedNew();
    e->realCircuits = ebpfMonRealCircuitsNew(calls->findReceived);
    if (e->lastValues && e->translated && e->realCircuits)
        return e;
    ebpfMonPacketEventsFree(e);
    return NULL;
}

void ebpfMonPacketEventsFree(ebpfMonPacketEvents *e)
{
    if (!e)
        return;
    ebpfMonTranslatedFree(e->translated);
    ebpfMonLastValuesFree(e->lastValues);
    ebpfMonRealCircuitsFree(e->realCircuits);
    free(e);
}

/* Nonzero: the server is not an IOC of Base, or its puts are not seen in the IOC. */
static int isWanted(ebpfMonPacketEvents *e, const ebpfMonServer *server)
{
    ebpfMonFilter f;

    e->calls.getFilter(e->calls.arg, &f);
    return !server->off && f.level > ebpfMonLevelOff && ebpfMonPatternMatchesIoc(f.ioc, server->name);
}

/* When the packet came, by the monotonic clock of the IOC's events, because the wall clock may be set. */
static uint64_t findArrival(uint64_t time)
{
    uint64_t now = ebpfMonClockMonotonic(), wall = now + ebpfMonClockUnixOffset(), age = wall > time ? wall - time : 0;

    return now - (age < DELAY_MAX ? age : 0);
}

static const ebpfMonServer *findServer(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    return ebpfMonServersFind(e->servers, &ev->peer, ebpfMonClockMonotonic());
}

/* Nonzero: the client is in another namespace whose packets are read, too. A server that is in neither is on another
 * host: there the packet was seen first. */
static int isForwarded(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, const ebpfMonServer *server)
{
    uint32_t netns = server->netns == ev->peer.netns ? 0 : e->calls.findClientNetns(e->calls.arg, ev);

    return netns && netns != ev->peer.netns && ebpfMonServersIsCovered(e->servers, netns);
}

/* Nonzero: the packets are of the outer side of a translated connection, so they are copies. */
static int isOuter(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev, const ebpfMonServer *server)
{
    uint64_t now = findArrival(ev->time); /* however long it takes to find the servers */
    const struct ebpfMonPeer *outer;

    if (server->isElsewhere || ebpfMonTranslatedIsOuter(e->translated, &ev->peer))
        return 1;
    if (!server->pid) {
        ebpfMonTranslatedNote(e->translated, ev, now);
        return 0;
    }
    outer = ebpfMonTranslatedFindOuter(e->translated, &ev->peer);
    if (!outer && (outer = ebpfMonTranslatedFindSame(e->translated, ev, now)) && !ebpfMonProcNetnsIsOurs(server->pid))
        return 0;
    if (!outer)
        return 0;
    ebpfMonTranslatedAdd(e->translated, outer, &ev->peer);
    /* it forgets circuits that had no put for a minute */
    ebpfMonPutJoinSetOuter(e->join, &ev->peer, outer, ebpfMonClockMonotonic());
    return 0;
}

int ebpfMonPacketEventsIsOuter(ebpfMonPacketEvents *e, const struct ebpfMonPeer *peer)
{
    return ebpfMonTranslatedIsOuter(e->translated, peer);
}

static void addPut(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    const ebpfMonServer *server = findServer(e, ev);
    uint64_t at = findArrival(ev->time);
    ebpfMonOldValue old = { .known = 0 }; /* the inside knows it for sure */
    int isCopy;

    if (isOuter(e, ev, server))
        return;
    isCopy = isForwarded(e, ev, server);
    if (server->isSeen && !ev->isCall) {
        if (e->canJoin)
            ebpfMonPutJoinAddPacket(e->join, ev, server->iocId, server->pid, &old, at);
        return;
    }
    if (isWanted(e, server) && (server->pid || !isCopy)) {
        ebpfMonRealCircuitsNote(e->realCircuits, ev->circuit, &ev->peer, &ev->first, server->pid);
        if (!ev->isCall && (ev->protocol != ebpfMonWireCa || !ebpfMonCaTypeIsAcknowledge(ev->dbrType)))
            ebpfMonLastValuesExchange(e->lastValues, ev, &old);
        ebpfMonPutJoinAddPacket(e->join, ev, ev->isCall ? 0 : server->iocId, server->pid, &old, at);
    }
    if (!isCopy)
        e->calls.putElsewhere(e->calls.arg, ev, at);
}

void ebpfMonPacketEventsAdd(ebpfMonPacketEvents *e, const ebpfMonWireEvent *ev)
{
    ebpfMonOldValue old;

    switch (ev->kind) {
    case ebpfMonWireOpened:
        isOuter(e, ev, findServer(e, ev));
        break;
    case ebpfMonWirePut:
        addPut(e, ev);
        break;
    case ebpfMonWireReply:
        if (ebpfMonPutJoinAddReply(e->join, ev, &old, findArrival(ev->time)) && !ev->ok)
            ebpfMonLastValuesRestore(e->lastValues, ev, &old);
        break;
    case ebpfMonWireValue:
        if (!findServer(e, ev)->isSeen)
            ebpfMonLastValuesSet(e->lastValues, ev);
        break;
    case ebpfMonWireChannel:
        if (ev->name[0])
            ebpfMonPutJoinNameChannel(e->join, &ev->peer, ev->sid, ev->name);
        break;
    case ebpfMonWireClosed:
        if (ev->fromServer) /* else one client left */
            ebpfMonLastValuesForgetServer(e->lastValues, &ev->peer);
        ebpfMonPutJoinCloseCircuit(e->join, &ev->peer, findArrival(ev->time));
        ebpfMonTranslatedForget(e->translated, &ev->peer);
        break;
    case ebpfMonWireCrowded: /* ebpfMonWireClosed comes next, but the connection goes on: answers may come */
        e->packetsLostAt = findArrival(ev->time);
        break;
    case ebpfMonWireGivenUp: /* what this client writes from now on is not known */
        ebpfMonLastValuesForgetServer(e->lastValues, &ev->peer);
        ebpfMonPutJoinCloseCircuit(e->join, &ev->peer, findArrival(ev->time));
        break;
    default:
        break;
    }
}

void ebpfMonPacketEventsNoteLost(ebpfMonPacketEvents *e, uint64_t now)
{
    uint64_t lost = e->calls.countLost(e->calls.arg);

    if (lost != e->lost)
        e->lostAt = now;
    e->lost = lost;
}

void ebpfMonPacketEventsNotePacketsLost(ebpfMonPacketEvents *e, uint64_t count, uint64_t now)
{
    if (count != e->packetsLost)
        e->packetsLostAt = now;
    e->packetsLost = count;
}

/* Whether the IOC may have made the put and we did not see it; "isSlow": or may still make it later. */
static int mayBeMissed(ebpfMonPacketEvents *e, const ebpfMonPacketPut *p, int isSlow)
{
    return !p->inside || p->isUnread || e->lostAt >= p->at || (isSlow && ebpfMonServersIsRunning(e->servers, p->iocId));
}

/* Nonzero: the answer to the put, for example a refusal, may be in a packet that is lost. */
static int mayBeAnswered(const ebpfMonPacketEvents *e, const ebpfMonPacketPut *p)
{
    return p->replyAsked && !p->replied && e->packetsLostAt >= p->at;
}

/* Not PVA: there, the result of such a put is ebpfMonPutUnwritten. */
static void auditPut(ebpfMonPacketEvents *e, const ebpfMonPacketPut *p)
{
    if (p->replied && p->ok && !p->pva && !mayBeMissed(e, p, 0))
        ebpfMonAuditsAdd(e->audits, ebpfMonAuditPutNotInside, 1, p->channel);
}

/* Asks if the server of one circuit has read what came. Nonzero: it has, so puts of this circuit may be published. */
static int askServer(ebpfMonPacketEvents *e, uint64_t now)
{
    struct ebpfMonPeer peer;
    uint32_t iocId;
    int isRead;

    if (now - e->askedAt < ASK_NS || !ebpfMonPutJoinGetAsked(e->join, now, &peer, &iocId))
        return 0;
    e->askedAt = now;
    isRead = !ebpfMonServersHasUnread(e->servers, iocId, &peer);
    ebpfMonPutJoinSetRead(e->join, &peer, isRead, now);
    return isRead;
}

static void publishUnmatched(ebpfMonPacketEvents *e, uint64_t now)
{
    ebpfMonPacketPut *list = ebpfMonPutJoinTakeUnmatched(e->join, now), *next;

    if (list) /* once for all of them: asking the kernel for each would cost more than the put */
        ebpfMonPacketEventsNoteLost(e, now);
    for (; list; list = next) {
        next = list->next;
        if ((list->inside && !e->calls.isServed(e->calls.arg, list)) ||
            !ebpfMonRealCircuitsHas(e->realCircuits, list)) {
            e->calls.countForged(e->calls.arg);
            free(list);
            continue;
        }
        if (now != UINT64_MAX) /* at the end nobody waits for the IOC */
            auditPut(e, list);
        ebpfMonPacketPutsFinish(e->puts, list, ebpfMonServersFind(e->servers, &list->peer, now)->name,
                                now == UINT64_MAX || mayBeAnswered(e, list) ||
                                    mayBeMissed(e, list, !list->passed && !list->replied));
        free(list);
    }
}

void ebpfMonPacketEventsPublish(ebpfMonPacketEvents *e, uint64_t now)
{
    publishUnmatched(e, now);
    if (now != UINT64_MAX && askServer(e, now))
        publishUnmatched(e, now);
}

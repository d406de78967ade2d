/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "put/joinCircuits.h"
#include "put/joinCovered.h"
#include "put/joinMatch.h"
#include "put/putJoin.h"

#define PUTS_MAX  65536  /* in the queues of all circuits */
#define MANY      1024   /* more than that are not gone through with each packet, but … */
#define LOOK_NS   1000   /* … after so many ns for each of them: some ten times what it takes */

/* How long a put that was seen in packets waits at most. */
#define SENT_NS   50000000ull    /* for the error reply to a plain CA write: it comes by then, or not at all */
#define REPLY_NS  10000000000ull /* for a reply that was asked for, of a server that is no watched IOC */
/* Time limits for the same put in the IOC. They count from the last thing that the IOC did about it, in events that
 * were read. */
#define REFUSED_NS (2 * SENT_NS) /* once the IOC has refused it: some refusals are seen in the IOC, too */
#define MADE_NS   2500000000ull  /* … has replied, or has served later messages: the put may wait there 2 s for its
                                    result (pendingPuts.c) */
#define CLOSED_NS 10000000000ull /* … once the circuit is closed: a slow IOC still reads what came before */
#define STUCK_NS  3600000000000ull /* … if it does none of that: it hangs, is stopped by a debugger, or the put is a
                                    write-notify, which waits for its record: a motor moves for minutes (dbNotify.c) */

struct ebpfMonPutJoin {
    ebpfMonPutJoinWakes wakes;        /* set before other threads are there */
    epicsMutexId        lock;         /* guards all that follows */
    ebpfMonJoinCircuits circuits;
    uint64_t            packetsRead;  /* monotonic ns, as the next four */
    uint64_t            eventsRead;
    uint64_t            packetsAwaited; /* the event thread waits until packets up to then are read; 0: it does not */
    uint64_t            eventsAwaited;  /* … the packet thread, for events */
    uint64_t            due;            /* ebpfMonPutJoinGetDue */
    uint64_t            lookAt;         /* not before that are all puts gone through again */
    ebpfMonJoinCovered  covered;
};

ebpfMonPutJoin *ebpfMonPutJoinNew(void)
{
    ebpfMonPutJoin *join = calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    join->lock = epicsMutexMustCreate();
    join->due = UINT64_MAX;
    return join;
}

void ebpfMonPutJoinSetWakes(ebpfMonPutJoin *join, const ebpfMonPutJoinWakes *wakes)
{
    join->wakes = *wakes;
}

void ebpfMonPutJoinFree(ebpfMonPutJoin *join)
{
    if (!join)
        return;
    ebpfMonJoinCircuitsForgetAll(&join->circuits);
    epicsMutexDestroy(join->lock);
    free(join);
}

void ebpfMonPutJoinSetCovered(ebpfMonPutJoin *join, const uint32_t *netns, unsigned count, uint64_t now)
{
    epicsMutexMustLock(join->lock);
    ebpfMonJoinCoveredSet(&join->covered, netns, count, now);
    epicsMutexUnlock(join->lock);
}

/* One side has read up to "at". Nonzero: the other side waits for this. Under the lock. */
static int setRead(uint64_t *read, uint64_t *awaited, uint64_t at)
{
    int isAwaited = *awaited && at >= *awaited;

    *read = at;
    if (isAwaited)
        *awaited = 0;
    return isAwaited;
}

/* One side waits until the other side has read up to "until". Nonzero: it did not wait for this before. Under the
 * lock. */
static int await(uint64_t read, uint64_t *awaited, uint64_t until)
{
    int isNew = read < until && *awaited != until;

    if (isNew)
        *awaited = until;
    return isNew;
}

static void wakeIf(int wanted, const ebpfMonPutJoin *join, void *thread)
{
    if (wanted && join->wakes.wake)
        join->wakes.wake(thread);
}

void ebpfMonPutJoinSetPacketsRead(ebpfMonPutJoin *join, uint64_t at)
{
    int isAwaited;

    epicsMutexMustLock(join->lock);
    isAwaited = setRead(&join->packetsRead, &join->packetsAwaited, at);
    epicsMutexUnlock(join->lock);
    wakeIf(isAwaited, join, join->wakes.events);
}

int ebpfMonPutJoinAwaitPackets(ebpfMonPutJoin *join, uint64_t until)
{
    int isRead, isNew;

    epicsMutexMustLock(join->lock);
    isRead = join->packetsRead >= until;
    isNew = await(join->packetsRead, &join->packetsAwaited, until);
    epicsMutexUnlock(join->lock);
    wakeIf(isNew, join, join->wakes.packets);
    return isRead;
}

void ebpfMonPutJoinSetEventsRead(ebpfMonPutJoin *join, uint64_t at)
{
    int isAwaited;

    epicsMutexMustLock(join->lock);
    isAwaited = setRead(&join->eventsRead, &join->eventsAwaited, at);
    epicsMutexUnlock(join->lock);
    wakeIf(isAwaited, join, join->wakes.packets);
}

/* Joins the two, and takes the put of the packets out of its queue. */
static void joinMatch(ebpfMonPutJoin *join, const ebpfMonJoinMatch *match, ebpfMonMessageKey *key, ebpfMonPut *put)
{
    ebpfMonPacketPut *p = match->put;

    if (match->isGroup) { /* it stays for the other members */
        ebpfMonJoinMatchMerge(p, put);
        p->made = 1;
        return;
    }
    key->moved = memcmp(&key->peer, &match->circuit->peer, sizeof(key->peer)) != 0;
    key->peer = match->circuit->peer;
    if (key->moved && p->pva)
        put->user[0] = put->host[0] = 0; /* those of another client */
    ebpfMonJoinMatchMerge(p, put);
    ebpfMonJoinCircuitConfirm(match->circuit, p->circuit, p->stretch, p->seq);
    if (key->seqKind != EBPFMON_SEQ_NONE && !p->closed)
        ebpfMonJoinCircuitSetServed(match->circuit, p->seq);
    key->seq = p->seq;
    key->seqKind = EBPFMON_SEQ_MESSAGE;
    ebpfMonJoinCircuitsRemovePut(&join->circuits, p);
    free(p);
}

/* Nonzero: no event of the IOC told the result of this put, and its client will get a reply. */
static int awaitsReply(const ebpfMonPacketPut *p, const ebpfMonPut *put)
{
    return put->result == ebpfMonPutUnknown && p->replyAsked && !p->replied && !p->closed;
}

ebpfMonPutJoinResult ebpfMonPutJoinMatchIoc(ebpfMonPutJoin *join, ebpfMonMessageKey *key, ebpfMonPut *put, int last)
{
    ebpfMonPutJoinResult result = ebpfMonPutJoinWait;
    ebpfMonJoinMatch match;

    if (!put->peer[0] || put->through == ebpfMonByLink || !key->peer.addr)
        return ebpfMonPutJoinAlone; /* a client's put may have caused it, but it has no message */
    epicsMutexMustLock(join->lock);
    if (!ebpfMonJoinCoveredHas(&join->covered, &key->peer)) {
        epicsMutexUnlock(join->lock);
        return ebpfMonPutJoinAlone;
    }
    ebpfMonJoinMatchFind(&join->circuits, key, put, last, &match);
    if (match.put && !last && awaitsReply(match.put, put)) {
        result = ebpfMonPutJoinReply;
    } else if (match.put) {
        joinMatch(join, &match, key, put);
        result = ebpfMonPutJoinFound;
    } else if (match.isPast) {
        ebpfMonJoinCircuitSetServed(match.circuit, key->seq);
        result = ebpfMonPutJoinAlone;
    }
    if (last && result == ebpfMonPutJoinWait && key->seqKind != EBPFMON_SEQ_NONE)
        ebpfMonJoinPublishedAdd(&join->circuits, key, put);
    epicsMutexUnlock(join->lock);
    return result;
}

/* "p" has room for "have" bytes of data. */
static void fillPacketPut(ebpfMonPacketPut *p, const ebpfMonWireEvent *ev, uint32_t iocId, const ebpfMonOldValue *old,
                          uint64_t at, const void *data, size_t have)
{
    memset(p, 0, sizeof(*p));
    p->at = p->since = at;
    p->time = ev->time;
    p->id = ev->id;
    p->circuit = ev->circuit;
    p->stretch = ev->stretch;
    p->seq = ev->seq;
    p->end = ev->end;
    p->sid = ev->sid;
    p->hash = ev->hash;
    p->count = ev->count;
    p->have = (uint32_t)have;
    p->dbrType = (int16_t)ev->dbrType;
    p->baseType = (int16_t)ev->baseType;
    p->elementSize = (uint8_t)ev->elementSize;
    p->pva = ev->protocol == ebpfMonWirePva;
    p->replyAsked = !!ev->replyAsked;
    p->isNumber = !!ev->isNumber;
    p->number = ev->number;
    p->peer = ev->peer;
    p->iocId = iocId;
    p->old = *old;
    ebpfMonTextCopy(p->user, sizeof(p->user), ev->user);
    ebpfMonTextCopy(p->host, sizeof(p->host), ev->host);
    ebpfMonTextCopy(p->channel, sizeof(p->channel), ev->name);
    memcpy(p->data, data, have);
}

void ebpfMonPutJoinAddPacket(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, uint32_t iocId,
                             const ebpfMonOldValue *old, uint64_t at)
{
    const void *data = ev->protocol == ebpfMonWirePva ? (const void *)ev->text : ev->data;
    size_t have = ev->protocol == ebpfMonWirePva ? strlen(ev->text) + 1 : ev->have;
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;

    if (ev->protocol == ebpfMonWireCa && have > EBPFMON_PACKET_PUT_DATA)
        have = EBPFMON_PACKET_PUT_DATA;
    p = malloc(sizeof(*p) + have);
    epicsMutexMustLock(join->lock);
    c = p && join->circuits.waiting < PUTS_MAX ? ebpfMonJoinCircuitsGet(&join->circuits, &ev->peer, at) : NULL;
    if (!c) {
        join->circuits.dropped++;
    } else if (!ebpfMonJoinPublishedTake(&join->circuits, c, ev, at)) {
        fillPacketPut(p, ev, iocId, old, at, data, have);
        ebpfMonJoinCircuitsAddPut(&join->circuits, c, p);
        p = NULL;
    }
    epicsMutexUnlock(join->lock);
    free(p);
}

int ebpfMonPutJoinAddReply(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, uint32_t iocId, ebpfMonOldValue *old, uint64_t at)
{
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;
    int found;

    epicsMutexMustLock(join->lock);
    c = ev->id ? ebpfMonJoinCircuitsFind(&join->circuits, &ev->peer) : NULL;
    p = c ? ebpfMonJoinCircuitsFindId(&join->circuits, c, ev->id) : NULL;
    if (p) {
        if (!p->iocId) /* probes were attached meanwhile: it waits until their events have been read */
            p->iocId = iocId;
        p->replied = 1;
        p->since = at;
        p->ok = !!ev->ok;
        p->denied = !!ev->denied;
        p->status = ev->status;
        ebpfMonTextCopy(p->message, sizeof(p->message), ev->message ? ev->message : "");
        *old = p->old;
    }
    found = p != NULL;
    epicsMutexUnlock(join->lock);
    return found;
}

/* Looks whether the IOC has served a later message of the circuit. */
static void notePassed(const ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, uint64_t now)
{
    if (p->passed || p->closed || !c->hasServed || !ebpfMonJoinIsBefore(p->seq, c->served))
        return;
    p->passed = 1;
    p->since = now;
}

void ebpfMonPutJoinCloseCircuit(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next) {
        notePassed(c, p, at);
        if (!p->closed)
            p->since = at;
        p->closed = 1;
    }
    if (c) { /* the next circuit from this port has other sequence numbers */
        c->passed = NULL;
        c->hasServed = c->hasForgotten = 0;
        if (!c->first && !c->publishedCount)
            ebpfMonJoinCircuitsForget(&join->circuits, c);
    }
    epicsMutexUnlock(join->lock);
}

void ebpfMonPutJoinNameChannel(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint32_t sid, const char *name)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    if (c)
        ebpfMonJoinCircuitNameChannel(c, sid, name);
    epicsMutexUnlock(join->lock);
}

/* When it will not be seen in an IOC any more. *byEvents: up to where we know what the IOC did counts, and not the clock:
 * it, or we, may have stood still. */
static uint64_t findEnd(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p, int *byEvents)
{
    *byEvents = p->iocId || c->hasServed;
    if (!*byEvents)
        return p->replied || p->closed ? 0 : p->at + (p->replyAsked ? REPLY_NS : SENT_NS);
    if (p->replied && !p->ok)
        return p->since + REFUSED_NS;
    if (p->replied || (p->passed && (!p->replyAsked || p->pva)))
        return p->since + MADE_NS;
    return p->since + (p->closed ? CLOSED_NS : STUCK_NS);
}

/* Nonzero: that time has come. Else it is noted when to look again, and whether events must be read first. */
static int isUnmatched(ebpfMonPutJoin *join, const ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, uint64_t now,
                       uint64_t *events)
{
    uint64_t end;
    int byEvents;

    notePassed(c, p, now);
    end = findEnd(c, p, &byEvents);
    if ((byEvents && now != UINT64_MAX ? join->eventsRead : now) >= end)
        return 1;
    if (end <= now && end < *events)
        *events = end;
    else if (end > now && end < join->due)
        join->due = end;
    return 0;
}

/* Bytes behind a gap may look like a message. A put seen in the IOC shows whether it is one. */
static int isCertain(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p)
{
    return !p->iocId || !p->stretch || p->replied ||
           (c->confirmedCircuit == p->circuit && c->confirmedStretch == p->stretch &&
            !ebpfMonJoinIsBefore(p->seq, c->confirmedFrom));
}

ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(ebpfMonPutJoin *join, uint64_t now)
{
    ebpfMonPacketPut *list = NULL, **end = &list;
    uint64_t events = UINT64_MAX;
    int isNew;

    epicsMutexMustLock(join->lock);
    if (now != UINT64_MAX && now < join->lookAt) {
        epicsMutexUnlock(join->lock);
        return NULL;
    }
    join->lookAt = join->circuits.waiting > MANY ? now + join->circuits.waiting * LOOK_NS : 0;
    join->due = UINT64_MAX;
    for (ebpfMonJoinCircuit *c = join->circuits.waiting ? join->circuits.newest : NULL; c; c = c->older) {
        ebpfMonPacketPut *p = c->first, *next;

        for (; p; p = next) {
            next = p->next;
            if (!isUnmatched(join, c, p, now, &events)) {
                /* A plain write waits a short time only, so those behind it wait too and all stay in order. A
                 * write-notify may be answered in an hour. */
                if (!p->iocId && !c->hasServed && !p->replyAsked)
                    break;
                continue;
            }
            ebpfMonJoinCircuitsRemovePut(&join->circuits, p);
            p->next = NULL;
            if (p->made || !isCertain(c, p)) {
                free(p);
                continue;
            }
            *end = p;
            end = &p->next;
        }
    }
    isNew = events != UINT64_MAX && await(join->eventsRead, &join->eventsAwaited, events);
    epicsMutexUnlock(join->lock);
    wakeIf(isNew, join, join->wakes.events);
    return list;
}

uint64_t ebpfMonPutJoinGetDue(ebpfMonPutJoin *join)
{
    uint64_t due;

    epicsMutexMustLock(join->lock);
    due = join->due > join->lookAt ? join->due : join->lookAt;
    epicsMutexUnlock(join->lock);
    return due;
}

uint64_t ebpfMonPutJoinCountDropped(ebpfMonPutJoin *join)
{
    uint64_t n;

    epicsMutexMustLock(join->lock);
    n = join->circuits.dropped;
    epicsMutexUnlock(join->lock);
    return n;
}

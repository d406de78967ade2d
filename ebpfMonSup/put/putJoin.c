/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "put/joinCircuits.h"
#include "put/joinCovered.h"
#include "put/joinMatch.h"
#include "put/joinUnmatched.h"
#include "put/putJoin.h"

#define LATELY    (16u << 20) /* bytes before the last message that the IOC served */
#define PUTS_MAX  65536  /* in the queues of all circuits */
#define MANY      1024   /* if more puts wait, not all of them are looked at with each packet, but … */
#define LOOK_NS   1000   /* … after a pause of so many ns for each: ten times as long as the look takes */

struct ebpfMonPutJoin {
    ebpfMonTargets     *targets;      /* the caller's; it is locked under our lock, never the reverse */
    ebpfMonPutJoinWakes wakes;        /* set before other threads are there */
    epicsMutexId        lock;         /* guards all that follows */
    ebpfMonJoinCircuits circuits;
    uint64_t            packetsRead;  /* monotonic ns, as the next four */
    uint64_t            eventsRead;
    uint64_t            packetsAwaited; /* the event thread waits until packets up to then are read; 0: it does not */
    uint64_t            eventsAwaited;  /* … the packet thread, for events */
    uint64_t            due;            /* ebpfMonPutJoinGetDue */
    uint64_t            lookAt;         /* not before this time, all puts are looked at again */
    ebpfMonJoinCovered  covered;
};

ebpfMonPutJoin *ebpfMonPutJoinNew(ebpfMonTargets *targets)
{
    ebpfMonPutJoin *join = calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    join->targets = targets;
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
static int awaitRead(uint64_t read, uint64_t *awaited, uint64_t until)
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
    isNew = awaitRead(join->packetsRead, &join->packetsAwaited, until);
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

    put->isUnsure = match->isUnsure;
    key->outer = p->outer;
    if (match->isGroup) { /* it stays for the other members */
        ebpfMonJoinMatchMerge(p, 1, put);
        p->made = 1;
        p->told |= ebpfMonPutHasFailed(put);
        return;
    }
    key->moved = memcmp(&key->peer, &match->circuit->peer, sizeof(key->peer)) != 0;
    key->peer = match->circuit->peer;
    key->first = p->first;
    key->sentAt = p->pva ? 0 : p->at;
    if (key->moved && p->pva)
        put->user[0] = put->host[0] = 0; /* those of another client */
    ebpfMonJoinMatchMerge(p, 0, put);
    ebpfMonJoinCircuitConfirm(match->circuit, p->circuit, p->stretch, p->seq);
    if (key->seqKind != EBPFMON_SEQ_NONE && !p->closed)
        ebpfMonJoinCircuitSetServed(match->circuit, p->seq);
    key->seq = p->seq;
    key->seqKind = match->isUnsure ? EBPFMON_SEQ_SHARED : EBPFMON_SEQ_MESSAGE;
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
    int isWhole;

    if (!put->peer[0] || ebpfMonPutIsInner(put) || !key->peer.addr)
        return ebpfMonPutJoinAlone;
    epicsMutexMustLock(join->lock);
    if (!ebpfMonJoinCoveredHas(&join->covered, &key->peer)) {
        epicsMutexUnlock(join->lock);
        return ebpfMonPutJoinAlone;
    }
    /* whose put it is tell the packets of all clients of this thread */
    isWhole = key->seqKind != EBPFMON_SEQ_SHARED || join->packetsRead >= key->at;
    if (!isWhole && !last) {
        epicsMutexUnlock(join->lock);
        return ebpfMonPutJoinWait;
    }
    ebpfMonJoinMatchFind(&join->circuits, key, put, last, &match);
    match.isUnsure |= !isWhole;
    if (match.circuit && key->at > match.circuit->madeAt)
        match.circuit->madeAt = key->at;
    if (match.put && !match.put->isPublished && !last && awaitsReply(match.put, put)) {
        result = ebpfMonPutJoinReply;
    } else if (match.put) {
        result = match.put->isPublished ? ebpfMonPutJoinPublished : ebpfMonPutJoinFound;
        joinMatch(join, &match, key, put);
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
static void fillPacketPut(ebpfMonPacketPut *p, const ebpfMonWireEvent *ev, const ebpfMonOldValue *old, uint64_t at,
                          const void *data, size_t have)
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
    p->isCall = !!ev->isCall;
    p->number = ev->number;
    p->peer = ev->peer;
    p->first = ev->first;
    p->old = *old;
    ebpfMonTextCopy(p->user, sizeof(p->user), ev->user);
    ebpfMonTextCopy(p->host, sizeof(p->host), ev->host);
    ebpfMonTextCopy(p->channel, sizeof(p->channel), ev->name);
    memcpy(p->data, data, have);
}

/* Nonzero: the IOC had served this message when this packet came, so it is a copy. A circuit that was followed from its
 * begin gives each byte once; one that was met in the middle does not know what came before. */
static int isCopy(const ebpfMonJoinCircuit *c, const ebpfMonWireEvent *ev, uint64_t at)
{
    return !(ev->first.seq[0] || ev->first.seq[1]) && c->hasServed && c->served - ev->seq - 1 < LATELY &&
           c->madeAt && at > c->madeAt + EBPFMON_JOIN_STALE_NS;
}

void ebpfMonPutJoinAddPacket(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, uint32_t iocId, pid_t pid,
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
    } else if (ev->isCall || (!isCopy(c, ev, at) && !ebpfMonJoinPublishedTake(&join->circuits, c, ev, at))) {
        fillPacketPut(p, ev, old, at, data, have);
        p->iocId = iocId;
        p->pid = pid;
        p->outer = c->outer;
        ebpfMonJoinUnmatchedJudge(join->targets, p);
        ebpfMonJoinCircuitsAddPut(&join->circuits, c, p);
        p = NULL;
    }
    epicsMutexUnlock(join->lock);
    free(p);
}

/* They are copies of those that the inner circuit shows. */
static void dropPuts(ebpfMonPutJoin *join, ebpfMonJoinCircuit *c)
{
    while (c && c->first) {
        ebpfMonPacketPut *p = c->first;

        ebpfMonJoinCircuitsRemovePut(&join->circuits, p);
        free(p);
    }
}

void ebpfMonPutJoinSetOuter(ebpfMonPutJoin *join, const struct ebpfMonPeer *inner, const struct ebpfMonPeer *outer,
                            uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    dropPuts(join, ebpfMonJoinCircuitsFind(&join->circuits, outer));
    c = ebpfMonJoinCircuitsGet(&join->circuits, inner, at);
    if (c)
        c->outer = *outer;
    epicsMutexUnlock(join->lock);
}

int ebpfMonPutJoinAddReply(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, ebpfMonOldValue *old, uint64_t at)
{
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;
    int found;

    epicsMutexMustLock(join->lock);
    c = ev->id ? ebpfMonJoinCircuitsFind(&join->circuits, &ev->peer) : NULL;
    p = c ? ebpfMonJoinCircuitsFindId(&join->circuits, c, ev->id) : NULL;
    if (p) {
        p->replied = 1;
        p->since = at;
        p->ok = !!ev->ok;
        p->denied = !!ev->denied;
        p->status = ev->status;
        ebpfMonTextCopy(p->message, sizeof(p->message), ev->message ? ev->message : "");
        *old = p->old;
    }
    found = p && !p->isCall;
    epicsMutexUnlock(join->lock);
    return found;
}

void ebpfMonPutJoinCloseCircuit(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next) {
        ebpfMonJoinUnmatchedNotePassed(c, p, at);
        if (!p->closed)
            p->since = at;
        p->closed = 1;
    }
    if (c) { /* the next circuit from this port has other sequence numbers */
        c->outer.port = 0;
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

ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(ebpfMonPutJoin *join, uint64_t now)
{
    ebpfMonJoinLook look = { .targets = join->targets, .now = now };
    unsigned puts;
    ebpfMonPacketPut *list;
    int isNew;

    epicsMutexMustLock(join->lock);
    if (now != UINT64_MAX && now < join->lookAt) {
        epicsMutexUnlock(join->lock);
        return NULL;
    }
    puts = join->circuits.waiting + join->circuits.published;
    join->lookAt = puts > MANY ? now + puts * LOOK_NS : 0;
    look.eventsRead = join->eventsRead;
    look.packetsRead = join->packetsRead;
    list = ebpfMonJoinUnmatchedTake(&join->circuits, &look);
    join->due = look.due;
    isNew = look.events != UINT64_MAX && awaitRead(join->eventsRead, &join->eventsAwaited, look.events);
    epicsMutexUnlock(join->lock);
    wakeIf(isNew, join, join->wakes.events);
    return list;
}

int ebpfMonPutJoinGetAsked(ebpfMonPutJoin *join, uint64_t now, struct ebpfMonPeer *peer, uint32_t *iocId)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinUnmatchedGetAsked(&join->circuits, now);
    if (c) {
        *peer = c->peer;
        *iocId = c->askIoc;
        c->askedAt = now;
    }
    epicsMutexUnlock(join->lock);
    return c != NULL;
}

void ebpfMonPutJoinSetRead(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, int isRead, uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    if (c && isRead) {
        c->readAt = at;
        c->askIoc = 0;
        join->lookAt = 0; /* its puts need not wait for the next look */
    }
    epicsMutexUnlock(join->lock);
}

uint64_t ebpfMonPutJoinGetDue(ebpfMonPutJoin *join)
{
    uint64_t due;

    epicsMutexMustLock(join->lock);
    due = join->due > join->lookAt ? join->due : join->lookAt;
    epicsMutexUnlock(join->lock);
    return due;
}

int ebpfMonPutJoinHasWaiting(ebpfMonPutJoin *join)
{
    int has;

    epicsMutexMustLock(join->lock);
    has = join->circuits.waiting > 0;
    epicsMutexUnlock(join->lock);
    return has;
}

uint64_t ebpfMonPutJoinCountDropped(ebpfMonPutJoin *join)
{
    uint64_t n;

    epicsMutexMustLock(join->lock);
    n = join->circuits.dropped;
    epicsMutexUnlock(join->lock);
    return n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "put/joinCircuits.h"
#include "put/joinMatch.h"
#include "put/putJoin.h"

#define PUTS_MAX  65536  /* in the queues of all circuits */
#define COVER_MAX 64

/* How long a put that was seen in packets waits at most. */
#define SENT_NS   50000000ull    /* for the error reply to a plain CA write: it comes by then, or not at all */
#define REPLY_NS  10000000000ull /* for a reply that was asked for, of a server that is no watched IOC */
/* For the same put in the IOC. These count from what the IOC did last about it, in events that we have read. */
#define REFUSED_NS (2 * SENT_NS) /* once the IOC has refused it: some refusals are seen in the IOC, too */
#define MADE_NS   2500000000ull  /* … has replied, or has served later messages: the put may wait there 2 s for its
                                    result (pendingPuts.c) */
#define CLOSED_NS 10000000000ull /* … once the circuit is closed: a slow IOC still reads what came before */
#define STUCK_NS  3600000000000ull /* … if it does none of that: it hangs, is stopped by a debugger, or the put is a
                                    write-notify, which waits for its record: a motor moves for minutes (dbNotify.c) */

struct ebpfMonPutJoin {
    epicsMutexId        lock;         /* guards all that follows */
    ebpfMonJoinCircuits circuits;
    uint64_t            packetsRead;  /* monotonic ns, as the next one */
    uint64_t            eventsRead;
    uint32_t            cover[COVER_MAX];
    unsigned            covers;
};

ebpfMonPutJoin *ebpfMonPutJoinNew(void)
{
    ebpfMonPutJoin *join = calloc(1, sizeof(*join));

    if (join)
        join->lock = epicsMutexMustCreate();
    return join;
}

void ebpfMonPutJoinFree(ebpfMonPutJoin *join)
{
    if (!join)
        return;
    ebpfMonJoinCircuitsForgetAll(&join->circuits);
    epicsMutexDestroy(join->lock);
    free(join);
}

void ebpfMonPutJoinSetCovered(ebpfMonPutJoin *join, const uint32_t *netns, unsigned count)
{
    epicsMutexMustLock(join->lock);
    join->covers = count < COVER_MAX ? count : COVER_MAX;
    memcpy(join->cover, netns, join->covers * sizeof(*netns));
    epicsMutexUnlock(join->lock);
}

void ebpfMonPutJoinSetPacketsRead(ebpfMonPutJoin *join, uint64_t at)
{
    epicsMutexMustLock(join->lock);
    join->packetsRead = at;
    epicsMutexUnlock(join->lock);
}

uint64_t ebpfMonPutJoinGetPacketsRead(ebpfMonPutJoin *join)
{
    uint64_t at;

    epicsMutexMustLock(join->lock);
    at = join->packetsRead;
    epicsMutexUnlock(join->lock);
    return at;
}

void ebpfMonPutJoinSetEventsRead(ebpfMonPutJoin *join, uint64_t at)
{
    epicsMutexMustLock(join->lock);
    join->eventsRead = at;
    epicsMutexUnlock(join->lock);
}

static int isCovered(const ebpfMonPutJoin *join, const struct ebpfMonPeer *peer)
{
    for (unsigned i = 0; i < join->covers; i++)
        if (!peer->netns || join->cover[i] == peer->netns)
            return 1;
    return 0;
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
    ebpfMonJoinCircuitConfirm(match->circuit, p->circuit, p->stretch);
    if (key->seqKind != EBPFMON_SEQ_NONE && !p->closed)
        ebpfMonJoinCircuitSetServed(match->circuit, p->seq);
    key->seq = p->seq;
    key->seqKind = EBPFMON_SEQ_MESSAGE;
    ebpfMonJoinCircuitsRemovePut(&join->circuits, match->circuit, match->before, p);
    free(p);
}

ebpfMonPutJoinResult ebpfMonPutJoinMatchIoc(ebpfMonPutJoin *join, ebpfMonMessageKey *key, ebpfMonPut *put, int last)
{
    ebpfMonPutJoinResult result = key->seqKind == EBPFMON_SEQ_NONE ? ebpfMonPutJoinAlone : ebpfMonPutJoinWait;
    ebpfMonJoinMatch match;

    if (!put->peer[0] || put->through == ebpfMonByLink || !key->peer.addr)
        return ebpfMonPutJoinAlone; /* a client's put may have caused it, but it has no message */
    epicsMutexMustLock(join->lock);
    if (!isCovered(join, &key->peer)) {
        epicsMutexUnlock(join->lock);
        return ebpfMonPutJoinAlone;
    }
    ebpfMonJoinMatchFind(&join->circuits, key, put, last, &match);
    if (match.put) {
        joinMatch(join, &match, key, put);
        result = ebpfMonPutJoinFound;
    } else if (match.isPast) {
        ebpfMonJoinCircuitSetServed(match.circuit, key->seq);
        result = ebpfMonPutJoinAlone;
    }
    if (last && result == ebpfMonPutJoinWait)
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

int ebpfMonPutJoinAddReply(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, ebpfMonOldValue *old, uint64_t at)
{
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;
    int found;

    epicsMutexMustLock(join->lock);
    c = ev->id ? ebpfMonJoinCircuitsFind(&join->circuits, &ev->peer) : NULL;
    for (p = c ? c->first : NULL; p && p->id != ev->id; p = p->next)
        ;
    if (p) {
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
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next)
        if (!p->channel[0] && p->sid == sid)
            ebpfMonTextCopy(p->channel, sizeof(p->channel), name);
    epicsMutexUnlock(join->lock);
}

static int isOlder(uint64_t since, uint64_t now, uint64_t age)
{
    return now > since && now - since >= age;
}

/* It will not be seen in an IOC any more. What counts for a watched IOC is up to where we know what it did: it, or we,
 * may have stood still. */
static int isUnmatched(const ebpfMonPutJoin *join, const ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, uint64_t now)
{
    uint64_t known = now == UINT64_MAX ? now : join->eventsRead;

    notePassed(c, p, now);
    if (!p->iocId && !c->hasServed)
        return p->replied || isOlder(p->at, now, p->replyAsked ? REPLY_NS : SENT_NS) || p->closed;
    if (p->replied && !p->ok)
        return isOlder(p->since, known, REFUSED_NS);
    if (p->replied || (p->passed && (!p->replyAsked || p->pva)))
        return isOlder(p->since, known, MADE_NS);
    return isOlder(p->since, known, p->closed ? CLOSED_NS : STUCK_NS);
}

/* Bytes behind a gap may look like a message. An IOC that we see knows better. */
static int isCertain(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p)
{
    return !p->iocId || !p->stretch || p->replied ||
           (c->confirmedCircuit == p->circuit && c->confirmedStretch == p->stretch);
}

ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(ebpfMonPutJoin *join, uint64_t now)
{
    ebpfMonPacketPut *list = NULL, **end = &list;

    epicsMutexMustLock(join->lock);
    for (ebpfMonJoinCircuit *c = join->circuits.waiting ? join->circuits.newest : NULL; c; c = c->older) {
        ebpfMonPacketPut *p = c->first, *before = NULL, *next;

        for (; p; p = next) {
            next = p->next;
            if (!isUnmatched(join, c, p, now)) {
                /* A plain write waits a short time only, so those behind it wait too and all stay in order. A
                 * write-notify may be answered in an hour. */
                if (!p->iocId && !c->hasServed && !p->replyAsked)
                    break;
                before = p;
                continue;
            }
            ebpfMonJoinCircuitsRemovePut(&join->circuits, c, before, p);
            p->next = NULL;
            if (p->made || !isCertain(c, p)) {
                free(p);
                continue;
            }
            *end = p;
            end = &p->next;
        }
    }
    epicsMutexUnlock(join->lock);
    return list;
}

uint64_t ebpfMonPutJoinCountDropped(ebpfMonPutJoin *join)
{
    uint64_t n;

    epicsMutexMustLock(join->lock);
    n = join->circuits.dropped;
    epicsMutexUnlock(join->lock);
    return n;
}

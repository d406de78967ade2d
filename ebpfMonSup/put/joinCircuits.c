/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "put/joinCircuits.h"

/* --- puts that were published without their packet --- */

#define PUBLISHED_MAX 4096 /* of one circuit */

/* Hash of the record's name, with which the name of a channel begins. */
static uint32_t hashRecordName(const char *channel)
{
    return ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, channel, ebpfMonPutGetRecordLength(channel));
}

static void removePublished(ebpfMonJoinCircuit *c, unsigned i)
{
    memmove(&c->published[i], &c->published[i + 1], (--c->publishedCount - i) * sizeof(*c->published));
}

static void growPublished(ebpfMonJoinCircuit *c)
{
    unsigned room = c->publishedRoom ? 4 * c->publishedRoom : 16;
    ebpfMonJoinPublished *more = realloc(c->published, room * sizeof(*more));

    if (more) {
        c->published = more;
        c->publishedRoom = room;
    }
}

void ebpfMonJoinPublishedAdd(ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put)
{
    ebpfMonJoinCircuit *c = key->peer.sport ? ebpfMonJoinCircuitsGet(circuits, &key->peer, key->at) : NULL;

    if (c && c->publishedCount == c->publishedRoom && c->publishedRoom < PUBLISHED_MAX)
        growPublished(c);
    if (!c || !c->publishedRoom)
        return;
    if (c->publishedCount == c->publishedRoom) {
        c->hasForgotten = 1;
        c->forgottenUpTo = c->published[0].seq;
        removePublished(c, 0);
    }
    c->published[c->publishedCount++] = (ebpfMonJoinPublished){
        .at = key->at,
        .seq = key->seq,
        .seqFrom = key->seqFrom,
        .name = hashRecordName(put->channel[0] ? put->channel : put->pv),
        .isShared = key->seqKind == EBPFMON_SEQ_SHARED,
        .isNumber = put->isNumber,
        .number = put->number,
    };
    if (key->seqKind == EBPFMON_SEQ_SHARED && key->at > circuits->lastShared)
        circuits->lastShared = key->at;
    if (key->seqKind == EBPFMON_SEQ_MESSAGE) /* else other messages may lie before this number */
        ebpfMonJoinCircuitSetServed(c, key->seq);
}

/* What the IOC did before this packet came is of another put, or of an earlier circuit from the same port. A packet
 * with a later number says nothing: somebody else may have written it. */
static void forgetOld(ebpfMonJoinCircuit *c, uint64_t at)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < c->publishedCount; i++)
        if (c->published[i].at + EBPFMON_JOIN_STALE_NS >= at)
            c->published[kept++] = c->published[i];
    c->publishedCount = kept;
}

/* Of a PVA put the IOC tells what was received with its end, see findReceived. */
static int isPublished(const ebpfMonJoinPublished *p, const ebpfMonWireEvent *ev, uint32_t name)
{
    if (ev->name[0] && p->name != name)
        return 0;
    if (ev->protocol != ebpfMonWirePva)
        return p->seq - ev->seq < EBPFMON_JOIN_HEADER; /* as findMessage */
    return (p->isShared || ebpfMonJoinIsReceived(p->seqFrom, p->seq, ev->end)) &&
           (!p->isNumber || !ev->isNumber || ebpfMonJoinIsSameNumber(p->number, ev->number));
}

/* Looks in the list of this circuit. A PVA group makes several puts in the IOC, with the names of its members. */
static int takeOwn(ebpfMonJoinCircuit *c, const ebpfMonWireEvent *ev, uint64_t at)
{
    int isPva = ev->protocol == ebpfMonWirePva, isGroup = 0;
    uint32_t name = hashRecordName(ev->name);

    if (c->hasForgotten && !ebpfMonJoinIsBefore(c->forgottenUpTo, ev->seq))
        return 1;
    c->hasForgotten = 0;
    forgetOld(c, at);
    for (unsigned i = 0; i < c->publishedCount; i++)
        if (isPublished(&c->published[i], ev, name)) {
            removePublished(c, i);
            return 1;
        }
    for (unsigned i = isPva ? c->publishedCount : 0; i-- > 0;) {
        if (c->published[i].seq != ev->end)
            continue;
        removePublished(c, i);
        isGroup = 1;
    }
    return isGroup;
}

/* It was published as a put of another circuit of the same thread. */
static int takeShared(ebpfMonJoinCircuits *circuits, const ebpfMonWireEvent *ev, uint64_t at)
{
    uint32_t name = hashRecordName(ev->name);
    unsigned n = 0;

    if (ev->protocol != ebpfMonWirePva || circuits->lastShared + EBPFMON_JOIN_STALE_NS < at)
        return 0;
    for (ebpfMonJoinCircuit *c = circuits->newest; c && n < EBPFMON_JOIN_OTHERS; c = c->older, n++) {
        if (!ebpfMonJoinIsSameServer(&c->peer, &ev->peer))
            continue;
        for (unsigned i = 0; i < c->publishedCount; i++)
            if (c->published[i].isShared && c->published[i].name == name &&
                c->published[i].at + EBPFMON_JOIN_STALE_NS >= at && isPublished(&c->published[i], ev, name)) {
                removePublished(c, i);
                return 1;
            }
    }
    return 0;
}

int ebpfMonJoinPublishedTake(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *circuit, const ebpfMonWireEvent *ev,
                             uint64_t at)
{
    if (!takeOwn(circuit, ev, at) && !takeShared(circuits, ev, at))
        return 0;
    ebpfMonJoinCircuitConfirm(circuit, ev->circuit, ev->stretch, ev->seq);
    return 1;
}

/* --- circuits --- */

#define CIRCUITS_MAX 8192 /* beyond that, the one without a put for longest is forgotten */
#define IDLE_NS (60 * EBPFMON_SECOND_NS)

/* By the client's address alone, because sometimes only that is known. */
static unsigned hashClient(const struct ebpfMonPeer *p)
{
    uint32_t h = p->addr * 2654435761u ^ p->port * 3266489917u;

    return (h ^ h >> 15) % EBPFMON_JOIN_BUCKETS;
}

int ebpfMonJoinIsSamePeer(const struct ebpfMonPeer *peer, const struct ebpfMonPeer *part)
{
    return peer->port == part->port && ebpfMonIsSameAddress(peer->addr, peer->addr6, part->addr, part->addr6) &&
           (part->sport ? ebpfMonJoinIsSameServer(peer, part) : peer->netns == part->netns);
}

ebpfMonJoinCircuit *ebpfMonJoinCircuitsFind(const ebpfMonJoinCircuits *circuits, const struct ebpfMonPeer *peer)
{
    ebpfMonJoinCircuit *c = circuits->bucket[hashClient(peer)];

    while (c && !ebpfMonJoinIsSamePeer(&c->peer, peer))
        c = c->next;
    return c;
}

static void removeFromAges(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c)
{
    *(c->newer ? &c->newer->older : &circuits->newest) = c->older;
    *(c->older ? &c->older->newer : &circuits->oldest) = c->newer;
}

static void addAsNewest(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c)
{
    c->newer = NULL;
    c->older = circuits->newest;
    *(circuits->newest ? &circuits->newest->newer : &circuits->oldest) = c;
    circuits->newest = c;
}

void ebpfMonJoinCircuitsForget(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c)
{
    ebpfMonJoinCircuit **at = &circuits->bucket[hashClient(&c->peer)];

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    removeFromAges(circuits, c);
    while (c->first) {
        ebpfMonPacketPut *p = c->first;

        circuits->dropped += !p->made && (!p->isPublished || p->isTaken);
        ebpfMonJoinCircuitsRemovePut(circuits, p);
        free(p);
    }
    free(c->published);
    free(c);
    circuits->count--;
}

void ebpfMonJoinCircuitsForgetAll(ebpfMonJoinCircuits *circuits)
{
    while (circuits->oldest)
        ebpfMonJoinCircuitsForget(circuits, circuits->oldest);
}

ebpfMonJoinCircuit *ebpfMonJoinCircuitsGet(ebpfMonJoinCircuits *circuits, const struct ebpfMonPeer *peer, uint64_t now)
{
    ebpfMonJoinCircuit *c = ebpfMonJoinCircuitsFind(circuits, peer), *oldest;

    while ((oldest = circuits->oldest) && oldest != c && !oldest->first && now > oldest->used &&
           now - oldest->used > IDLE_NS)
        ebpfMonJoinCircuitsForget(circuits, oldest);
    if (!c) {
        if (circuits->count >= CIRCUITS_MAX)
            ebpfMonJoinCircuitsForget(circuits, circuits->oldest);
        c = calloc(1, sizeof(*c));
        if (!c)
            return NULL;
        c->peer = *peer;
        c->next = circuits->bucket[hashClient(peer)];
        circuits->bucket[hashClient(peer)] = c;
        circuits->count++;
    } else {
        removeFromAges(circuits, c);
    }
    addAsNewest(circuits, c);
    c->used = now;
    return c;
}

static unsigned hashSeq(const ebpfMonJoinCircuit *c, uint32_t seq)
{
    return (unsigned)(ebpfMonHashMix((uintptr_t)c + seq) >> (64 - EBPFMON_JOIN_PUT_BITS));
}

static unsigned hashId(uint64_t id)
{
    return (unsigned)(ebpfMonHashInteger(id) >> (64 - EBPFMON_JOIN_PUT_BITS));
}

void ebpfMonJoinCircuitsAddPut(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c, ebpfMonPacketPut *put)
{
    ebpfMonPacketPut **seq = &circuits->bySeq[hashSeq(c, put->seq)], **id = &circuits->byId[hashId(put->id)];

    put->in = c;
    put->before = c->last;
    put->next = NULL;
    *(c->last ? &c->last->next : &c->first) = put;
    c->last = put;
    put->nextSeq = *seq;
    *seq = put;
    put->nextId = *id;
    *id = put;
    c->nameless += !put->channel[0];
    circuits->waiting++;
}

void ebpfMonJoinCircuitsSetPublished(ebpfMonJoinCircuits *circuits, ebpfMonPacketPut *put)
{
    put->isPublished = 1;
    circuits->waiting--;
    circuits->published++;
}

void ebpfMonJoinCircuitsRemovePut(ebpfMonJoinCircuits *circuits, ebpfMonPacketPut *put)
{
    ebpfMonJoinCircuit *c = put->in;
    ebpfMonPacketPut **seq = &circuits->bySeq[hashSeq(c, put->seq)], **id = &circuits->byId[hashId(put->id)];

    *(put->before ? &put->before->next : &c->first) = put->next;
    *(put->next ? &put->next->before : &c->last) = put->before;
    if (c->passed == put)
        c->passed = put->before;
    while (*seq != put)
        seq = &(*seq)->nextSeq;
    *seq = put->nextSeq;
    while (*id != put)
        id = &(*id)->nextId;
    *id = put->nextId;
    c->nameless -= !put->channel[0];
    --*(put->isPublished ? &circuits->published : &circuits->waiting);
}

ebpfMonPacketPut *ebpfMonJoinCircuitsFindSeq(const ebpfMonJoinCircuits *circuits, const ebpfMonJoinCircuit *c,
                                             uint32_t seq, int (*fits)(const ebpfMonPacketPut *p, const void *arg),
                                             const void *arg)
{
    ebpfMonPacketPut *found = NULL;

    for (ebpfMonPacketPut *p = circuits->bySeq[hashSeq(c, seq)]; p; p = p->nextSeq) /* the newest first */
        if (p->in == c && p->seq == seq && fits(p, arg))
            found = p;
    return found;
}

ebpfMonPacketPut *ebpfMonJoinCircuitsFindId(const ebpfMonJoinCircuits *circuits, const ebpfMonJoinCircuit *c,
                                            uint64_t id)
{
    ebpfMonPacketPut *p = circuits->byId[hashId(id)];

    while (p && (p->in != c || p->id != id))
        p = p->nextId;
    return p;
}

ebpfMonPacketPut *ebpfMonJoinCircuitSkip(ebpfMonJoinCircuit *c, uint32_t from)
{
    ebpfMonPacketPut *p;

    if (c->passed && ebpfMonJoinIsBefore(from, c->passedSeq))
        c->passed = NULL;
    p = c->passed ? c->passed->next : c->first;
    for (; p && !ebpfMonJoinIsBefore(from, p->end); p = p->next)
        c->passed = p;
    c->passedSeq = from;
    return p;
}

void ebpfMonJoinCircuitNameChannel(ebpfMonJoinCircuit *c, uint32_t sid, const char *name)
{
    for (ebpfMonPacketPut *p = c->nameless && name[0] ? c->first : NULL; p; p = p->next)
        if (!p->channel[0] && p->sid == sid) {
            ebpfMonTextCopy(p->channel, sizeof(p->channel), name);
            c->nameless--;
        }
}

void ebpfMonJoinCircuitSetServed(ebpfMonJoinCircuit *circuit, uint32_t seq)
{
    if (!circuit->hasServed || ebpfMonJoinIsBefore(circuit->served, seq))
        circuit->served = seq;
    circuit->hasServed = 1;
}

void ebpfMonJoinCircuitConfirm(ebpfMonJoinCircuit *circuit, uint64_t number, uint32_t stretch, uint32_t seq)
{
    if (circuit->confirmedCircuit == number && circuit->confirmedStretch == stretch &&
        !ebpfMonJoinIsBefore(seq, circuit->confirmedFrom))
        return;
    circuit->confirmedCircuit = number;
    circuit->confirmedStretch = stretch;
    circuit->confirmedFrom = seq;
}

/* --- network namespaces whose packets are read --- */

#define LATE_NS (60 * EBPFMON_SECOND_NS) /* later than any event is read; a put waits no longer for the links of its
                                          * IOC */

static int isListed(const uint32_t *netns, unsigned count, uint32_t which)
{
    for (unsigned i = 0; i < count; i++)
        if (netns[i] == which)
            return 1;
    return 0;
}

/* Forgets the one that was left longest ago: somebody may make and end many. */
static void forgetOldest(ebpfMonJoinCovered *covered)
{
    unsigned oldest = covered->count;

    for (unsigned i = 0; i < covered->count; i++)
        if (covered->space[i].leftAt &&
            (oldest == covered->count || covered->space[i].leftAt < covered->space[oldest].leftAt))
            oldest = i;
    if (oldest < covered->count)
        covered->space[oldest] = covered->space[--covered->count];
}

static void addSpace(ebpfMonJoinCovered *covered, uint32_t netns)
{
    for (unsigned i = 0; i < covered->count; i++)
        if (covered->space[i].netns == netns) {
            covered->space[i].leftAt = 0;
            return;
        }
    if (covered->count == EBPFMON_JOIN_COVERED_MAX)
        forgetOldest(covered);
    if (covered->count == EBPFMON_JOIN_COVERED_MAX)
        return;
    covered->space[covered->count].netns = netns;
    covered->space[covered->count++].leftAt = 0;
}

void ebpfMonJoinCoveredSet(ebpfMonJoinCovered *covered, const uint32_t *netns, unsigned count, uint64_t now)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < covered->count; i++) {
        if (!covered->space[i].leftAt && !isListed(netns, count, covered->space[i].netns))
            covered->space[i].leftAt = now;
        if (!covered->space[i].leftAt || now - covered->space[i].leftAt < LATE_NS)
            covered->space[kept++] = covered->space[i];
    }
    covered->count = kept;
    for (unsigned i = 0; i < count; i++)
        addSpace(covered, netns[i]);
}

int ebpfMonJoinCoveredHas(const ebpfMonJoinCovered *covered, const struct ebpfMonPeer *peer)
{
    for (unsigned i = 0; i < covered->count; i++)
        if (covered->space[i].netns == peer->netns)
            return 1;
    return 0;
}

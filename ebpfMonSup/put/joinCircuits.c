/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "put/joinCircuits.h"

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

        circuits->dropped += !p->made && !p->isPublished;
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
                                             uint32_t seq, int (*isIt)(const ebpfMonPacketPut *p, const void *arg),
                                             const void *arg)
{
    ebpfMonPacketPut *found = NULL;

    for (ebpfMonPacketPut *p = circuits->bySeq[hashSeq(c, seq)]; p; p = p->nextSeq) /* the newest first */
        if (p->in == c && p->seq == seq && isIt(p, arg))
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

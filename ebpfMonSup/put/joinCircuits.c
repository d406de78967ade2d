/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
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
    return peer->addr == part->addr && peer->port == part->port &&
           (!part->sport || ebpfMonJoinIsSameServer(peer, part));
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

        circuits->dropped += !p->made;
        ebpfMonJoinCircuitsRemovePut(circuits, c, NULL, p);
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

void ebpfMonJoinCircuitsAddPut(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c, ebpfMonPacketPut *put)
{
    *(c->last ? &c->last->next : &c->first) = put;
    c->last = put;
    circuits->waiting++;
}

void ebpfMonJoinCircuitsRemovePut(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c, ebpfMonPacketPut *before,
                                  ebpfMonPacketPut *put)
{
    *(before ? &before->next : &c->first) = put->next;
    if (c->last == put)
        c->last = before;
    circuits->waiting--;
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

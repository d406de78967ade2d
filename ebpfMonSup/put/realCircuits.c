/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "put/realCircuits.h"

#define PLACES 2048 /* of connections, by hash; a power of two */
#define WAYS   8    /* … each in one of so many places */

#define CLOCKS_NS 1000000 /* the time of a packet is computed by two clocks */

typedef struct {
    struct ebpfMonPeer peer;
    uint64_t used;    /* the newest has the highest; 0: the place is free */
    uint64_t circuit; /* the newest one with these ends */
    int      known;   /* as ebpfMonFindReceived returned it */
    ebpfMonReceived received;
    int      hasFloor; /* an earlier circuit of this connection has shown what comes before "floor" */
    uint32_t floor;
} realCircuit;

struct ebpfMonRealCircuits {
    ebpfMonFindReceived find;
    uint64_t    serial;
    realCircuit place[PLACES];
};

ebpfMonRealCircuits *ebpfMonRealCircuitsNew(ebpfMonFindReceived find)
{
    ebpfMonRealCircuits *real = calloc(1, sizeof(*real));

    if (real)
        real->find = find;
    return real;
}

void ebpfMonRealCircuitsFree(ebpfMonRealCircuits *real)
{
    free(real);
}

/* Nonzero: "a" gives up its place before "b". Forged connections must not displace real ones. */
static int isLess(const realCircuit *a, const realCircuit *b)
{
    return (a->known > 0) != (b->known > 0) ? b->known > 0 : a->used < b->used;
}

static realCircuit *takePlace(ebpfMonRealCircuits *real, const struct ebpfMonPeer *peer)
{
    uint64_t h = ebpfMonHashMix(((uint64_t)peer->addr << 32 | peer->saddr) ^
                                ((uint64_t)peer->port << 48 | (uint64_t)peer->sport << 32 | peer->netns));
    realCircuit *least = &real->place[h % PLACES];

    for (unsigned i = 0; i < WAYS; i++) {
        realCircuit *c = &real->place[(h + i) % PLACES];

        if (c->used && memcmp(&c->peer, peer, sizeof(*peer)) == 0)
            return c;
        if (isLess(c, least))
            least = c;
    }
    *least = (realCircuit){ .peer = *peer };
    return least;
}

static void askKernel(ebpfMonRealCircuits *real, realCircuit *c, const struct ebpfMonFirst *first, pid_t pid)
{
    ebpfMonReceived found;
    int known = real->find(&c->peer, first, pid, &found);

    if (c->known > 0 && known > 0 && !ebpfMonFirstIsSame(&c->received.first, &found.first))
        c->hasFloor = 0; /* another connection with the same ends */
    if (known > 0 || c->known <= 0) { /* else it has ended, and what was known of that is forgotten */
        c->known = known;
        c->received = found;
    }
}

/* The circuit has shown a put. If it is another one than before with the same ends, it may be the same connection: the
 * end of the other circuit was forged, or there was no room for it. */
static realCircuit *useCircuit(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer)
{
    realCircuit *c = takePlace(real, peer);

    c->used = ++real->serial;
    if (circuit > c->circuit && c->known > 0 && c->received.hasUpTo) {
        c->hasFloor = 1;
        c->floor = c->received.upTo;
    }
    if (circuit > c->circuit)
        c->circuit = circuit;
    return c;
}

void ebpfMonRealCircuitsNote(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                             const struct ebpfMonFirst *first, pid_t pid)
{
    realCircuit *c;

    if (!real->find || !pid || takePlace(real, peer)->circuit >= circuit)
        return;
    c = useCircuit(real, circuit, peer);
    askKernel(real, c, first, pid);
}

/* Nonzero: all of the put was received. */
static int coversPut(const realCircuit *c, const ebpfMonPacketPut *put)
{
    const ebpfMonReceived *r = &c->received;

    if (c->known <= 0 || (r->endedAt && put->at > r->endedAt + CLOCKS_NS))
        return 0;
    if ((put->first.seq[0] || put->first.seq[1]) && (r->first.seq[0] || r->first.seq[1]) &&
        !ebpfMonFirstIsSame(&put->first, &r->first))
        return 0;
    return !r->hasUpTo || r->upTo - put->end <= r->window;
}

static int isAgain(const realCircuit *c, const ebpfMonPacketPut *put)
{
    return c->hasFloor && put->circuit >= c->circuit && (int32_t)(put->seq - c->floor) < 0;
}

int ebpfMonRealCircuitsHas(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put)
{
    realCircuit *c;

    if (!real->find || !put->pid)
        return 1;
    c = useCircuit(real, put->circuit, &put->peer);
    if (!c->received.hasUpTo || !coversPut(c, put))
        askKernel(real, c, &put->first, put->pid);
    return coversPut(c, put) && !isAgain(c, put);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "put/realCircuits.h"

#define CONNECTIONS 2048 /* of connections, by hash; a power of two */
#define CONNECTION_WAYS 8 /* … each in one of so many places */
#define AHEAD_MAX (1u << 20) /* bytes behind what was received */

/* A connection. Another one may have the same ends, before what the first has sent is judged. */
typedef struct {
    struct ebpfMonPeer  peer;
    struct ebpfMonFirst first; /* as its packets say; zeros: they do not */
    uint64_t used;    /* the newest has the highest; 0: the place is free */
    uint64_t circuit; /* the newest one of this connection */
    int      known;   /* as ebpfMonFindReceived returned it */
    int      isPast;  /* the kernel knows only a later connection with these ends */
    ebpfMonReceived received;
    int      hasFloor; /* an earlier circuit of this connection has shown what comes before "floor" */
    uint32_t floor;
} realCircuit;

struct ebpfMonRealCircuits {
    ebpfMonFindReceived find;
    uint64_t    serial;
    realCircuit place[CONNECTIONS];
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

/* Nonzero: it may be the connection with these numbers; 2: it is. */
static int judgePlace(const realCircuit *c, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    const struct ebpfMonFirst *own = ebpfMonFirstIsKnown(&c->first) ? &c->first : &c->received.first;

    if (!c->used || memcmp(&c->peer, peer, sizeof(*peer)) != 0)
        return 0;
    if (!ebpfMonFirstIsKnown(own) || !ebpfMonFirstIsKnown(first))
        return 1;
    return ebpfMonFirstIsSame(own, first) ? 2 : 0;
}

/* "a" is the connection rather than "b": forged ones may have the same ends. */
static int isBetter(const realCircuit *a, const realCircuit *b)
{
    return (a->known > 0) != (b->known > 0) ? a->known > 0 : a->circuit > b->circuit;
}

/* Without "first" it is the newest connection with these ends that the kernel knows. */
static realCircuit *takePlace(ebpfMonRealCircuits *real, const struct ebpfMonPeer *peer,
                              const struct ebpfMonFirst *first)
{
    uint64_t h = ebpfMonHashMix(((uint64_t)peer->addr << 32 | peer->saddr) ^
                                ((uint64_t)peer->port << 48 | (uint64_t)peer->sport << 32 | peer->netns));
    realCircuit *least = &real->place[h % CONNECTIONS], *found = NULL;

    for (unsigned i = 0; i < CONNECTION_WAYS; i++) {
        realCircuit *c = &real->place[(h + i) % CONNECTIONS];
        int is = judgePlace(c, peer, first);

        if (is == 2)
            return c;
        if (is && (!found || isBetter(c, found)))
            found = c;
        if (isLess(c, least))
            least = c;
    }
    if (found)
        return found;
    *least = (realCircuit){ .peer = *peer, .first = *first };
    return least;
}

/* Nonzero: the kernel tells of a connection that began behind this number, which was sent in an earlier one. */
static int isLater(const ebpfMonReceived *found, const struct ebpfMonFirst *first, uint32_t seq)
{
    return !ebpfMonFirstIsKnown(first) && ebpfMonFirstIsKnown(&found->first) &&
           (int32_t)(seq - found->first.seq[0]) < 0 && !(found->hasUpTo && found->upTo - seq <= found->window);
}

static void askKernel(ebpfMonRealCircuits *real, realCircuit *c, const struct ebpfMonFirst *first, pid_t pid,
                      uint32_t seq)
{
    ebpfMonReceived found;
    int known = real->find(&c->peer, first, pid, &found);

    c->isPast = known > 0 && isLater(&found, first, seq);
    if (c->isPast) {
        known = 0;
        found = (ebpfMonReceived){ .hasUpTo = 0 };
    }
    if (c->known > 0 && known > 0 && !ebpfMonFirstIsSame(&c->received.first, &found.first))
        c->hasFloor = 0; /* another connection with the same ends */
    if (known > 0 || c->known <= 0) { /* else it has ended, and what was known of that is forgotten */
        c->known = known;
        c->received = found;
    }
}

/* The circuit has shown a put. If it is another one than before, the end of the other circuit was forged, or there was
 * no room for it. */
static realCircuit *useCircuit(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                               const struct ebpfMonFirst *first)
{
    realCircuit *c = takePlace(real, peer, first);

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
                             const struct ebpfMonFirst *first, pid_t pid, uint32_t seq, int isSeen)
{
    struct ebpfMonFirst before;
    realCircuit *c;
    int isKnown;

    if (!real->find || !pid)
        return;
    c = takePlace(real, peer, first);
    if (c->circuit >= circuit)
        return;
    isKnown = c->circuit && c->known > 0;
    before = c->received.first;
    c = useCircuit(real, circuit, peer, first);
    askKernel(real, c, first, pid, seq);
    if (isSeen && isKnown && c->received.hasUpTo && ebpfMonFirstIsSame(&before, &c->received.first)) {
        c->hasFloor = 1;
        c->floor = c->received.upTo;
    }
}

/* Nonzero: the put is of this connection, while it was open. */
static int isOfConnection(const realCircuit *c, const ebpfMonPacketPut *put)
{
    const ebpfMonReceived *r = &c->received;

    return c->known > 0 && !(r->endedAt && put->at > r->endedAt + EBPFMON_CLOCKS_NS) &&
           ebpfMonFirstMayBeSame(&put->first, &r->first);
}

/* Nonzero: all of the put was received. */
static int coversPut(const realCircuit *c, const ebpfMonPacketPut *put)
{
    return isOfConnection(c, put) && (!c->received.hasUpTo || c->received.upTo - put->end <= c->received.window);
}

/* Nonzero: the end of the put is the next that the socket receives. A client that has sent a RST tells only what was
 * acknowledged before; the server's socket tells more when it has got that. */
static int isAhead(const realCircuit *c, const ebpfMonPacketPut *put)
{
    return isOfConnection(c, put) && c->received.hasUpTo && put->end - c->received.upTo - 1 < AHEAD_MAX;
}

static int isAgain(const realCircuit *c, const ebpfMonPacketPut *put)
{
    return c->hasFloor && put->circuit >= c->circuit && (int32_t)(put->seq - c->floor) < 0;
}

ebpfMonReal ebpfMonRealCircuitsJudge(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put)
{
    realCircuit *c;

    if (!real->find || !put->pid)
        return ebpfMonRealYes;
    c = useCircuit(real, put->circuit, &put->peer, &put->first);
    if (!c->received.hasUpTo || !coversPut(c, put))
        askKernel(real, c, &put->first, put->pid, put->seq);
    if (c->isPast && c->known <= 0)
        return ebpfMonRealPerhaps;
    if (isAhead(c, put))
        return ebpfMonRealLater;
    return coversPut(c, put) && !isAgain(c, put) ? ebpfMonRealYes : ebpfMonRealNo;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The circuits that puts came through lately. Each has a queue of puts that were seen in packets and not yet in the
 * IOC, and a list of puts that were published without their packet. Used by putJoin only, under its lock.
 */
#ifndef EBPFMON_JOINCIRCUITS_H
#define EBPFMON_JOINCIRCUITS_H

#include "put/finishedPut.h"
#include "wire/wireEvent.h"

#define EBPFMON_JOIN_BUCKETS 1024
#define EBPFMON_JOIN_PUT_BITS 16        /* 2^ so many buckets of puts */
#define EBPFMON_JOIN_OTHERS  256        /* circuits of one server that are searched for a put */
#define EBPFMON_JOIN_HEADER  16         /* bytes of a CA message at least */
#define EBPFMON_JOIN_STALE_NS 100000000ull /* a put is made after its packet came, but two clocks tell when */

/* A put that was seen in the IOC, and published before its packet was read. */
typedef struct {
    uint64_t at;       /* monotonic ns */
    uint32_t seq, seqFrom; /* as in ebpfMonMessageKey */
    uint32_t name;     /* hash of its record's name */
    int      isShared; /* it may have come through another circuit of the same thread */
    int      isNumber;
    double   number;
} ebpfMonJoinPublished;

typedef struct ebpfMonJoinCircuit {
    struct ebpfMonJoinCircuit *next;          /* of the same bucket */
    struct ebpfMonJoinCircuit *newer, *older; /* by the time of the last put */
    struct ebpfMonPeer peer;
    struct ebpfMonPeer outer;                 /* as in ebpfMonPacketPut */
    uint64_t  used;                           /* monotonic ns of its last put */
    ebpfMonPacketPut *first, *last;           /* seen in packets, and not yet in the IOC; in the order of the packets */
    unsigned  nameless;                       /* of these: puts to a channel whose name is not known */
    ebpfMonPacketPut *passed;                 /* this one and all before it do not end behind "passedSeq": the search
                                               * for one */
    uint32_t  passedSeq;                      /* that was received later begins behind it. NULL: at the first */
    ebpfMonJoinPublished *published;          /* in the order of their publication */
    unsigned  publishedRoom, publishedCount;
    uint64_t  confirmedCircuit;               /* a put of this stretch of messages was seen in the IOC, too: it is
                                               * not */
    uint32_t  confirmedStretch;               /* made of bytes that look like messages. As in ebpfMonWireEvent */
    uint32_t  confirmedFrom;                  /* … from this sequence number on */
    int       hasServed;                      /* "served" is valid */
    uint32_t  served;                         /* sequence number of the latest message that the IOC served */
    uint64_t  madeAt;                         /* monotonic ns of the latest put that was seen in the IOC */
    uint64_t  readAt;                         /* … when the server had read all that had come; 0: not asked yet */
    uint64_t  askedAt;                        /* … when that was asked last */
    uint32_t  askIoc;                         /* this is to be asked of this IOC; 0: of none */
    int       hasForgotten;                   /* "published" was full: those up to "forgottenUpTo" are forgotten */
    uint32_t  forgottenUpTo;
} ebpfMonJoinCircuit;

typedef struct {
    ebpfMonJoinCircuit *bucket[EBPFMON_JOIN_BUCKETS];
    ebpfMonJoinCircuit *newest, *oldest;
    /* All puts of all queues. While events are lost, those that find no match are many, and stand in front. */
    ebpfMonPacketPut *bySeq[1u << EBPFMON_JOIN_PUT_BITS], *byId[1u << EBPFMON_JOIN_PUT_BITS];
    unsigned count;
    unsigned waiting;    /* puts in the queues of all circuits … */
    unsigned published;  /* … and those that are published already */
    uint64_t dropped;    /* puts for which there was no room */
    uint64_t lastShared; /* monotonic ns of the last entry with isShared */
} ebpfMonJoinCircuits;

/* a comes before b among TCP sequence numbers (RFC 9293, 3.4). */
static inline int ebpfMonJoinIsBefore(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* A message that ends at "end" was complete with the bytes from "from" to "to", and not before. */
static inline int ebpfMonJoinIsReceived(uint32_t from, uint32_t to, uint32_t end)
{
    return ebpfMonJoinIsBefore(from, end) && !ebpfMonJoinIsBefore(to, end);
}

/* A record may hold the number as a float. */
static inline int ebpfMonJoinIsSameNumber(double a, double b)
{
    return a == b || (float)a == (float)b;
}

/* Both are circuits of the same server. */
static inline int ebpfMonJoinIsSameServer(const struct ebpfMonPeer *a, const struct ebpfMonPeer *b)
{
    return a->sport == b->sport && a->netns == b->netns &&
           ebpfMonIsSameAddress(a->saddr, a->saddr6, b->saddr, b->saddr6);
}

/* "part" is this circuit, or its client is that of this circuit and its server is not known. */
int ebpfMonJoinIsSamePeer(const struct ebpfMonPeer *peer, const struct ebpfMonPeer *part);

/* NULL: no puts came through it lately. "peer" may lack the server. */
ebpfMonJoinCircuit *ebpfMonJoinCircuitsFind(const ebpfMonJoinCircuits *circuits, const struct ebpfMonPeer *peer);

/* The same; makes the circuit if there is none. It is the newest one then. Circuits without puts for a minute are
 * forgotten. "now": monotonic ns. NULL without memory. */
ebpfMonJoinCircuit *ebpfMonJoinCircuitsGet(ebpfMonJoinCircuits *circuits, const struct ebpfMonPeer *peer, uint64_t now);

void ebpfMonJoinCircuitsForget(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *circuit);
void ebpfMonJoinCircuitsForgetAll(ebpfMonJoinCircuits *circuits);

void ebpfMonJoinCircuitsAddPut(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *circuit, ebpfMonPacketPut *put);
/* It is published from its packet, and stays in its queue. */
void ebpfMonJoinCircuitsSetPublished(ebpfMonJoinCircuits *circuits, ebpfMonPacketPut *put);
/* The caller frees it. */
void ebpfMonJoinCircuitsRemovePut(ebpfMonJoinCircuits *circuits, ebpfMonPacketPut *put);

/* The put in the queue whose message has this sequence number, and for which "fits" is nonzero; of several the first.
 * NULL: none. */
ebpfMonPacketPut *ebpfMonJoinCircuitsFindSeq(const ebpfMonJoinCircuits *circuits, const ebpfMonJoinCircuit *circuit,
                                             uint32_t seq, int (*fits)(const ebpfMonPacketPut *p, const void *arg),
                                             const void *arg);
/* … with this id. */
ebpfMonPacketPut *ebpfMonJoinCircuitsFindId(const ebpfMonJoinCircuits *circuits, const ebpfMonJoinCircuit *circuit,
                                            uint64_t id);

/* The first put of the queue that may end behind "from". */
ebpfMonPacketPut *ebpfMonJoinCircuitSkip(ebpfMonJoinCircuit *circuit, uint32_t from);

/* The name of this channel is known now. */
void ebpfMonJoinCircuitNameChannel(ebpfMonJoinCircuit *circuit, uint32_t sid, const char *name);

/* A put of this stretch of messages was seen in the IOC, too. "stretch": as in ebpfMonWireEvent. From there on the
 * messages are whole. Before it they need not be: bytes that look like messages can end where a message begins. */
void ebpfMonJoinCircuitConfirm(ebpfMonJoinCircuit *circuit, uint64_t number, uint32_t stretch, uint32_t seq);

/* The IOC has served the message with this sequence number. */
void ebpfMonJoinCircuitSetServed(ebpfMonJoinCircuit *circuit, uint32_t seq);

/* A put seen in the IOC is published without its packet: notes this until the packet comes. */
void ebpfMonJoinPublishedAdd(ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put);

/* Nonzero: the put of this packet was already published as a put seen in the IOC. Removes the note. "at": monotonic ns
 * when the packet came. */
int ebpfMonJoinPublishedTake(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *circuit, const ebpfMonWireEvent *ev,
                             uint64_t at);

/* --- network namespaces whose packets are read ---
 *
 * The network namespaces of which packets are read, or were until a short time ago: when the last IOC of one ends, its
 * last packets may be read before its last events, and a put must find its packet then, too. No lock of its own. */

#define EBPFMON_JOIN_COVERED_MAX 64

typedef struct {
    struct {
        uint32_t netns;
        uint64_t leftAt; /* monotonic ns: its packets are not read since then; 0: they are */
    } space[EBPFMON_JOIN_COVERED_MAX];
    unsigned count;
} ebpfMonJoinCovered;

/* Packets are read in these from now (monotonic ns) on, and in no others. */
void ebpfMonJoinCoveredSet(ebpfMonJoinCovered *covered, const uint32_t *netns, unsigned count, uint64_t now);

/* Nonzero: the packets of this connection were read, or will be. */
int ebpfMonJoinCoveredHas(const ebpfMonJoinCovered *covered, const struct ebpfMonPeer *peer);

#endif

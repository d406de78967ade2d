/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "wire/detect.h"
#include "wire/messages.h"
#include "wire/wire.h"

#define SECOND        1000000000ull
#define SILENT_OTHER  (60 * SECOND)       /* a connection that is not known to be CA or PVA */
#define SILENT_HALF   (60 * SECOND)       /* one side has ended */
#define SILENT_OPEN   (3 * 3600 * SECOND) /* longer than TCP's keep-alive of two hours */

static const ebpfMonStreamSink handlers = { .bytes = ebpfMonDetectBytes, .lost = ebpfMonMessagesLost };

ebpfMonWire *ebpfMonWireNew(const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg)
{
    ebpfMonWire *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    ebpfMonMemoryAccountStart(&w->account, limits, sink, arg);
    for (w->buckets = 16; w->buckets < w->account.limits.circuits && w->buckets < 1u << 20;)
        w->buckets *= 2;
    w->byKey = calloc(w->buckets, sizeof *w->byKey);
    w->byNumber = calloc(w->buckets, sizeof *w->byNumber);
    w->ended = ebpfMonEndedCircuitsNew();
    if (!w->byKey || !w->byNumber || !w->ended) {
        ebpfMonWireFree(w);
        return NULL;
    }
    return w;
}

void ebpfMonWireFree(ebpfMonWire *w)
{
    if (!w)
        return;
    ebpfMonMemoryAccountMute(&w->account);
    while (w->open.oldest)
        ebpfMonCircuitEnd(w->open.oldest, 0);
    while (w->others.oldest)
        ebpfMonCircuitEnd(w->others.oldest, 0);
    ebpfMonCircuitSharesFree(&w->shares);
    free(w->byKey);
    free(w->byNumber);
    free(w->ended);
    free(w);
}

void ebpfMonWireSetPayer(ebpfMonWire *w, ebpfMonWireFindPayer find, void *arg)
{
    w->shares.findPayer = find;
    w->shares.arg = arg;
}

static void handleDatagram(ebpfMonWire *w, uint64_t time, uint32_t netns, const ebpfMonSegment *s)
{
    struct ebpfMonPeer peer = { .addr = s->from, .port = s->fromPort, .saddr = s->to, .sport = s->toPort,
        .netns = netns };
    uint16_t from = ntohs(s->fromPort), to = ntohs(s->toPort);
    const ebpfMonProtocol *protocol;

    memcpy(peer.addr6, s->from6, sizeof peer.addr6);
    memcpy(peer.saddr6, s->to6, sizeof peer.saddr6);
    if (from == 5064 || from == 5065 || to == 5064 || to == 5065)
        protocol = &ebpfMonCaProtocol;
    else if (from == 5075 || from == 5076 || to == 5075 || to == 5076)
        protocol = &ebpfMonPvaProtocol;
    else if (s->have >= 16 && s->data[0] == 0) /* the high byte of a CA command is 0 */
        protocol = &ebpfMonCaProtocol;
    else if (s->have >= 8 && s->data[0] == 0xca) /* the magic byte of PVA */
        protocol = &ebpfMonPvaProtocol;
    else
        return;
    if (protocol->datagram && s->have == s->wire)
        protocol->datagram(w, time, &peer, s->data, s->have);
}

static ebpfMonCircuit *makeCircuit(ebpfMonWire *w, const ebpfMonCircuitKey *key, uint64_t time)
{
    ebpfMonCircuit *c = ebpfMonCircuitMake(w, key, time);

    for (int side = 0; c && side < 2; side++)
        ebpfMonStreamInit(&c->stream[side], &w->account, &handlers, c, side);
    return c;
}

/* A SYN with the ports of a circuit that has not ended as far as we know. Anybody can send one, and the end of a real
 * connection answers it by no SYN (RFC 5961, 4.2). So the circuit ends only when the answer comes. Returns the new one;
 * NULL: there is none yet. */
static ebpfMonCircuit *useAgain(ebpfMonWire *w, ebpfMonCircuit *c, uint64_t time, const ebpfMonSegment *s, int side)
{
    int isAnswer = (s->flags & EBPFMON_TCP_ACK) != 0;
    int isKnown = c->again && c->againSide != side && s->ack == c->again + 1;
    uint32_t first = c->again;
    ebpfMonCircuitKey key = c->key;

    if (!isAnswer) {
        c->again = s->seq;
        c->againSide = side;
    }
    if (c->closer < 0 && !(isAnswer && isKnown))
        return NULL;
    ebpfMonEndedCircuitsAdd(w->ended, c, 1, time);
    ebpfMonCircuitEnd(c, time);
    c = makeCircuit(w, &key, time);
    if (c && isKnown) {
        ebpfMonStreamStart(&c->stream[!side], first);
        c->assembly[!side].fresh = 1;
    }
    return c;
}

/* Finds or makes the circuit of a segment. *side gets the side that sent it. NULL: there is none. */
static ebpfMonCircuit *getCircuit(ebpfMonWire *w, uint64_t time, uint32_t netns, const ebpfMonSegment *s, int *side)
{
    ebpfMonCircuitKey key = { .netns = netns };
    uint64_t from = (uint64_t)ntohl(s->from) << 16 | ntohs(s->fromPort);
    uint64_t to = (uint64_t)ntohl(s->to) << 16 | ntohs(s->toPort);
    ebpfMonCircuit *c;

    *side = from != to ? from > to : memcmp(s->from6, s->to6, sizeof s->from6) > 0;
    key.addr[*side] = s->from;
    key.port[*side] = s->fromPort;
    key.addr[!*side] = s->to;
    key.port[!*side] = s->toPort;
    memcpy(key.addr6[*side], s->from6, sizeof s->from6);
    memcpy(key.addr6[!*side], s->to6, sizeof s->to6);
    if (ebpfMonEndedCircuitsHas(w->ended, &key, *side, s, time))
        return NULL;
    c = ebpfMonCircuitFind(w, &key);
    if (c && s->flags & EBPFMON_TCP_SYN) {
        const ebpfMonStream *st = &c->stream[*side];

        /* It is a copy of the SYN that we saw, or its answer. Otherwise the ports are used again. */
        if (st->syn ? st->isn != s->seq : st->started)
            return useAgain(w, c, time, s, *side);
    }
    if (c || !(s->wire || s->flags & EBPFMON_TCP_SYN))
        return c;
    c = makeCircuit(w, &key, time);
    if (c)
        ebpfMonEndedCircuitsResume(w->ended, c, *side, s);
    return c;
}

static void tickStreams(ebpfMonCircuit *c, uint64_t time)
{
    for (int side = 0; side < 2; side++)
        ebpfMonStreamTick(&c->stream[side], time);
}

/* Nonzero: both sides have ended. */
static int isEnded(const ebpfMonCircuit *c)
{
    if (c->givenUp)
        return c->stream[0].fin && c->stream[1].fin;
    return ebpfMonStreamEnded(&c->stream[0]) && ebpfMonStreamEnded(&c->stream[1]);
}

static void handleTcp(ebpfMonWire *w, uint64_t time, uint32_t netns, const ebpfMonSegment *s)
{
    int side, isNear;
    ebpfMonCircuit *c = getCircuit(w, time, netns, s, &side);
    ebpfMonStream *st;

    if (!c)
        return;
    st = &c->stream[side];
    isNear = ebpfMonStreamIsNear(st, s->seq); /* else the receiver believes nothing of it */
    if (s->flags & EBPFMON_TCP_RST && !ebpfMonStreamIsReset(st, s->seq))
        return;
    ebpfMonCircuitUsed(c, time);
    if (s->flags & EBPFMON_TCP_SYN && !st->started) {
        ebpfMonStreamStart(st, s->seq);
        c->assembly[side].fresh = 1;
        if (c->phase == ebpfMonCircuitNew)
            c->server = s->flags & EBPFMON_TCP_ACK ? side : !side;
    }
    if (s->flags & EBPFMON_TCP_URG && c->phase != ebpfMonCircuitForeign && !c->givenUp && isNear)
        ebpfMonCircuitGiveUp(c, side, time);
    if (c->phase != ebpfMonCircuitForeign && !c->givenUp) {
        ebpfMonStreamTick(st, time);
        if (isNear && s->flags & EBPFMON_TCP_ACK)
            ebpfMonStreamAck(&c->stream[!side], s->ack, time);
        if (s->wire)
            ebpfMonStreamSegment(st, s, time);
    }
    if (isNear && s->flags & (EBPFMON_TCP_FIN | EBPFMON_TCP_RST) && c->closer < 0)
        c->closer = side;
    if (isNear && s->flags & EBPFMON_TCP_FIN && !st->fin) {
        st->fin = 1;
        st->finSeq = s->seq + (uint32_t)s->wire;
        if (!st->started) {
            st->started = 1;
            st->next = st->finSeq;
        }
    }
    if (s->flags & EBPFMON_TCP_RST)
        tickStreams(c, UINT64_MAX);
    if (s->flags & EBPFMON_TCP_RST || isEnded(c) ||
        (isNear && s->flags & EBPFMON_TCP_FIN && c->phase == ebpfMonCircuitForeign)) {
        ebpfMonEndedCircuitsAdd(w->ended, c, 1, time);
        ebpfMonCircuitEnd(c, time);
    }
}

void ebpfMonWirePacket(ebpfMonWire *w, uint64_t time, uint32_t netns, const uint8_t *ip, size_t len, size_t wireLen)
{
    ebpfMonSegment s;

    w->account.stats.packets++;
    w->account.stats.bytes += wireLen;
    switch (ebpfMonPacketParse(ip, len, wireLen, &s)) {
    case ebpfMonPacketTcp:
        w->account.stats.segments += s.wire != 0;
        handleTcp(w, time, netns, &s);
        break;
    case ebpfMonPacketUdp:
        handleDatagram(w, time, netns, &s);
        break;
    case ebpfMonPacketFragment:
        w->account.stats.fragments++;
        break;
    case ebpfMonPacketOther:
        break;
    }
}

static int isSilent(const ebpfMonCircuit *c, uint64_t time)
{
    int isHalfEnded = ebpfMonStreamEnded(&c->stream[0]) || ebpfMonStreamEnded(&c->stream[1]);
    uint64_t limit = c->phase != ebpfMonCircuitOpen && !c->givenUp ? SILENT_OTHER :
                     isHalfEnded ? SILENT_HALF : SILENT_OPEN;

    return time == UINT64_MAX || (time > c->last && time - c->last > limit);
}

void ebpfMonWireSetLossAt(ebpfMonWire *w, uint64_t time)
{
    w->account.lossAt = time;
}

void ebpfMonWireTick(ebpfMonWire *w, uint64_t time)
{
    ebpfMonCircuitList *lists[] = { &w->open, &w->others };

    for (unsigned i = 0; i < 2; i++) {
        ebpfMonCircuit *newer;

        for (ebpfMonCircuit *c = lists[i]->oldest; c; c = newer) {
            newer = c->newer;
            tickStreams(c, time);
            if (isSilent(c, time) || isEnded(c))
                ebpfMonCircuitEnd(c, time == UINT64_MAX ? c->last : time);
        }
    }
}

void ebpfMonWireRemind(ebpfMonWire *w, uint64_t time)
{
    for (ebpfMonCircuit *c = w->open.oldest; c; c = c->newer)
        if (c->state && c->protocol->remind)
            c->protocol->remind(c->state, time);
}

int ebpfMonWireName(ebpfMonWire *w, uint64_t circuit, uint32_t sid, const char *name)
{
    ebpfMonCircuit *c = circuit ? ebpfMonCircuitByNumber(w, circuit) : NULL;

    if (!c || !c->state)
        return -1;
    if (c->protocol->name)
        c->protocol->name(c->state, sid, name);
    return 0;
}

const ebpfMonWireStats *ebpfMonWireStat(const ebpfMonWire *w)
{
    return &w->account.stats;
}

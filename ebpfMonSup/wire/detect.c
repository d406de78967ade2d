/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/detect.h"
#include "wire/messages.h"
#include "wire/protocols.h"
#include "wire/resync.h"

#define SEGMENTS   8  /* with data, until a connection is given up or the ports decide */
#define PATIENCE   64 /* … on a port that is CA's or PVA's, or with what may be a long message */

static int ours(uint16_t port)
{
    unsigned p = (unsigned)(port >> 8 | (port & 0xff) << 8);

    return p == 5064 || p == 5075;
}

/* The side that is the server, if the ports alone say so. */
static int byPort(const ebpfMonCircuitKey *key)
{
    const uint8_t *p0 = (const uint8_t *)&key->port[0], *p1 = (const uint8_t *)&key->port[1];

    if (ours(key->port[0]) != ours(key->port[1]))
        return ours(key->port[1]);
    return (p0[0] << 8 | p0[1]) > (p1[0] << 8 | p1[1]);
}

typedef struct {
    int score;  /* 0: it is not */
    int server;
    const ebpfMonProtocol *protocol;
    ebpfMonResyncResult result[2];
    size_t offset[2];
} guess;

static void rateGuess(const ebpfMonCircuit *c, const size_t segAt[2], guess *g)
{
    int trusted = ours(c->key.port[0]) || ours(c->key.port[1]);

    g->score = 0;
    for (int side = 0; side < 2; side++) {
        const ebpfMonAssembly *a = &c->assembly[side];

        g->offset[side] = 0;
        g->result[side] = ebpfMonResyncNone;
        if (!a->have)
            continue;
        g->result[side] = ebpfMonResync(g->protocol, side == g->server, a, segAt[side], trusted, &g->offset[side]);
        if (g->result[side] == ebpfMonResyncFound)
            g->score += g->offset[side] == 0 ? 4 : 3;
        else if (g->result[side] == ebpfMonResyncNone && a->have >= g->protocol->headerMax)
            g->score -= 1;
    }
}

/* -1, or the side whose bytes have to be read again, because the guess was wrong. */
static int openCircuit(ebpfMonCircuit *c, const guess *g, int guessed, uint64_t time)
{
    if (!ebpfMonCircuitOpened(c, g->protocol, g->server, time)) {
        ebpfMonCircuitStats(c)->noMemory++;
        ebpfMonCircuitDisown(c, time);
        return -1;
    }
    c->guessed = guessed;
    for (int i = 0; i < 2; i++) { /* requests before replies */
        int side = i ? g->server : !g->server;

        if (c->phase == ebpfMonCircuitOpen && g->result[side] == ebpfMonResyncFound)
            ebpfMonMessagesBegin(c, side, g->offset[side], time);
        if (c->phase == ebpfMonCircuitNew)
            return side;
    }
    return -1;
}

typedef struct {
    guess  best;
    int    tie;      /* another one is as good */
    int    perhaps;  /* a message of some protocol may have begun on this side */
    size_t need;     /* bytes of its buffer before this one are no message's */
} verdict;

/* Nonzero: the ports say which side is the server. */
static int portsTell(const ebpfMonCircuit *c)
{
    return ours(c->key.port[0]) != ours(c->key.port[1]);
}

/* "newAt": where in the buffer of "side" the bytes begin that came last. */
static verdict judge(const ebpfMonCircuit *c, int side, size_t newAt)
{
    verdict v = { .need = SIZE_MAX };
    size_t segAt[2] = { SIZE_MAX, SIZE_MAX };
    guess g;

    segAt[side] = newAt;
    for (unsigned i = 0; i < ebpfMonProtocolCount; i++) {
        for (int server = 0; server < 2; server++) {
            if (c->server >= 0 && server != c->server)
                continue; /* the handshake was seen */
            g.protocol = ebpfMonProtocols[i];
            g.server = server;
            rateGuess(c, segAt, &g);
            if (g.result[side] != ebpfMonResyncNone && g.offset[side] < v.need)
                v.need = g.offset[side];
            v.perhaps |= g.result[side] == ebpfMonResyncPerhaps;
            if (c->server < 0 && portsTell(c) && c->segments < SEGMENTS && server != byPort(&c->key))
                continue; /* a server elsewhere needs more to be believed than a header that could be either's */
            v.tie = g.score > 0 && g.score == v.best.score ? 1 : g.score > v.best.score ? 0 : v.tie;
            if (g.score > v.best.score || (v.tie && g.score == v.best.score && g.server == byPort(&c->key)))
                v.best = g;
        }
    }
    return v;
}

/* -1, or the side whose bytes have to be looked at anew. */
static int detect(ebpfMonCircuit *c, int side, size_t newAt, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    verdict v = judge(c, side, newAt);
    size_t need = v.need < a->have ? v.need : a->have, retain = EBPFMON_RETAIN;

    if (v.best.score > 0 && (!v.tie || portsTell(c) || c->segments >= SEGMENTS))
        return openCircuit(c, &v.best, c->server < 0, time);
    if (c->segments >= (portsTell(c) || v.perhaps ? PATIENCE : SEGMENTS)) {
        ebpfMonCircuitDisown(c, time);
        return -1;
    }
    if (v.best.score > 0) { /* waits for a message that shows the roles */
        need = 0;
        retain = ebpfMonCircuitLimits(c)->keep;
    }
    if (a->have - need > retain)
        need = a->have - retain;
    ebpfMonAssemblyForget(a, need, newAt);
    return -1;
}

void ebpfMonDetectBytes(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    size_t newAt = 0;

    if (c->phase == ebpfMonCircuitNew) {
        newAt = c->assembly[side].have;
        ebpfMonMessagesWait(c, side, seq, p, n);
    } else if (c->phase == ebpfMonCircuitOpen) {
        ebpfMonMessagesBytes(c, side, seq, p, n, time);
    }
    if (c->phase != ebpfMonCircuitNew)
        return;
    /* Each wrong guess took a message: this ends. */
    for (; side >= 0 && c->assembly[side].have; newAt = 0)
        side = detect(c, side, newAt, time);
}

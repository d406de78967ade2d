/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/detect.h"
#include "wire/messages.h"
#include "wire/protocols.h"
#include "wire/resync.h"

#define SEGMENTS   8  /* segments with data after which a connection is given up, or the ports decide */
#define PATIENCE   64 /* the same on a port of CA or PVA, or if a long message may have begun */

static int isOurPort(uint16_t port)
{
    unsigned p = (unsigned)(port >> 8 | (port & 0xff) << 8);

    return p == 5064 || p == 5075;
}

/* Returns the number of the server's side, as the ports suggest it. */
static int findServerByPort(const ebpfMonCircuitKey *key)
{
    const uint8_t *p0 = (const uint8_t *)&key->port[0], *p1 = (const uint8_t *)&key->port[1];

    if (isOurPort(key->port[0]) != isOurPort(key->port[1]))
        return isOurPort(key->port[1]);
    return (p0[0] << 8 | p0[1]) > (p1[0] << 8 | p1[1]);
}

typedef struct {
    int score;  /* 0 or less: nothing supports this guess */
    int server;
    const ebpfMonProtocol *protocol;
    ebpfMonResyncResult result[2];
    size_t offset[2];
} guess;

static void rateGuess(const ebpfMonCircuit *c, const size_t segAt[2], guess *g)
{
    int trusted = isOurPort(c->key.port[0]) || isOurPort(c->key.port[1]);

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

/* Opens the circuit. Returns -1; or the side whose bytes must be read again, because the guess was wrong. */
static int openCircuit(ebpfMonCircuit *c, const guess *g, int guessed, uint64_t time)
{
    if (!ebpfMonCircuitOpened(c, g->protocol, g->server, time)) {
        ebpfMonCircuitStats(c)->noMemory++;
        ebpfMonCircuitDisown(c, time);
        return -1;
    }
    c->guessed = guessed;
    for (int i = 0; i < 2; i++) { /* requests come before replies */
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
    int    tie;      /* nonzero: another guess is as good */
    int    perhaps;  /* nonzero: a message of some protocol may have begun on this side */
    size_t need;     /* bytes of its buffer before this place belong to no message */
} verdict;

/* Nonzero: the ports tell which side is the server. */
static int portsTell(const ebpfMonCircuit *c)
{
    return isOurPort(c->key.port[0]) != isOurPort(c->key.port[1]);
}

/* Rates all guesses. "newAt": where in the buffer of "side" the newest bytes begin. */
static verdict rateGuesses(const ebpfMonCircuit *c, int side, size_t newAt)
{
    verdict v = { .need = SIZE_MAX };
    size_t segAt[2] = { SIZE_MAX, SIZE_MAX };
    guess g;

    segAt[side] = newAt;
    for (unsigned i = 0; i < ebpfMonProtocolCount; i++) {
        for (int server = 0; server < 2; server++) {
            if (c->server >= 0 && server != c->server)
                continue; /* the handshake showed the server */
            g.protocol = ebpfMonProtocols[i];
            g.server = server;
            rateGuess(c, segAt, &g);
            if (g.result[side] != ebpfMonResyncNone && g.offset[side] < v.need)
                v.need = g.offset[side];
            v.perhaps |= g.result[side] == ebpfMonResyncPerhaps;
            if (c->server < 0 && portsTell(c) && c->segments < SEGMENTS && server != findServerByPort(&c->key))
                continue; /* the ports name the other side: a header that both sides could send is not enough */
            v.tie = g.score > 0 && g.score == v.best.score ? 1 : g.score > v.best.score ? 0 : v.tie;
            if (g.score > v.best.score || (v.tie && g.score == v.best.score && g.server == findServerByPort(&c->key)))
                v.best = g;
        }
    }
    return v;
}

/* Tries to open the circuit. Returns -1; or the side whose bytes must be tried again. */
static int tryOpen(ebpfMonCircuit *c, int side, size_t newAt, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    verdict v = rateGuesses(c, side, newAt);
    size_t need = v.need < a->have ? v.need : a->have, retain = EBPFMON_RETAIN;

    if (v.best.score > 0 && (!v.tie || portsTell(c) || c->segments >= SEGMENTS))
        return openCircuit(c, &v.best, c->server < 0, time);
    if (c->segments >= (portsTell(c) || v.perhaps ? PATIENCE : SEGMENTS)) {
        ebpfMonCircuitDisown(c, time);
        return -1;
    }
    if (v.best.score > 0) { /* keep them until a message shows which side is the server */
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
    /* each wrong guess used up a message, so this loop ends */
    for (; side >= 0 && c->assembly[side].have; newAt = 0)
        side = tryOpen(c, side, newAt, time);
}

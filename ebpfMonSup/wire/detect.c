/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where messages begin in bytes that were met in the middle, and whose they are. One header proves little, two that
 * follow each other much; a header where a segment begins lies between.
 */
#include "wire/circuit.h"

#define ENOUGH     16 /* headers in a row: no need to look further */
#define SEGMENTS   8  /* with data, until a connection is given up or the ports decide */
#define PATIENCE   64 /* … on a port that is CA's or PVA's, or with what may be a long message */

/* How many messages follow each other from p on. -1: something that is none. "rest": bytes behind the last, -1: it
 * goes on behind what is here. */
static int chain(const ebpfMonProtocol *protocol, int fromServer, const uint8_t *p, size_t n, long *rest)
{
    int messages = 0;

    *rest = 0;
    while (n && messages < ENOUGH) {
        ebpfMonFrame f = { 0 };
        int r = protocol->frame(NULL, fromServer, p, n, &f);

        if (r < 0 || (r > 0 && f.total == 0))
            return -1;
        if (r == 0) {
            *rest = (long)n;
            break;
        }
        messages++;
        if (f.total > n) {
            *rest = -1;
            break;
        }
        p += f.total;
        n -= f.total;
    }
    return messages;
}

ebpfMonSearchResult ebpfMonSearch(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *a,
    size_t segAt, int trusted, size_t *offset)
{
    ebpfMonSearchResult best = ebpfMonSearchNone;
    int enough = trusted ? 2 : 3;

    for (size_t o = 0; o < a->have; o++) {
        int atStart = o == segAt || (o == 0 && a->atStart), found;
        long rest;
        int messages = chain(protocol, fromServer, a->buf + o, a->have - o, &rest);

        if (messages < 0)
            continue;
        found = messages >= enough
            || (messages && o == 0 && a->fresh)
            || (messages && atStart && (rest == 0 || trusted));
        if (found) {
            *offset = o;
            return ebpfMonSearchFound;
        }
        if (best == ebpfMonSearchNone) {
            best = ebpfMonSearchPerhaps;
            *offset = o;
        }
    }
    if (best == ebpfMonSearchNone)
        *offset = a->have;
    return best;
}

static int ours(uint16_t port)
{
    unsigned p = (unsigned)(port >> 8 | (port & 0xff) << 8);

    return p == 5064 || p == 5075;
}

/* Which side is the server if the ports alone tell. */
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
    ebpfMonSearchResult result[2];
    size_t offset[2];
} guess;

static void look(ebpfMonCircuit *c, const size_t segAt[2], guess *g)
{
    int trusted = ours(c->key.port[0]) || ours(c->key.port[1]);

    g->score = 0;
    for (int side = 0; side < 2; side++) {
        const ebpfMonAssembly *a = &c->assembly[side];

        g->offset[side] = 0;
        g->result[side] = ebpfMonSearchNone;
        if (!a->have)
            continue;
        g->result[side] = ebpfMonSearch(g->protocol, side == g->server, a, segAt[side], trusted, &g->offset[side]);
        if (g->result[side] == ebpfMonSearchFound)
            g->score += g->offset[side] == 0 ? 4 : 3;
        else if (g->result[side] == ebpfMonSearchNone && a->have >= g->protocol->headerMax)
            g->score -= 1;
    }
}

static void open(ebpfMonCircuit *c, const guess *g, int guessed, uint64_t time)
{
    if (!ebpfMonCircuitOpened(c, g->protocol, g->server, time)) {
        ebpfMonCircuitStats(c)->noMemory++;
        ebpfMonCircuitDisown(c, time);
        return;
    }
    c->guessed = guessed;
    for (int i = 0; i < 2; i++) { /* requests before replies */
        int side = i ? g->server : !g->server;

        if (c->phase == ebpfMonCircuitOpen && g->result[side] == ebpfMonSearchFound)
            ebpfMonAssemblyBegin(c, side, g->offset[side], time);
    }
}

void ebpfMonDetect(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    size_t segAt[2] = { SIZE_MAX, SIZE_MAX }, need = SIZE_MAX, retain;
    guess best = { 0 }, g;
    int tie = 0, perhaps = 0;
    int known = ours(c->key.port[0]) != ours(c->key.port[1]);

    c->segments++;
    segAt[side] = a->have;
    if (!a->have) {
        a->seq = seq;
        a->atStart = 1;
    }
    if (!ebpfMonAssemblyKeep(c, a, p, n)) {
        ebpfMonCircuitStats(c)->noMemory++;
        ebpfMonAssemblyClear(c, a);
        a->fresh = 0;
        return;
    }
    for (unsigned i = 0; i < ebpfMonProtocolCount; i++) {
        for (int server = 0; server < 2; server++) {
            if (c->server >= 0 && server != c->server)
                continue; /* the handshake was seen */
            g.protocol = ebpfMonProtocols[i];
            g.server = server;
            look(c, segAt, &g);
            if (g.result[side] != ebpfMonSearchNone && g.offset[side] < need)
                need = g.offset[side];
            perhaps |= g.result[side] == ebpfMonSearchPerhaps;
            if (c->server < 0 && known && c->segments < SEGMENTS && server != byPort(&c->key))
                continue; /* a server elsewhere needs more to be believed than a header that could be either's */
            tie = g.score > 0 && g.score == best.score ? 1 : g.score > best.score ? 0 : tie;
            if (g.score > best.score || (tie && g.score == best.score && g.server == byPort(&c->key)))
                best = g;
        }
    }
    if (best.score > 0 && (!tie || known || c->segments >= SEGMENTS)) {
        open(c, &best, c->server < 0, time);
        return;
    }
    if (c->segments >= (known || perhaps ? PATIENCE : SEGMENTS)) {
        ebpfMonCircuitDisown(c, time);
        return;
    }
    if (best.score > 0) /* waits for what tells the roles */
        need = 0;
    else if (need > a->have)
        need = a->have;
    retain = best.score > 0 ? ebpfMonCircuitLimits(c)->keep : EBPFMON_RETAIN;
    if (a->have - need > retain)
        need = a->have - retain;
    ebpfMonAssemblyForget(a, need, segAt[side]);
}

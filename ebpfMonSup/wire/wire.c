/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "wire/circuit.h"
#include "wire/stream.h"
#include "wire/wire.h"

/* --- where messages begin ---
 *
 * Finds where messages begin in a stream that began before we watched. One header proves little, two that follow each
 * other prove much. A header at the begin of a segment is between both. */

#define EBPFMON_RETAIN 2048 /* bytes that are kept while a message is searched for: limits how much is searched twice */

typedef enum { ebpfMonResyncNone, ebpfMonResyncPerhaps, ebpfMonResyncFound } ebpfMonResyncResult;

#define ENOUGH 16 /* after so many headers in a row there is no need to look further */

/* Counts the messages that follow each other from "p" on. -1: something is no message. *rest: bytes after the last
 * message; -1: the last message is not complete. */
static int countMessages(const ebpfMonProtocol *protocol, int fromServer, const uint8_t *p, size_t n, long *rest)
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

/* Finds where in the buffer a message begins: *offset. For Perhaps and None, *offset is the begin of the bytes that are
 * still needed. "segAt": where the last segment begins. "trusted": nonzero if the protocol is known, or likely. */
static ebpfMonResyncResult findBegin(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *a,
                                     size_t segAt, int trusted, size_t *offset)
{
    ebpfMonResyncResult best = ebpfMonResyncNone;
    int enough = trusted ? 2 : 3;

    for (size_t o = 0; o < a->have; o++) {
        int atStart = o == segAt || (o == 0 && a->atStart), found;
        long rest;
        int messages = countMessages(protocol, fromServer, a->buf + o, a->have - o, &rest);

        if (messages < 0)
            continue;
        found = messages >= enough
            || (messages && o == 0 && a->fresh)
            || (messages && atStart && (rest == 0 || trusted));
        if (found) {
            *offset = o;
            return ebpfMonResyncFound;
        }
        if (best == ebpfMonResyncNone) {
            best = ebpfMonResyncPerhaps;
            *offset = o;
        }
    }
    if (best == ebpfMonResyncNone)
        *offset = a->have;
    return best;
}

/* --- messages ---
 *
 * Makes messages from the bytes of one direction of a circuit, for its protocol. A message in one piece is passed on
 * where it is. Only a message in several pieces is copied, up to limits.keep bytes; the hash includes the rest. */

#define TRIES_MAX 64   /* after so many segments without a header, a connection with few messages is taken as foreign */
#define FEW       8

static int isFromServer(const ebpfMonCircuit *c, int side)
{
    return side == c->server;
}

static void deliverMessage(ebpfMonCircuit *c, const ebpfMonMessage *m)
{
    c->messages++;
    c->protocol->message(c->state, m);
}

/* Passes on the message in the buffer, as far as it was seen. */
static void deliverKept(ebpfMonCircuit *c, int side, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    ebpfMonMessage m = { a->buf, a->have, a->total, a->holed ? 0 : a->hash, time, a->seq, isFromServer(c, side) };

    if (a->have)
        deliverMessage(c, &m);
    ebpfMonAssemblyClear(&c->wire->account, a);
}

static int isFrameValid(const ebpfMonFrame *f)
{
    return f->total > 0 && f->hashFrom <= f->total && f->hashTo <= f->total;
}

/* Takes bytes of a new circuit: they wait in the buffer until its protocol is known. Without memory the buffer is empty
 * afterwards. */
static void keepBytes(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n)
{
    ebpfMonAssembly *a = &c->assembly[side];

    c->segments += (unsigned)ebpfMonAssemblyCounts(a, n);
    if (!a->have) {
        a->seq = seq;
        a->atStart = 1;
    }
    if (ebpfMonAssemblyKeep(&c->wire->account, a, p, n))
        return;
    c->wire->account.stats.noMemory++;
    ebpfMonAssemblyClear(&c->wire->account, a);
    a->fresh = 0;
}

static void searchHeader(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, int atStart,
    uint64_t time);

/* The next bytes are no message of this protocol. The buffer has the bytes before "p". */
static void loseStep(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    ebpfMonWireEvent lost = { .kind = ebpfMonWireUnread, .time = time, .fromServer = isFromServer(c, side) };
    ebpfMonFrame f = { 0 };

    ebpfMonCircuitStats(c)->malformed++;
    if (c->guessed && c->protocol->frame(NULL, !isFromServer(c, side), p, n, &f) > 0) {
        ebpfMonCircuitAgain(c, time);
        keepBytes(c, side, seq, p, n);
        return;
    }
    a->synced = 0;
    a->tries = 0;
    ebpfMonCircuitStats(c)->gaps += !c->guessed || c->messages >= FEW; /* else it may be no circuit of ours */
    ebpfMonCircuitEmit(c, &lost);
    searchHeader(c, side, seq, p, n, 0, time);
}

/* Finds the message at "p". If we did not see the begin of a circuit, its first messages must be beyond doubt, because
 * it may be something else. */
static int findFrame(ebpfMonCircuit *c, int side, const uint8_t *p, size_t n, ebpfMonFrame *f)
{
    void *state = c->guessed && c->messages < FEW ? NULL : c->state;

    return c->protocol->frame(state, isFromServer(c, side), p, n, f);
}

/* This function is longer than others: it is one loop over the three states of a message (at its header, in pieces of
 * its header, within the message), which share all variables. */
static void readMessages(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    size_t keep = ebpfMonCircuitLimits(c)->keep;

    while (n) {
        ebpfMonFrame f = { 0 };
        size_t take = 1;

        if (!a->total && !a->have) { /* a message begins here */
            int r = findFrame(c, side, p, n, &f);

            if (r < 0 || (r > 0 && !isFrameValid(&f))) {
                loseStep(c, side, seq, p, n, time);
                return;
            }
            if (r > 0 && f.total <= n && f.total <= keep) { /* it is complete: no copy */
                ebpfMonMessage m = { p, f.total, f.total, ebpfMonAssemblyHashWhole(p, &f), time, seq,
                    isFromServer(c, side) };

                deliverMessage(c, &m);
                seq += (uint32_t)f.total;
                p += f.total;
                n -= f.total;
                continue;
            }
            a->seq = seq;
            if (r > 0)
                ebpfMonAssemblyFramed(a, &f);
        }
        if (!a->total) { /* the header comes in pieces */
            int r;

            if (!ebpfMonAssemblyKeep(&c->wire->account, a, p, 1)) {
                ebpfMonCircuitStats(c)->noMemory++;
                loseStep(c, side, seq, p, n, time);
                return;
            }
            r = findFrame(c, side, a->buf, a->have, &f);
            if (r < 0 || (r > 0 && (!isFrameValid(&f) || f.total < a->have))
                || (r == 0 && a->have >= c->protocol->headerMax)) {
                loseStep(c, side, seq + 1, p + 1, n - 1, time);
                return;
            }
            if (r > 0)
                ebpfMonAssemblyFramed(a, &f);
        } else { /* these bytes are within a message */
            size_t room = a->have < keep ? keep - a->have : 0;

            take = n < a->total - a->done ? n : a->total - a->done;
            ebpfMonAssemblyHash(a, p, take);
            /* after a hole no byte is at its place */
            if (!a->holed && a->have == a->done && room
                && !ebpfMonAssemblyKeep(&c->wire->account, a, p, take < room ? take : room)) {
                ebpfMonCircuitStats(c)->noMemory++;
                a->holed = 1;
            }
            a->done += take;
        }
        a->time = time;
        seq += (uint32_t)take;
        p += take;
        n -= take;
        if (a->total && a->done == a->total)
            deliverKept(c, side, time);
    }
}

/* Begins with the bytes in the buffer, when the protocol is known and a header was found at "offset". */
static void beginMessages(ebpfMonCircuit *c, int side, size_t offset, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    uint8_t *buf = a->buf;
    size_t have = a->have, room = a->room;
    uint32_t seq = a->seq;

    c->wire->account.stats.waiting -= buf != NULL;
    a->buf = NULL;
    ebpfMonAssemblyClear(&c->wire->account, a);
    a->synced = 1;
    if (a->met || !a->fresh || offset) {
        ebpfMonCircuitStats(c)->resynced++;
        a->stretch++;
    }
    a->skipped += offset;
    if (a->met) {
        if (a->skipped) {
            ebpfMonWireEvent e = { .kind = ebpfMonWireGap, .time = time, .seq = seq + (uint32_t)offset,
                .end = seq + (uint32_t)offset, .fromServer = isFromServer(c, side), .bytes = a->skipped };

            ebpfMonCircuitStats(c)->gapBytes += a->skipped;
            ebpfMonCircuitEmit(c, &e);
        }
        c->protocol->gap(c->state, isFromServer(c, side));
    }
    a->met = 1;
    a->fresh = 0;
    a->skipped = 0;
    a->tries = 0;
    readMessages(c, side, seq + (uint32_t)offset, buf + offset, have - offset, time);
    ebpfMonMemoryAccountFree(&c->wire->account, buf, room);
}

/* Searches for a header of the protocol. */
static void searchHeader(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, int atStart,
    uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];
    size_t segAt = a->have, offset;

    if (!a->have) {
        a->seq = seq;
        a->atStart = atStart;
    }
    if (n && !ebpfMonAssemblyKeep(&c->wire->account, a, p, n)) {
        ebpfMonCircuitStats(c)->noMemory++;
        a->skipped += a->have + n;
        ebpfMonAssemblyClear(&c->wire->account, a);
        return;
    }
    if (!a->have)
        return;
    if (findBegin(c->protocol, isFromServer(c, side), a, segAt, 1, &offset) == ebpfMonResyncFound) {
        beginMessages(c, side, offset, time);
        return;
    }
    if (a->have - offset > EBPFMON_RETAIN)
        offset = a->have - EBPFMON_RETAIN;
    ebpfMonAssemblyForget(a, offset, segAt);
    a->tries += (unsigned)ebpfMonAssemblyCounts(a, n);
    if (a->tries > TRIES_MAX && c->messages < FEW)
        ebpfMonCircuitDisown(c, time);
}

/* Nonzero: the handshake was seen, and all bytes from this side since then. */
static int isWhole(const ebpfMonCircuit *c, int side)
{
    return !c->guessed && c->assembly[side].fresh;
}

/*
 * Takes bytes of an open circuit. Afterwards it may be foreign; or new again, if its sides were guessed wrong. Then the
 * rest of the bytes waits as after keepBytes.
 */
static void takeBytes(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];

    if (isWhole(c, side)) {
        a->synced = a->met = 1;
        a->fresh = 0;
    }
    if (a->synced)
        readMessages(c, side, seq, p, n, time);
    else
        searchHeader(c, side, seq, p, n, 1, time);
}

/* For any circuit: "bytes" bytes will not come; those that come next are after them. */
static void skipLost(ebpfMonCircuit *c, int side, uint64_t bytes, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];

    if (c->phase == ebpfMonCircuitForeign)
        return;
    if (c->phase == ebpfMonCircuitNew) {
        ebpfMonAssemblyClear(&c->wire->account, a);
        a->fresh = 0;
        ebpfMonTlsLose(&c->tls[side]);
        return;
    }
    {
        uint32_t end = c->stream[side].next;
        ebpfMonWireEvent e = { .kind = ebpfMonWireGap, .time = time, .seq = end - (uint32_t)bytes, .end = end,
            .fromServer = isFromServer(c, side), .bytes = bytes };

        ebpfMonCircuitStats(c)->gaps++;
        ebpfMonCircuitStats(c)->gapBytes += bytes;
        ebpfMonCircuitEmit(c, &e);
    }
    if (a->synced && a->total) {
        a->holed = 1;
        if (bytes < a->total - a->done) { /* the message ends after the gap, so we know where the next one begins */
            a->done += (size_t)bytes;
            return;
        }
        bytes -= a->total - a->done;
        deliverKept(c, side, a->time); /* we gave up the gap later than that */
        if (!bytes)
            return;
    }
    ebpfMonAssemblyClear(&c->wire->account, a);
    a->synced = 0;
    a->fresh = 0;
    a->tries = 0;
}

/* --- which protocol ---
 *
 * Finds out from the bytes of a connection which protocol it has, and which side is the server. For the thread of the
 * wire. */

static const ebpfMonProtocol *const protocols[] = { &ebpfMonCaProtocol, &ebpfMonPvaProtocol };

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
        g->result[side] = findBegin(g->protocol, side == g->server, a, segAt[side], trusted, &g->offset[side]);
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
        int side = i ? g->server : !g->server, isFound = g->result[side] == ebpfMonResyncFound;

        /* what one end begins with shows the protocol of the other, whose first message may look odd */
        if (c->phase == ebpfMonCircuitOpen && (isFound || (isWhole(c, side) && c->assembly[side].have)))
            beginMessages(c, side, isFound ? g->offset[side] : 0, time);
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
    for (unsigned i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
        for (int server = 0; server < 2; server++) {
            if (c->server >= 0 && server != c->server)
                continue; /* the handshake showed the server */
            g.protocol = protocols[i];
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

/* Takes the next "n" bytes (at least 1) that "side" sent. "seq": TCP sequence number of the first one. */
static void detectProtocol(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    size_t newAt = 0;

    if (c->phase == ebpfMonCircuitNew) {
        newAt = c->assembly[side].have;
        keepBytes(c, side, seq, p, n);
        ebpfMonTlsAdd(c->tls, side, c->server, p, n);
    } else if (c->phase == ebpfMonCircuitOpen) {
        takeBytes(c, side, seq, p, n, time);
    }
    if (c->phase != ebpfMonCircuitNew)
        return;
    /* each wrong guess used up a message, so this loop ends */
    for (; side >= 0 && c->assembly[side].have; newAt = 0)
        side = tryOpen(c, side, newAt, time);
}

/* --- the wire --- */

#define SECOND        1000000000ull
#define SILENT_OTHER  (60 * SECOND)       /* a connection that is not known to be CA or PVA */
#define SILENT_HALF   (60 * SECOND)       /* one side has ended */
#define SILENT_OPEN   (3 * 3600 * SECOND) /* longer than TCP's keep-alive of two hours */

static const ebpfMonStreamSink handlers = { .bytes = detectProtocol, .lost = skipLost };

ebpfMonWire *ebpfMonWireNew(const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg)
{
    ebpfMonWire *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    ebpfMonMemoryAccountStart(&w->account, limits, sink, arg);
    for (w->buckets = 16; w->buckets < w->account.limits.circuits && w->buckets < 1u << 20;)
        w->buckets *= 2;
    w->byKey = calloc(w->buckets, sizeof *w->byKey);
    w->ended = ebpfMonEndedCircuitsNew();
    if (!w->byKey || !w->ended) {
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

const ebpfMonWireStats *ebpfMonWireStat(const ebpfMonWire *w)
{
    return &w->account.stats;
}

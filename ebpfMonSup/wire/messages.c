/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes messages from the bytes of one direction. A message in one piece is passed on where it is. Only a message in
 * several pieces is copied, up to limits.keep bytes; the hash includes the rest.
 */
#include "wire/messages.h"

/* --- where messages begin --- */

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

ebpfMonResyncResult ebpfMonResync(const ebpfMonProtocol *protocol, int fromServer, const ebpfMonAssembly *a,
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

/* --- messages --- */

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

void ebpfMonMessagesWait(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n)
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
        ebpfMonMessagesWait(c, side, seq, p, n);
        return;
    }
    a->synced = 0;
    a->tries = 0;
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

void ebpfMonMessagesBegin(ebpfMonCircuit *c, int side, size_t offset, uint64_t time)
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
    if (ebpfMonResync(c->protocol, isFromServer(c, side), a, segAt, 1, &offset) == ebpfMonResyncFound) {
        ebpfMonMessagesBegin(c, side, offset, time);
        return;
    }
    if (a->have - offset > EBPFMON_RETAIN)
        offset = a->have - EBPFMON_RETAIN;
    ebpfMonAssemblyForget(a, offset, segAt);
    a->tries += (unsigned)ebpfMonAssemblyCounts(a, n);
    if (a->tries > TRIES_MAX && c->messages < FEW)
        ebpfMonCircuitDisown(c, time);
}

void ebpfMonMessagesBytes(ebpfMonCircuit *c, int side, uint32_t seq, const uint8_t *p, size_t n, uint64_t time)
{
    if (c->assembly[side].synced)
        readMessages(c, side, seq, p, n, time);
    else
        searchHeader(c, side, seq, p, n, 1, time);
}

void ebpfMonMessagesLost(ebpfMonCircuit *c, int side, uint64_t bytes, uint64_t time)
{
    ebpfMonAssembly *a = &c->assembly[side];

    if (c->phase == ebpfMonCircuitForeign)
        return;
    if (c->phase == ebpfMonCircuitNew) {
        ebpfMonAssemblyClear(&c->wire->account, a);
        a->fresh = 0;
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

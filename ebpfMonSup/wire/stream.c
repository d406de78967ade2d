/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequence numbers wrap around, so only their differences count (RFC 9293, 3.4). A segment that is further away than
 * any window in use does not belong here: the receiver drops it. Several of them in a row mean that we missed much, if
 * the receiver acknowledges them.
 */
#include <string.h>
#include <stdlib.h>

#include "common/hash.h"
#include "wire/stream.h"

/* --- memory of all streams --- */

#define KEEP_MIN 256 /* bytes; room for any header, and a name */

void ebpfMonMemoryAccountStart(ebpfMonMemoryAccount *a, const ebpfMonWireLimits *limits, ebpfMonWireSink sink,
    void *arg)
{
    ebpfMonWireLimits *l = &a->limits;

    *a = (ebpfMonMemoryAccount){ .sink = sink, .arg = arg, .lossAt = UINT64_MAX };
    if (limits)
        *l = *limits;
    if (!l->circuits)
        l->circuits = 4096;
    if (!l->channels)
        l->channels = 20000;
    if (!l->keep)
        l->keep = 65536;
    if (l->keep < KEEP_MIN)
        l->keep = KEEP_MIN;
    if (!l->pending)
        l->pending = 1 << 20;
    if (!l->total)
        l->total = 64 << 20;
}

static void ignoreEvent(void *arg, const ebpfMonWireEvent *event)
{
}

void ebpfMonMemoryAccountMute(ebpfMonMemoryAccount *a)
{
    a->sink = ignoreEvent;
}

void *ebpfMonMemoryAccountAlloc(ebpfMonMemoryAccount *a, size_t size)
{
    void *p;

    if (size > a->limits.total || a->stats.memory > a->limits.total - size)
        return NULL;
    p = malloc(size);
    if (p)
        a->stats.memory += size;
    return p;
}

void ebpfMonMemoryAccountFree(ebpfMonMemoryAccount *a, void *p, size_t size)
{
    if (!p)
        return;
    a->stats.memory -= size;
    free(p);
}

void ebpfMonMemoryAccountEmit(ebpfMonMemoryAccount *a, ebpfMonWireEvent *e)
{
    const char **text[] = { &e->user, &e->host, &e->name, &e->options, &e->text, &e->message };

    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++)
        if (!*text[i])
            *text[i] = "";
    a->sink(a->arg, e);
}

/* --- bytes between segments and messages --- */

#define SHORT 16 /* bytes of a header of Channel Access, which is longer than that of pvAccess */

#define ROOM_MIN 256

void ebpfMonAssemblyClear(ebpfMonMemoryAccount *account, ebpfMonAssembly *a)
{
    account->stats.waiting -= a->buf != NULL;
    ebpfMonMemoryAccountFree(account, a->buf, a->room);
    a->buf = NULL;
    a->have = a->room = 0;
    a->total = a->done = 0;
    a->holed = 0;
}

int ebpfMonAssemblyKeep(ebpfMonMemoryAccount *account, ebpfMonAssembly *a, const uint8_t *p, size_t n)
{
    if (a->have + n > a->room) {
        size_t room = a->room ? a->room * 2 : ROOM_MIN;
        uint8_t *buf;

        if (room < a->have + n)
            room = a->have + n;
        buf = ebpfMonMemoryAccountAlloc(account, room);
        if (!buf)
            return 0;
        account->stats.waiting += !a->buf;
        if (a->buf)
            memcpy(buf, a->buf, a->have);
        ebpfMonMemoryAccountFree(account, a->buf, a->room);
        a->buf = buf;
        a->room = room;
    }
    memcpy(a->buf + a->have, p, n);
    a->have += n;
    return 1;
}

int ebpfMonAssemblyCounts(ebpfMonAssembly *a, size_t n)
{
    if (n < SHORT) {
        a->shortBytes += (unsigned)n;
        if (a->shortBytes < SHORT)
            return 0;
        a->shortBytes -= SHORT;
    }
    return 1;
}

void ebpfMonAssemblyForget(ebpfMonAssembly *a, size_t n, size_t segAt)
{
    if (!n)
        return;
    memmove(a->buf, a->buf + n, a->have - n);
    a->have -= n;
    a->seq += (uint32_t)n;
    a->skipped += n;
    a->atStart = n == segAt;
    a->fresh = 0;
}

/* The "n" bytes are at place "at" of a message. Adds those of them to the hash that are between "from" and "to". */
static void addToHash(uint64_t *hash, const uint8_t *p, size_t at, size_t n, size_t from, size_t to)
{
    if (!n)
        return;
    if (at < from) {
        size_t cut = from - at < n ? from - at : n;

        p += cut;
        n -= cut;
        at += cut;
    }
    if (at >= to)
        return;
    if (n > to - at)
        n = to - at;
    *hash = ebpfMonHashFnv64(*hash, p, n);
}

void ebpfMonAssemblyFramed(ebpfMonAssembly *a, const ebpfMonFrame *f)
{
    a->total = f->total;
    a->hashFrom = f->hashFrom;
    a->hashTo = f->hashTo ? f->hashTo : f->total;
    a->hash = EBPFMON_FNV64_BEGIN;
    a->done = a->have;
    addToHash(&a->hash, a->buf, 0, a->have, a->hashFrom, a->hashTo);
}

void ebpfMonAssemblyHash(ebpfMonAssembly *a, const uint8_t *p, size_t n)
{
    addToHash(&a->hash, p, a->done, n, a->hashFrom, a->hashTo);
}

uint64_t ebpfMonAssemblyHashWhole(const uint8_t *p, const ebpfMonFrame *f)
{
    size_t to = f->hashTo ? f->hashTo : f->total;

    return f->hashFrom < to ? ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, p + f->hashFrom, to - f->hashFrom) :
        EBPFMON_FNV64_BEGIN;
}

/* --- the stream --- */

#define WAIT_NS   1000000000ull /* a second: packets are reordered by far less, and bytes that were acknowledged are
                                 * not sent again */
#define AGAIN_NS  60000000000ull /* bytes that the network has lost are sent again after 0.2 s, 0.4 s, … (RFC 6298) */
#define OVERTAKE_NS 50000000ull /* packets overtake each other by far less */
#define FAR       (16 << 20)
#define FAR_MAX   4
#define CHUNK_MAX 1024u         /* segments that may wait: limits the search in the list */

static int32_t getDistance(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

static int isWithin(uint32_t a, uint32_t b)
{
    return getDistance(a, b) <= FAR && getDistance(a, b) >= -FAR;
}

void ebpfMonStreamInit(ebpfMonStream *s, ebpfMonMemoryAccount *account, const ebpfMonStreamSink *sink,
    ebpfMonCircuit *circuit, int side)
{
    *s = (ebpfMonStream){ .sink = sink, .circuit = circuit, .side = side, .account = account };
}

void ebpfMonStreamStart(ebpfMonStream *s, uint32_t isn)
{
    s->started = s->syn = 1;
    s->isn = isn;
    s->next = isn + 1;
}

void ebpfMonStreamResume(ebpfMonStream *s, const uint32_t *isn, uint32_t next)
{
    if (isn)
        ebpfMonStreamStart(s, *isn);
    s->started = 1;
    s->next = next;
}

static ebpfMonChunk *removeFirst(ebpfMonStream *s)
{
    ebpfMonChunk *chunk = s->head;

    s->head = chunk->next;
    if (!s->head)
        s->tail = NULL;
    s->chunks--;
    s->pending -= sizeof *chunk + chunk->have;
    return chunk;
}

static void freeChunk(ebpfMonStream *s, ebpfMonChunk *chunk)
{
    s->account->stats.waiting--;
    ebpfMonMemoryAccountFree(s->account, chunk, sizeof *chunk + chunk->have);
}

void ebpfMonStreamClear(ebpfMonStream *s)
{
    while (s->head)
        freeChunk(s, removeFirst(s));
    s->acked = 0;
}

/* Passes on the next bytes, which begin at s->next. */
static void deliverNext(ebpfMonStream *s, const uint8_t *p, size_t have, size_t wire, uint64_t time)
{
    uint32_t seq = s->next;

    s->next += (uint32_t)wire;
    s->lastAt = time;
    if (have)
        s->sink->bytes(s->circuit, s->side, seq, p, have, time);
    if (wire > have)
        s->sink->lost(s->circuit, s->side, wire - have, time);
    if (s->acked && getDistance(s->next, s->ackTo) >= 0)
        s->acked = 0;
}

/* Passes on the segments that wait for nothing any more. */
static void deliverChunks(ebpfMonStream *s, uint64_t now)
{
    while (s->head) {
        int32_t ahead = getDistance(s->head->seq, s->next);
        ebpfMonChunk *chunk;

        if (ahead > 0)
            break;
        chunk = removeFirst(s);
        if ((uint32_t)-ahead < chunk->wire) {
            uint32_t cut = (uint32_t)-ahead, gone = cut < chunk->have ? cut : chunk->have;

            deliverNext(s, chunk->data + gone, chunk->have - gone, chunk->wire - cut, chunk->time);
        }
        freeChunk(s, chunk);
    }
    s->since = now;
}

static void skipGap(ebpfMonStream *s, uint64_t now)
{
    uint32_t to = s->head ? s->head->seq : s->ackTo, n = to - s->next;

    s->next = to;
    if (s->acked && getDistance(s->next, s->ackTo) >= 0)
        s->acked = 0;
    s->sink->lost(s->circuit, s->side, n, now);
    deliverChunks(s, now);
}

/* Adds a piece after "prev" (NULL: as the first one). It must not overlap with others. */
static ebpfMonChunk *insertChunk(ebpfMonStream *s, ebpfMonChunk *prev, uint32_t seq, const uint8_t *p, size_t have,
    size_t wire, uint64_t time)
{
    ebpfMonChunk *chunk = ebpfMonMemoryAccountAlloc(s->account, sizeof *chunk + have);

    if (!chunk) {
        s->account->stats.noMemory++;
        return NULL;
    }
    s->account->stats.waiting++;
    chunk->seq = seq;
    chunk->wire = (uint32_t)wire;
    chunk->have = (uint32_t)have;
    chunk->time = time;
    if (have)
        memcpy(chunk->data, p, have);
    chunk->next = prev ? prev->next : s->head;
    if (prev)
        prev->next = chunk;
    else
        s->head = chunk;
    if (!chunk->next)
        s->tail = chunk;
    s->chunks++;
    s->pending += sizeof *chunk + have;
    return chunk;
}

/* Adds the new bytes of a segment to the list: the first copy of a byte counts. */
static void keepChunk(ebpfMonStream *s, uint32_t seq, const uint8_t *p, size_t have, size_t wire, uint64_t time)
{
    ebpfMonChunk *prev = NULL;

    if (s->tail && getDistance(seq, s->tail->seq + s->tail->wire) >= 0) {
        insertChunk(s, s->tail, seq, p, have, wire, time); /* the usual case: more bytes after the same hole */
        return;
    }
    for (ebpfMonChunk *chunk = s->head; wire; chunk = chunk->next) {
        size_t room = chunk ? (size_t)(getDistance(chunk->seq, seq) > 0 ? getDistance(chunk->seq, seq) : 0) : wire, cut;

        if (room) { /* the part before this piece */
            size_t n = wire < room ? wire : room, here = have < n ? have : n;

            prev = insertChunk(s, prev, seq, p, here, n, time);
            if (!prev)
                return;
            seq += (uint32_t)n;
            p += here;
            have -= here;
            wire -= n;
        }
        if (!chunk)
            return;
        if (getDistance(chunk->seq + chunk->wire, seq) > 0) { /* the part that we have already */
            cut = (size_t)getDistance(chunk->seq + chunk->wire, seq);
            if (cut > wire)
                cut = wire;
            seq += (uint32_t)cut;
            p += cut < have ? cut : have;
            have -= cut < have ? cut : have;
            wire -= cut;
        }
        prev = chunk;
    }
}

void ebpfMonStreamSegment(ebpfMonStream *s, const ebpfMonSegment *segment, uint64_t time)
{
    const uint8_t *p = segment->data;
    size_t have = segment->have, wire = segment->wire;
    uint32_t seq = segment->seq + !!(segment->flags & EBPFMON_TCP_SYN);
    int32_t ahead;

    if (!wire)
        return;
    if (!s->started) {
        s->started = 1;
        s->next = s->begun = seq;
        s->sureFrom = time + OVERTAKE_NS;
    }
    ahead = getDistance(seq, s->next);
    if (!isWithin(seq, s->next)) {
        if (!s->ackedFar || !isWithin(seq, s->peerAck) || ++s->far < FAR_MAX)
            return;
        s->ackedFar = 0;
        s->syn = 0; /* perhaps not of this connection */
        ebpfMonStreamClear(s);
        s->next = seq;
        s->fin = 0;
        s->sink->lost(s->circuit, s->side, ahead > 0 ? (uint64_t)ahead : 0, time);
        ahead = 0;
    }
    s->far = 0;
    if (ahead < 0) { /* it was sent again, or is a keep-alive */
        size_t cut = (size_t)-(int64_t)ahead;

        if (cut >= wire) {
            s->account->stats.repeated++;
            return;
        }
        p += cut < have ? cut : have;
        have -= cut < have ? cut : have;
        wire -= cut;
        seq = s->next;
        ahead = 0;
    }
    if (ahead == 0) {
        deliverNext(s, p, have, wire, time);
        deliverChunks(s, time);
        return;
    }
    s->account->stats.reordered++;
    if (!s->head)
        s->since = time;
    keepChunk(s, seq, p, have, wire, time);
    while (s->head && (s->pending > s->account->limits.pending || s->chunks > CHUNK_MAX))
        skipGap(s, time);
}

void ebpfMonStreamAck(ebpfMonStream *s, uint32_t ack, uint64_t time)
{
    int32_t ahead;

    if (s->fin && getDistance(ack, s->finSeq) > 0)
        ack = s->finSeq; /* the FIN is no byte */
    ahead = getDistance(ack, s->next);
    if (!s->started)
        return;
    s->peerAck = ack;
    s->ackedFar = !isWithin(ack, s->next);
    if (ahead <= 0 || ahead > FAR)
        return;
    if (!s->acked)
        s->ackSince = time;
    else if (getDistance(ack, s->ackTo) <= 0)
        return;
    s->acked = 1;
    s->ackTo = ack;
}

/* How long bytes may be missing, ns. We get all packets of a connection whose begin we saw, or that we have followed
 * for a while: what is missing then was not overtaken by the first packet that we saw. So if none of our packets was
 * lost, the network has lost the bytes, and they will be sent again; unless the other side has acknowledged them: then
 * they came by another way. */
static uint64_t findPatience(const ebpfMonStream *s)
{
    return s->since >= s->sureFrom && !s->acked && s->account->lossAt <= s->lastAt ? AGAIN_NS : WAIT_NS;
}

void ebpfMonStreamTick(ebpfMonStream *s, uint64_t time)
{
    int all = time == UINT64_MAX;

    for (;;) {
        if (s->head && (all || (time > s->since && time - s->since > findPatience(s))))
            skipGap(s, all ? s->head->time : time);
        else if (s->acked && !s->head && (all || (time > s->ackSince && time - s->ackSince > WAIT_NS)))
            skipGap(s, all ? s->ackSince : time);
        else
            break;
    }
}

int ebpfMonStreamIsNear(const ebpfMonStream *s, uint32_t seq)
{
    return !s->started || isWithin(seq, s->next);
}

int ebpfMonStreamIsReset(const ebpfMonStream *s, uint32_t seq)
{
    return !s->started || seq == s->next || seq == s->peerAck;
}

int ebpfMonStreamEnded(const ebpfMonStream *s)
{
    return s->fin && s->started && getDistance(s->next, s->finSeq) >= 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "put/translated.h"

#define NOTES   1024
#define PLACES  1024 /* of connections, in each table; a power of two */
#define WAYS    8
#define SAME_NS (2 * EBPFMON_SECOND_NS) /* from the packet outside to that inside: microseconds */

/* A message to a server elsewhere. */
typedef struct {
    struct ebpfMonPeer  peer;
    struct ebpfMonFirst first;
    uint64_t at;   /* monotonic ns; 0: none */
    uint64_t hash; /* of its value */
    uint32_t seq, end, name;
    ebpfMonWireProtocol protocol;
    int      isPut;
} message;

typedef struct {
    struct ebpfMonPeer key, other;
    uint64_t serial; /* the newest has the highest; 0: the place is free */
} connection;

struct ebpfMonTranslated {
    message    note[NOTES]; /* the newest is before "next" */
    unsigned   next;
    connection byInner[PLACES], byOuter[PLACES];
    uint64_t   serial;
};

ebpfMonTranslated *ebpfMonTranslatedNew(void)
{
    return calloc(1, sizeof(ebpfMonTranslated));
}

void ebpfMonTranslatedFree(ebpfMonTranslated *t)
{
    free(t);
}

static message makeMessage(const ebpfMonWireEvent *ev, uint64_t at)
{
    message m = { .peer = ev->peer, .first = ev->first, .at = at, .protocol = ev->protocol };

    m.isPut = ev->kind == ebpfMonWirePut;
    if (m.isPut) {
        m.hash = ev->hash;
        m.seq = ev->seq;
        m.end = ev->end;
        m.name = (uint32_t)ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, ev->name, strlen(ev->name));
    }
    return m;
}

static int isFirstKnown(const struct ebpfMonFirst *first)
{
    return first->seq[0] || first->seq[1];
}

/* One that begins has nothing but its first sequence numbers. */
static int isSameMessage(const message *a, const message *b)
{
    if (isFirstKnown(&a->first) && isFirstKnown(&b->first) && !ebpfMonFirstIsSame(&a->first, &b->first))
        return 0;
    if (!a->isPut)
        return !b->isPut && isFirstKnown(&a->first) && isFirstKnown(&b->first) && a->protocol == b->protocol;
    return b->isPut && a->seq == b->seq && a->end == b->end && a->hash == b->hash && a->name == b->name &&
           a->protocol == b->protocol;
}

void ebpfMonTranslatedNote(ebpfMonTranslated *t, const ebpfMonWireEvent *ev, uint64_t at)
{
    t->note[t->next++ % NOTES] = makeMessage(ev, at);
}

const struct ebpfMonPeer *ebpfMonTranslatedFindSame(const ebpfMonTranslated *t, const ebpfMonWireEvent *ev,
                                                    uint64_t at)
{
    const message m = makeMessage(ev, at);

    for (unsigned i = 1; i <= NOTES; i++) {
        const message *note = &t->note[(t->next - i) % NOTES];

        if (!note->at || at > note->at + SAME_NS)
            return NULL;
        if (isSameMessage(note, &m) && memcmp(&note->peer, &ev->peer, sizeof(ev->peer)) != 0)
            return &note->peer;
    }
    return NULL;
}

static size_t hashPeer(const struct ebpfMonPeer *p)
{
    return (size_t)ebpfMonHashMix(((uint64_t)p->addr << 32 | p->saddr) ^
                                  ((uint64_t)p->port << 48 | (uint64_t)p->sport << 32 | p->netns)) % PLACES;
}

static connection *findConnection(const connection *table, const struct ebpfMonPeer *key)
{
    size_t h = hashPeer(key);

    for (unsigned i = 0; i < WAYS; i++) {
        connection *c = (connection *)&table[(h + i) % PLACES]; /* some callers change it, others do not */

        if (c->serial && memcmp(&c->key, key, sizeof(*key)) == 0)
            return c;
    }
    return NULL;
}

/* The place of the connection, a free one, or that of the oldest. */
static connection *getPlace(connection *table, const struct ebpfMonPeer *key)
{
    connection *place = findConnection(table, key), *oldest = &table[hashPeer(key)];

    for (unsigned i = 0; i < WAYS && !place; i++) {
        connection *c = &table[(hashPeer(key) + i) % PLACES];

        if (c->serial < oldest->serial)
            oldest = c;
    }
    return place ? place : oldest;
}

void ebpfMonTranslatedAdd(ebpfMonTranslated *t, const struct ebpfMonPeer *outer, const struct ebpfMonPeer *inner)
{
    t->serial++;
    *getPlace(t->byInner, inner) = (connection){ .key = *inner, .other = *outer, .serial = t->serial };
    *getPlace(t->byOuter, outer) = (connection){ .key = *outer, .other = *inner, .serial = t->serial };
}

const struct ebpfMonPeer *ebpfMonTranslatedFindOuter(const ebpfMonTranslated *t, const struct ebpfMonPeer *inner)
{
    const connection *c = findConnection(t->byInner, inner);

    return c ? &c->other : NULL;
}

int ebpfMonTranslatedIsOuter(const ebpfMonTranslated *t, const struct ebpfMonPeer *peer)
{
    return findConnection(t->byOuter, peer) != NULL;
}

void ebpfMonTranslatedForget(ebpfMonTranslated *t, const struct ebpfMonPeer *peer)
{
    connection *inner = findConnection(t->byInner, peer), *outer = findConnection(t->byOuter, peer);

    if (inner)
        inner->serial = 0;
    if (outer)
        outer->serial = 0;
}

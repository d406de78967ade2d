/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "wire/circuit.h"

/* --- shares of users --- */

static void joinShare(ebpfMonSharedCircuit *c, ebpfMonCircuitShare *s)
{
    c->share = s;
    c->newer = NULL;
    c->older = s->newest;
    if (s->newest)
        s->newest->newer = c;
    s->newest = c;
    s->count++;
}

static void leaveShare(ebpfMonSharedCircuit *c)
{
    *(c->newer ? &c->newer->older : &c->share->newest) = c->older;
    if (c->older)
        c->older->newer = c->newer;
    c->share->count--;
    c->share = NULL;
}

/* NULL: no memory. */
static ebpfMonCircuitShare *getShare(ebpfMonCircuitShares *all, const ebpfMonWirePayer *payer)
{
    ebpfMonCircuitShare *s = all->first;

    while (s && (s->payer.id != payer->id || s->payer.isSystem != payer->isSystem ||
                 s->payer.isNobody != payer->isNobody))
        s = s->next;
    if (s)
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->payer = *payer;
    s->next = all->first;
    all->first = s;
    return s;
}

/* Asks who pays for the circuits that were opened since the last time. */
static void shareNew(ebpfMonCircuitShares *all)
{
    ebpfMonSharedCircuit *c = all->unshared.newest, *newer;

    while (c && c->older)
        c = c->older;
    for (; c; c = newer) {
        ebpfMonWirePayer payer = { .id = 0 };
        ebpfMonCircuitShare *s;

        newer = c->newer;
        if (all->findPayer)
            payer = all->findPayer(all->arg, c->peer, &c->first);
        s = getShare(all, &payer);
        if (!s)
            continue;
        leaveShare(c);
        joinShare(c, s);
    }
}

/* A circuit is open now; it is not any more. */
static void addToShare(ebpfMonCircuitShares *all, ebpfMonSharedCircuit *c)
{
    joinShare(c, &all->unshared);
}

static void removeFromShare(ebpfMonSharedCircuit *c)
{
    if (c->share)
        leaveShare(c);
}

static void freeEmpty(ebpfMonCircuitShares *all)
{
    ebpfMonCircuitShare *s;

    for (ebpfMonCircuitShare **at = &all->first; (s = *at) != NULL;)
        if (s->count) {
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
}

/* Nonzero: "a" must give up one of its circuits before "b". */
static int isBefore(const ebpfMonCircuitShare *a, const ebpfMonCircuitShare *b)
{
    if (a->payer.isNobody != b->payer.isNobody)
        return a->payer.isNobody;
    return a->payer.isSystem != b->payer.isSystem ? !a->payer.isSystem : a->count > b->count;
}

/* The circuit that must end to make room: of those of no user, or else of the user who has most, the
 * one that was opened last. NULL: none is open. */
static ebpfMonSharedCircuit *findVictim(ebpfMonCircuitShares *all)
{
    const ebpfMonCircuitShare *most = NULL;

    freeEmpty(all);
    shareNew(all);
    for (const ebpfMonCircuitShare *s = all->first; s; s = s->next)
        if (!most || isBefore(s, most))
            most = s;
    return most ? most->newest : all->unshared.newest;
}

void ebpfMonCircuitSharesFree(ebpfMonCircuitShares *all)
{
    freeEmpty(all);
}

/* --- circuits --- */

/* The part (1 / OTHERS_SHARE) of all circuits that may be neither CA nor PVA yet. They must not displace circuits of CA
 * and PVA, but they need some room, so that new circuits are found. */
#define OTHERS_SHARE 8

static unsigned getBucket(const ebpfMonWire *w, const ebpfMonCircuitKey *k)
{
    uint64_t h = 0;
    uint32_t part[] = { k->addr[0], k->addr[1], (uint32_t)k->port[0] << 16 | k->port[1], k->netns };

    for (unsigned i = 0; i < sizeof part / sizeof part[0]; i++) {
        h = ebpfMonHashInteger(h ^ part[i]);
        h ^= h >> 32;
    }
    return (unsigned)(h & (w->buckets - 1));
}

int ebpfMonCircuitSameKey(const ebpfMonCircuitKey *a, const ebpfMonCircuitKey *b)
{
    return a->addr[0] == b->addr[0] && a->addr[1] == b->addr[1] && a->port[0] == b->port[0]
        && a->port[1] == b->port[1] && a->netns == b->netns && memcmp(a->addr6, b->addr6, sizeof a->addr6) == 0;
}

/* --- circuits that ended --- */

#define ENDED_PLACES 4096      /* by hash of the key; a power of two */
#define ENDED_WAYS 4           /* each in one of so many places: that of the one that ended first */
#define COPY_NS 1000000000ull
#define LATELY  (1 << 20)      /* bytes before its end that we take for the connection's, if its begin was not seen */

struct ebpfMonEndedCircuits {
    ebpfMonCircuitKey key;
    uint64_t time;             /* 0: the place is free */
    int      isOver;           /* its connection has ended, too */
    int      known[2], syn[2];
    uint32_t first[2], next[2]; /* TCP sequence numbers, by side */
};

ebpfMonEndedCircuits *ebpfMonEndedCircuitsNew(void)
{
    return calloc(ENDED_PLACES, sizeof(ebpfMonEndedCircuits));
}

/* The place of this connection. Otherwise, without "isNew" NULL; else that of another one. */
static ebpfMonEndedCircuits *findPlace(ebpfMonEndedCircuits *ended, const ebpfMonCircuitKey *k, int isNew)
{
    uint64_t addresses = (uint64_t)k->addr[0] << 32 | k->addr[1], ports = (uint32_t)k->port[0] << 16 | k->port[1];
    unsigned h = (unsigned)(ebpfMonHashInteger(ebpfMonHashInteger(addresses) ^ ports) >> 32);
    ebpfMonEndedCircuits *oldest = &ended[h % ENDED_PLACES];

    for (unsigned i = 0; i < ENDED_WAYS; i++) {
        ebpfMonEndedCircuits *e = &ended[(h + i) % ENDED_PLACES];

        if (e->time && ebpfMonCircuitSameKey(&e->key, k))
            return e;
        if (e->time < oldest->time)
            oldest = e;
    }
    return isNew ? oldest : NULL;
}

void ebpfMonEndedCircuitsAdd(ebpfMonEndedCircuits *ended, const ebpfMonCircuit *c, int isOver, uint64_t time)
{
    ebpfMonEndedCircuits *e = findPlace(ended, &c->key, 1);

    e->key = c->key;
    e->time = time;
    e->isOver = isOver;
    for (int side = 0; side < 2; side++) {
        const ebpfMonStream *s = &c->stream[side];

        e->known[side] = s->started;
        e->syn[side] = s->syn;
        e->first[side] = s->syn ? s->isn : s->next - LATELY;
        e->next[side] = s->next;
    }
}

int ebpfMonEndedCircuitsHas(ebpfMonEndedCircuits *ended, const ebpfMonCircuitKey *key, int side,
    const ebpfMonSegment *s, uint64_t time)
{
    const ebpfMonEndedCircuits *e = findPlace(ended, key, 0);

    if (!e || !e->isOver || time > e->time + COPY_NS || !e->known[side])
        return 0;
    if (s->flags & EBPFMON_TCP_SYN)
        return e->syn[side] && s->seq == e->first[side];
    return (int32_t)(s->seq - e->first[side]) >= 0 && (int32_t)(e->next[side] + 1 - s->seq) >= 0; /* and its FIN */
}

void ebpfMonEndedCircuitsResume(ebpfMonEndedCircuits *ended, ebpfMonCircuit *c, int side, const ebpfMonSegment *s)
{
    const ebpfMonEndedCircuits *e = findPlace(ended, &c->key, 0);
    uint32_t behind = e ? e->next[side] - s->seq : LATELY;

    if (s->flags & EBPFMON_TCP_SYN || behind >= LATELY || !e->known[side] || (int32_t)(s->seq - e->first[side]) < 0)
        return;
    for (int i = 0; i < 2; i++)
        if (e->known[i])
            ebpfMonStreamResume(&c->stream[i], e->syn[i] ? &e->first[i] : NULL, e->next[i]);
}

/* --- the table --- */

static ebpfMonCircuitList *getList(ebpfMonCircuit *c)
{
    /* one that was given up and forgotten would be met again in the middle of a message */
    return c->phase == ebpfMonCircuitOpen || c->givenUp ? &c->wire->open : &c->wire->others;
}

static void leaveList(ebpfMonCircuit *c)
{
    ebpfMonCircuitList *list = getList(c);

    *(c->older ? &c->older->newer : &list->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &list->newest) = c->older;
    list->count--;
}

static void joinList(ebpfMonCircuit *c)
{
    ebpfMonCircuitList *list = getList(c);

    c->older = list->newest;
    c->newer = NULL;
    *(c->older ? &c->older->newer : &list->oldest) = c;
    list->newest = c;
    list->count++;
}

void ebpfMonCircuitUsed(ebpfMonCircuit *c, uint64_t time)
{
    c->last = time;
    if (c->newer) {
        leaveList(c);
        joinList(c);
    }
}

ebpfMonCircuit *ebpfMonCircuitFind(ebpfMonWire *w, const ebpfMonCircuitKey *key)
{
    ebpfMonCircuit *c = w->byKey[getBucket(w, key)];

    while (c && !ebpfMonCircuitSameKey(&c->key, key))
        c = c->next;
    return c;
}

/* The open circuit that must end: one in which nobody has answered, which may be a single packet with any addresses;
 * else by the rule of circuit.h. Without memory for shares, the one that was unused for the longest time. */
static ebpfMonCircuit *findCrowded(ebpfMonWire *w)
{
    ebpfMonSharedCircuit *victim;

    for (ebpfMonCircuit *c = w->open.oldest; c; c = c->newer)
        if (!c->stream[0].started || !c->stream[1].started)
            return c;
    victim = findVictim(&w->shares);

    return victim ? victim->circuit : w->open.oldest;
}

/* It goes on, but we follow it no more: what it sends is lost. */
static void giveUpOpen(ebpfMonCircuit *c, uint64_t time)
{
    ebpfMonWireEvent e = { .kind = ebpfMonWireCrowded, .time = time };

    if (c->phase == ebpfMonCircuitOpen) { /* else it was given up before, which was told */
        c->wire->account.stats.crowded++;
        ebpfMonCircuitEmit(c, &e);
        ebpfMonEndedCircuitsAdd(c->wire->ended, c, 0, time);
    }
    ebpfMonCircuitEnd(c, time);
}

static void forgetOne(ebpfMonWire *w, uint64_t time)
{
    unsigned share = w->account.limits.circuits / OTHERS_SHARE;

    if (w->others.oldest && (w->others.count > share || !w->open.oldest))
        ebpfMonCircuitEnd(w->others.oldest, time);
    else if (w->open.oldest)
        giveUpOpen(findCrowded(w), time);
}

ebpfMonCircuit *ebpfMonCircuitMake(ebpfMonWire *w, const ebpfMonCircuitKey *key, uint64_t time)
{
    const ebpfMonWireLimits *limits = &w->account.limits;
    ebpfMonWireStats *stats = &w->account.stats;
    unsigned bucket = getBucket(w, key);
    ebpfMonCircuit *c;

    /* the last eighth of the memory is kept for the circuits that exist, and for the begin of a new one */
    while (stats->circuits
        && (stats->circuits >= limits->circuits || stats->memory > limits->total - limits->total / 8))
        forgetOne(w, time);
    c = ebpfMonMemoryAccountAlloc(&w->account, sizeof *c);
    if (!c) {
        stats->noMemory++;
        return NULL;
    }
    memset(c, 0, sizeof *c);
    c->wire = w;
    c->key = *key;
    c->closer = -1;
    c->server = -1;
    c->last = time;
    c->next = w->byKey[bucket];
    w->byKey[bucket] = c;
    stats->circuits++;
    joinList(c);
    return c;
}

void ebpfMonCircuitPeer(const ebpfMonCircuit *c, int server, struct ebpfMonPeer *peer)
{
    memset(peer, 0, sizeof *peer);
    peer->addr = c->key.addr[!server];
    peer->port = c->key.port[!server];
    peer->saddr = c->key.addr[server];
    peer->sport = c->key.port[server];
    peer->netns = c->key.netns;
    memcpy(peer->addr6, c->key.addr6[!server], sizeof peer->addr6);
    memcpy(peer->saddr6, c->key.addr6[server], sizeof peer->saddr6);
}

/* Zeros: its begin was not seen. */
static struct ebpfMonFirst getFirst(const ebpfMonCircuit *c)
{
    if (c->server < 0 || !c->stream[0].syn || !c->stream[1].syn)
        return (struct ebpfMonFirst){ .seq = { 0 } };
    return (struct ebpfMonFirst){ { c->stream[!c->server].isn + 1, c->stream[c->server].isn + 1 } };
}

static struct ebpfMonFirst getBegun(const ebpfMonCircuit *c)
{
    if (c->server < 0 || !c->stream[0].begun || !c->stream[1].begun)
        return (struct ebpfMonFirst){ .seq = { 0 } };
    return (struct ebpfMonFirst){ { c->stream[!c->server].begun, c->stream[c->server].begun } };
}

int ebpfMonCircuitOpened(ebpfMonCircuit *c, const ebpfMonProtocol *protocol, int server, uint64_t time)
{
    ebpfMonWire *w = c->wire;
    ebpfMonWireEvent e = { .kind = ebpfMonWireOpened, .time = time };
    void *state = protocol->open(c);

    if (!state)
        return 0;
    leaveList(c);
    c->phase = ebpfMonCircuitOpen;
    joinList(c);
    c->protocol = protocol;
    c->state = state;
    c->server = server;
    c->number = ++w->number;
    ebpfMonCircuitPeer(c, server, &c->peer);
    c->shared = (ebpfMonSharedCircuit){ .peer = &c->peer, .first = getFirst(c), .circuit = c };
    addToShare(&w->shares, &c->shared);
    ebpfMonCircuitEmit(c, &e);
    return 1;
}

/* One side has sent bytes in which no message was found. */
static void emitUnread(ebpfMonCircuit *c, uint64_t time)
{
    for (int side = 0; side < 2; side++) {
        const ebpfMonAssembly *a = &c->assembly[side];
        ebpfMonWireEvent e = { .kind = ebpfMonWireUnread, .time = time, .fromServer = side == c->server };

        if (!a->synced && (a->have || a->skipped))
            ebpfMonCircuitEmit(c, &e);
    }
}

/* Ends the open state of a circuit, and emits ebpfMonWireClosed. */
static void closeCircuit(ebpfMonCircuit *c, ebpfMonCircuitPhase phase, uint64_t time)
{
    ebpfMonWireEvent e = { .kind = ebpfMonWireClosed, .time = time };

    leaveList(c);
    if (c->phase == ebpfMonCircuitOpen) {
        emitUnread(c, time);
        e.fromServer = c->closer >= 0 && c->closer == c->server;
        ebpfMonCircuitEmit(c, &e);
        removeFromShare(&c->shared);
        c->protocol->close(c->state);
        c->state = NULL;
    }
    c->phase = phase;
    joinList(c);
}

static void clearSides(ebpfMonCircuit *c)
{
    for (int side = 0; side < 2; side++) {
        ebpfMonAssemblyClear(&c->wire->account, &c->assembly[side]);
        ebpfMonStreamClear(&c->stream[side]);
    }
}

void ebpfMonCircuitGiveUp(ebpfMonCircuit *c, int side, uint64_t time)
{
    ebpfMonWireEvent e = { .kind = ebpfMonWireGivenUp, .time = time, .fromServer = side == c->server };

    leaveList(c);
    c->givenUp = 1;
    joinList(c);
    c->wire->account.stats.gaps++;
    if (c->phase == ebpfMonCircuitOpen) {
        ebpfMonCircuitEmit(c, &e);
    } else {
        ebpfMonCircuitPeer(c, c->server < 0 ? 1 : c->server, &e.peer);
        ebpfMonWireEmit(c->wire, &e);
    }
    clearSides(c);
}

void ebpfMonCircuitDisown(ebpfMonCircuit *c, uint64_t time)
{
    ebpfMonWireEvent e = { .kind = ebpfMonWireForeign, .time = time, .isTls = ebpfMonTlsIs(c->tls, c->server) };

    closeCircuit(c, ebpfMonCircuitForeign, time);
    ebpfMonCircuitPeer(c, c->server < 0 ? 1 : c->server, &e.peer);
    ebpfMonWireEmit(c->wire, &e);
    clearSides(c);
}

void ebpfMonCircuitAgain(ebpfMonCircuit *c, uint64_t time)
{
    closeCircuit(c, ebpfMonCircuitNew, time);
    c->server = -1;
    c->guessed = 0;
    c->segments = 0;
    c->messages = 0;
    c->number = 0;
    c->protocol = NULL;
    for (int side = 0; side < 2; side++) {
        ebpfMonAssembly *a = &c->assembly[side];

        ebpfMonAssemblyClear(&c->wire->account, a);
        memset(a, 0, sizeof *a);
    }
}

void ebpfMonCircuitEnd(ebpfMonCircuit *c, uint64_t time)
{
    ebpfMonWire *w = c->wire;
    ebpfMonWireEvent unread = { .kind = ebpfMonWireUnread, .time = time, .isTls = ebpfMonTlsIs(c->tls, c->server) };
    ebpfMonCircuit **at;
    char text[160];

    if (c->phase == ebpfMonCircuitNew && ebpfMonTlsHasFailed(c->tls, c->server, c->closer, text, sizeof(text))) {
        ebpfMonWireEvent failed = { .kind = ebpfMonWireTlsFailed, .time = time, .message = text,
                                    .fromServer = c->closer >= 0 && c->closer == c->server, .first = getFirst(c) };

        ebpfMonCircuitPeer(c, c->server, &failed.peer);
        ebpfMonWireEmit(w, &failed);
    }
    if (c->phase == ebpfMonCircuitNew && c->segments) {
        ebpfMonCircuitPeer(c, c->server < 0 ? 1 : c->server, &unread.peer);
        ebpfMonWireEmit(w, &unread);
    }
    closeCircuit(c, ebpfMonCircuitForeign, time);
    leaveList(c);
    clearSides(c);
    for (at = &w->byKey[getBucket(w, &c->key)]; *at != c; at = &(*at)->next)
        ;
    *at = c->next;
    w->account.stats.circuits--;
    ebpfMonMemoryAccountFree(&w->account, c, sizeof *c);
}

void *ebpfMonCircuitAlloc(ebpfMonCircuit *c, size_t size)
{
    return ebpfMonMemoryAccountAlloc(&c->wire->account, size);
}

void ebpfMonCircuitFree(ebpfMonCircuit *c, void *p, size_t size)
{
    ebpfMonMemoryAccountFree(&c->wire->account, p, size);
}

void ebpfMonWireEmit(ebpfMonWire *w, ebpfMonWireEvent *e)
{
    ebpfMonMemoryAccountEmit(&w->account, e);
}

void ebpfMonCircuitEmit(ebpfMonCircuit *c, ebpfMonWireEvent *e)
{
    struct ebpfMonPeer peer = c->peer;

    if (e->kind == ebpfMonWireFound) { /* a name server answers for other servers */
        peer.saddr = e->peer.saddr ? e->peer.saddr : peer.saddr;
        peer.sport = e->peer.sport ? e->peer.sport : peer.sport;
    }
    e->peer = peer;
    e->first = getFirst(c);
    e->begun = getBegun(c);
    e->circuit = c->number;
    e->stretch = c->server < 0 ? 0 : c->assembly[e->fromServer ? c->server : !c->server].stretch;
    e->protocol = c->protocol->id;
    ebpfMonWireEmit(c->wire, e);
}

const ebpfMonWireLimits *ebpfMonCircuitLimits(const ebpfMonCircuit *c)
{
    return &c->wire->account.limits;
}

ebpfMonWireStats *ebpfMonCircuitStats(ebpfMonCircuit *c)
{
    return &c->wire->account.stats;
}

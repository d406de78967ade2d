/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>

#include "common/hash.h"
#include "wire/caMessage.h"
#include "wire/caType.h"
#include "wire/protocol.h"

/* --- ids ---
 *
 * A table from numbers that a peer chose to what we know of them. Its memory comes from ebpfMonCircuitAlloc. */

typedef struct {
    uint64_t value; /* never 0 */
    uint32_t key;
    uint32_t extra;
} ebpfMonIdEntry;

typedef struct {
    ebpfMonIdEntry *slot;
    unsigned room, used; /* room: a power of two, or 0 */
} ebpfMonIdTable;

#define ROOM_MIN 8u

/* The hash uses the address of the table, because a peer chooses the numbers and must not know which of them
 * collide. */
static unsigned getHome(const ebpfMonIdTable *t, uint32_t key)
{
    return (unsigned)ebpfMonHashMix(key ^ (uint64_t)(uintptr_t)t->slot) & (t->room - 1);
}

static void clearIds(ebpfMonCircuit *c, ebpfMonIdTable *t)
{
    if (t->slot)
        ebpfMonCircuitFree(c, t->slot, t->room * sizeof *t->slot);
    memset(t, 0, sizeof *t);
}

/* Finds an entry, which is valid until the table changes. NULL: there is none. */
static ebpfMonIdEntry *findId(const ebpfMonIdTable *t, uint32_t key)
{
    if (!t->room)
        return NULL;
    for (unsigned i = getHome(t, key); t->slot[i].value; i = (i + 1) & (t->room - 1))
        if (t->slot[i].key == key)
            return &t->slot[i];
    return NULL;
}

static void putEntry(ebpfMonIdTable *t, const ebpfMonIdEntry *entry)
{
    unsigned i = getHome(t, entry->key);

    while (t->slot[i].value)
        i = (i + 1) & (t->room - 1);
    t->slot[i] = *entry;
    t->used++;
}

static int growTable(ebpfMonCircuit *c, ebpfMonIdTable *t)
{
    ebpfMonIdTable old = *t;

    t->room = old.room ? old.room * 2 : ROOM_MIN;
    t->slot = ebpfMonCircuitAlloc(c, t->room * sizeof *t->slot);
    if (!t->slot) {
        *t = old;
        return 0;
    }
    memset(t->slot, 0, t->room * sizeof *t->slot);
    t->used = 0;
    for (unsigned i = 0; i < old.room; i++)
        if (old.slot[i].value)
            putEntry(t, &old.slot[i]);
    clearIds(c, &old);
    return 1;
}

/* Adds or replaces an entry. 0: there are "max" entries, or no memory. */
static int setId(ebpfMonCircuit *c, ebpfMonIdTable *t, unsigned max, uint32_t key, uint64_t value, uint32_t extra)
{
    ebpfMonIdEntry entry = { value, key, extra }, *at = findId(t, key);

    if (at) {
        *at = entry;
        return 1;
    }
    if (t->used >= max || (t->used >= t->room / 4 * 3 && !growTable(c, t)))
        return 0;
    putEntry(t, &entry);
    return 1;
}

static void removeId(ebpfMonIdTable *t, uint32_t key)
{
    ebpfMonIdEntry *at = findId(t, key);
    unsigned hole, mask = t->room - 1;

    if (!at)
        return;
    hole = (unsigned)(at - t->slot);
    /* entries after it move up, so that no search ends too early */
    for (unsigned i = (hole + 1) & mask; t->slot[i].value; i = (i + 1) & mask) {
        if (((i - getHome(t, t->slot[i].key)) & mask) >= ((i - hole) & mask)) {
            t->slot[hole] = t->slot[i];
            hole = i;
        }
    }
    t->slot[hole].value = 0;
    t->used--;
}

/* --- state of a circuit ---
 *
 * What we know of one Channel Access circuit: its client, and its channels. */

#define EBPFMON_CA_CLAIM 128 /* bytes of a claimed user or host name */
#define EBPFMON_CA_RECENT 64 /* plain writes that are remembered, because an error may still come for them */

typedef struct {
    uint32_t cid, sid;
    int hasCid, hasSid;
    int type;        /* native type, when the server has told it; -1: not known. The next one: native count */
    uint32_t count;
    size_t size; /* bytes of the whole struct */
    char name[]; /* "": not known, because the channel was created before we watched */
} ebpfMonCaChannel;

/* A plain write (without a reply): the server answers only an error, with the header of the write. */
typedef struct {
    uint64_t id, time;
    uint32_t cid, extra, count;
    unsigned type, cmd;
    int settled;
} ebpfMonCaWrite;

typedef struct {
    ebpfMonCircuit *circuit;
    ebpfMonIdTable byCid, bySid;  /* the channels by number */
    ebpfMonIdTable reads, events; /* requests without a reply, by ioid or subscription; value: 1 + the elements that are
                                   * asked for, extra: the sid */
    ebpfMonIdTable notifies;      /* write-notifies without a reply, by ioid; value: number of the put, or UNSURE;
                                   * extra: the sid */
    uint64_t puts;
    ebpfMonCaWrite *recent;       /* a ring of the last plain writes; NULL: there was none */
    unsigned recentNext;
    char user[EBPFMON_CA_CLAIM], host[EBPFMON_CA_CLAIM];
} ebpfMonCaState;

#define SOON_NS 1000000000ull
#define SENT_NS 50000000ull /* then a plain write is published, if no error has come (putJoin.c) */
#define UNSURE UINT64_MAX /* two requests under way have the same ioid: a reply may be to either, from then on */

static ebpfMonCaChannel *getEntryChannel(const ebpfMonIdEntry *entry)
{
    return entry ? (ebpfMonCaChannel *)(uintptr_t)entry->value : NULL;
}

static ebpfMonCaChannel *findCaBySid(const ebpfMonCaState *s, uint32_t sid)
{
    return getEntryChannel(findId(&s->bySid, sid));
}

static ebpfMonCaChannel *findCaByCid(const ebpfMonCaState *s, uint32_t cid)
{
    return getEntryChannel(findId(&s->byCid, cid));
}

static void removeChannel(ebpfMonCaState *s, ebpfMonCaChannel *ch)
{
    if (!ch)
        return;
    if (ch->hasCid)
        removeId(&s->byCid, ch->cid);
    if (ch->hasSid)
        removeId(&s->bySid, ch->sid);
    ebpfMonCircuitStats(s->circuit)->channels--;
    ebpfMonCircuitFree(s->circuit, ch, ch->size);
}

static ebpfMonCaChannel *setChannel(ebpfMonCaState *s, const uint32_t *cid, const uint32_t *sid, const char *name)
{
    unsigned max = ebpfMonCircuitLimits(s->circuit)->channels;
    size_t len = strnlen(name, EBPFMON_CA_NAME_MAX);
    ebpfMonCaChannel *ch = ebpfMonCircuitAlloc(s->circuit, sizeof *ch + len + 1);
    uint64_t value = (uintptr_t)ch;

    if (ch) {
        ch->size = sizeof *ch + len + 1;
        ch->cid = cid ? *cid : 0;
        ch->sid = sid ? *sid : 0;
        ch->hasCid = ch->hasSid = 0;
        ch->type = -1;
        ch->count = 0;
        memcpy(ch->name, name, len);
        ch->name[len] = 0;
        ebpfMonCircuitStats(s->circuit)->channels++;
        if (cid) {
            removeChannel(s, findCaByCid(s, *cid));
            ch->hasCid = setId(s->circuit, &s->byCid, max, *cid, value, 0);
        }
        if (sid) {
            removeChannel(s, findCaBySid(s, *sid));
            ch->hasSid = setId(s->circuit, &s->bySid, max, *sid, value, 0);
        }
        if ((!cid || ch->hasCid) && (!sid || ch->hasSid))
            return ch;
        removeChannel(s, ch);
    }
    ebpfMonCircuitStats(s->circuit)->noMemory++;
    return NULL;
}

static void clearTable(ebpfMonCaState *s, ebpfMonIdTable *t, int withCid)
{
    for (unsigned i = 0; i < t->room; i++) {
        ebpfMonCaChannel *ch = t->slot[i].value ? getEntryChannel(&t->slot[i]) : NULL;

        /* a channel that is in both tables is freed with the second */
        if (ch && (withCid || !ch->hasCid)) {
            ebpfMonCircuitStats(s->circuit)->channels--;
            ebpfMonCircuitFree(s->circuit, ch, ch->size);
        }
    }
    clearIds(s->circuit, t);
}

static void clearChannels(ebpfMonCaState *s)
{
    clearTable(s, &s->bySid, 0);
    clearTable(s, &s->byCid, 1);
}

/* Remembers a plain write. */
static void keepWrite(ebpfMonCaState *s, const ebpfMonCaHeader *h, uint64_t time)
{
    ebpfMonCaWrite *w;

    if (!s->recent) {
        s->recent = ebpfMonCircuitAlloc(s->circuit, EBPFMON_CA_RECENT * sizeof *s->recent);
        if (!s->recent) {
            ebpfMonCircuitStats(s->circuit)->noMemory++;
            return;
        }
        memset(s->recent, 0, EBPFMON_CA_RECENT * sizeof *s->recent);
    }
    w = &s->recent[s->recentNext++ % EBPFMON_CA_RECENT];
    *w = (ebpfMonCaWrite){ s->puts, time, h->cid, h->extra, h->count, h->type, h->cmd, 0 };
}

static int isSame(const ebpfMonCaWrite *w, const ebpfMonCaHeader *h)
{
    /* a server without extended headers returns only the low half of the count */
    return w->id && !w->settled && w->cmd == h->cmd && w->cid == h->cid && w->extra == h->extra && w->type == h->type
        && (w->count & 0xffff) == (h->count & 0xffff);
}

/*
 * Finds the number of the put that failed, by the header in the error. 0: not known. A server handles requests in
 * order, so an error settles all puts before its own. Several puts may look the same. If the client has no right to
 * write, they are refused one after the other: we take the oldest one of the last second. Else it may be any of them:
 * *isUnsure, and we take the oldest one that is not published yet. If there is none, we take the newest one.
 */
static uint64_t findFailedWrite(ebpfMonCaState *s, const ebpfMonCaHeader *h, uint64_t time, int isDenied, int *isUnsure)
{
    ebpfMonCaWrite *found = NULL;

    if (!s->recent)
        return 0;
    for (unsigned i = 0; i < EBPFMON_CA_RECENT; i++) { /* the oldest one comes first */
        ebpfMonCaWrite *w = &s->recent[(s->recentNext + i) % EBPFMON_CA_RECENT];

        if (!isSame(w, h))
            continue;
        found = w;
        if (time < w->time || time - w->time < (isDenied ? SOON_NS : SENT_NS))
            break;
    }
    if (!found)
        return 0;
    for (unsigned i = 0; i < EBPFMON_CA_RECENT; i++) {
        *isUnsure |= !isDenied && &s->recent[i] != found && isSame(&s->recent[i], h) &&
                     time < s->recent[i].time + SOON_NS;
        if (s->recent[i].id <= found->id)
            s->recent[i].settled = 1;
    }
    return found->id;
}

/* --- datagrams ---
 *
 * Searches, their answers, and beacons. The formats are those of libca (udpiiu.cpp) and rsrv (search_reply_udp,
 * online_notify.c). */

#define MESSAGES_MAX 8192 /* more than the longest datagram has */
#define CLAIM_MAX    1024u
#define PORT_DEFAULT 5064u
#define MINOR_PORT   5u   /* since CA 4.5 the answer has the server's port … */
#define MINOR_ADDR   8u   /* … and since CA 4.8 its address */

/* Sets the server in "peer" from a search reply. An address of all ones means the sender of the reply; then the address
 * in "peer" stays. */
static void setCaServer(struct ebpfMonPeer *peer, uint32_t addr, unsigned port)
{
    if (addr != 0xffffffffu) {
        peer->saddr = htonl(addr);
        memset(peer->saddr6, 0, sizeof peer->saddr6);
    }
    peer->sport = htons((uint16_t)port);
}

static int isPlausible(const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_VERSION: /* a client before CA 4.11 may send all zeros */
        return !h->size && h->count < 64;
    case EBPFMON_CA_SEARCH:
        return h->count ? h->size && h->size <= CLAIM_MAX && h->count < 64 && (h->type == 5 || h->type == 10)
            : h->size <= 8;
    case EBPFMON_CA_NOT_FOUND:
    case EBPFMON_CA_RSRV_IS_UP:
    case EBPFMON_CA_REPEATER_CONFIRM:
    case EBPFMON_CA_REPEATER_REGISTER:
        return !h->size;
    default:
        return 0;
    }
}

/* Nonzero: the whole datagram is Channel Access. On other ports, any datagram can begin like one. */
static int isOurs(const uint8_t *p, size_t len)
{
    int emitted = 0;

    while (len) {
        ebpfMonCaHeader h;

        if (ebpfMonCaHeaderParse(&h, p, len) <= 0 || !isPlausible(&h) || h.size > len - h.head)
            return 0;
        emitted |= h.cmd == EBPFMON_CA_SEARCH || h.cmd == EBPFMON_CA_RSRV_IS_UP;
        p += h.head + h.size;
        len -= h.head + h.size;
    }
    return emitted;
}

static void emitSearch(ebpfMonWire *wire, ebpfMonWireEvent *e, const ebpfMonCaHeader *h, const uint8_t *p)
{
    char name[EBPFMON_CA_NAME_MAX + 1];

    if (ebpfMonCaText(name, sizeof name, p + h->head, h->size) || !name[0])
        return;
    e->kind = ebpfMonWireSearch;
    e->name = name;
    e->cid = h->extra;
    e->count = h->count;
    ebpfMonWireEmit(wire, e);
}

static void emitAnswer(ebpfMonWire *wire, ebpfMonWireEvent *e, const ebpfMonCaHeader *h, const uint8_t *p)
{
    unsigned minor = h->size >= 2 ? (unsigned)p[h->head] << 8 | p[h->head + 1] : 0;

    e->kind = ebpfMonWireFound;
    e->fromServer = 1;
    e->peer = ebpfMonPeerSwap(&e->peer);
    setCaServer(&e->peer, minor >= MINOR_ADDR ? h->cid : 0xffffffffu, minor >= MINOR_PORT ? h->type : PORT_DEFAULT);
    e->cid = h->extra;
    ebpfMonWireEmit(wire, e);
}

/* A repeater passes beacons on, and fills in the address of the server. */
static void emitCaBeacon(ebpfMonWire *wire, ebpfMonWireEvent *e, const ebpfMonCaHeader *h)
{
    e->kind = ebpfMonWireBeacon;
    e->fromServer = 1;
    e->peer.saddr = e->peer.addr; /* addr and port stay the sender's */
    memcpy(e->peer.saddr6, e->peer.addr6, sizeof e->peer.saddr6);
    setCaServer(&e->peer, h->extra ? h->extra : 0xffffffffu, h->count ? h->count : PORT_DEFAULT);
    ebpfMonWireEmit(wire, e);
}

/* Emits the searches, answers and beacons of a datagram. "from_to": see ebpfMonProtocol.datagram. */
static void readCaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p,
                       size_t len)
{
    if (!isOurs(p, len))
        return;
    for (int i = 0; len && i < MESSAGES_MAX; i++) {
        ebpfMonWireEvent e = { .protocol = ebpfMonWireCa, .time = time, .peer = *from_to };
        ebpfMonCaHeader h;

        ebpfMonCaHeaderParse(&h, p, len);
        if (h.cmd == EBPFMON_CA_SEARCH && h.count)
            emitSearch(wire, &e, &h, p);
        else if (h.cmd == EBPFMON_CA_SEARCH)
            emitAnswer(wire, &e, &h, p);
        else if (h.cmd == EBPFMON_CA_RSRV_IS_UP)
            emitCaBeacon(wire, &e, &h);
        p += h.head + h.size;
        len -= h.head + h.size;
    }
}

/* --- events --- */

/* Makes an event from a Channel Access message. */

/* Inline, because the event is large and every event begins like this. */
static inline ebpfMonWireEvent ebpfMonCaEvent(const ebpfMonCaState *s, ebpfMonWireKind kind,
    const ebpfMonMessage *m)
{
    return (ebpfMonWireEvent){ .kind = kind, .time = m->time, .seq = m->seq, .end = m->seq + (uint32_t)m->total,
        .fromServer = m->fromServer, .user = s->user, .host = s->host };
}

/* Sets name and cid of the channel with this sid. */
static void nameCaEvent(const ebpfMonCaState *s, ebpfMonWireEvent *e, uint32_t sid)
{
    const ebpfMonCaChannel *ch = findCaBySid(s, sid);

    e->sid = sid;
    if (ch) {
        e->name = ch->name;
        e->cid = ch->cid;
    }
}

/* Sets the elements of the message. 0: the message has no elements, because its type does not exist. */
static int setCaElements(ebpfMonCaState *s, ebpfMonWireEvent *e, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const ebpfMonCaType *t;
    uint64_t bytes;
    size_t from, have;

    if (h->type >= EBPFMON_CA_TYPES) {
        ebpfMonCircuitStats(s->circuit)->malformed++;
        return 0;
    }
    t = &ebpfMonCaTypes[h->type];
    bytes = (uint64_t)h->count * t->size;
    from = h->head + t->meta;
    have = m->have > from ? m->have - from : 0;
    /* a single string is sent with its own length, not with 40 bytes */
    if (m->total < from + bytes && !(t->base == 0 && h->count == 1 && m->total > from))
        ebpfMonCircuitStats(s->circuit)->malformed++;
    e->dbrType = (int)h->type;
    e->baseType = t->base;
    e->elementSize = t->size;
    e->count = h->count;
    e->data = have ? m->p + from : m->p;
    e->have = have < bytes ? have : (size_t)bytes;
    e->hash = m->hash;
    return 1;
}

/* Sets baseType and elementSize from dbrType, the native type of a channel. */
static void caEventNative(ebpfMonWireEvent *e)
{
    int known = e->dbrType >= 0 && e->dbrType < EBPFMON_CA_TYPES;

    e->baseType = known ? ebpfMonCaTypes[e->dbrType].base : -1;
    e->elementSize = known ? ebpfMonCaTypes[e->dbrType].size : 0;
}

/* --- what a client sends --- */

/* Messages of a Channel Access client. */

#define PENDING_MAX 16384u /* requests of one kind that may wait for their reply */

/* Remembers a request. If the table is full, it is cleared, because requests that a server never answers must not keep
 * new ones out. */
static void rememberRequest(ebpfMonCaState *s, ebpfMonIdTable *t, uint32_t id, uint64_t value, uint32_t sid)
{
    if (t->used >= PENDING_MAX) {
        ebpfMonCircuitStats(s->circuit)->noMemory += t->used;
        clearIds(s->circuit, t);
    }
    if (!setId(s->circuit, t, PENDING_MAX, id, value, sid))
        ebpfMonCircuitStats(s->circuit)->noMemory++;
}

static void noteWrite(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWirePut, m);

    if (!setCaElements(s, &e, m, h)) { /* this type does not exist: the server will refuse the write */
        e.dbrType = (int)h->type;
        e.baseType = -1;
        e.count = h->count;
        e.data = m->p;
    }
    e.id = ++s->puts;
    e.replyAsked = h->cmd == EBPFMON_CA_WRITE_NOTIFY;
    if (!e.replyAsked) {
        e.cid = h->extra;
        keepWrite(s, h, m->time);
    } else {
        rememberRequest(s, &s->notifies, h->extra, findId(&s->notifies, h->extra) ? UNSURE : e.id, h->cid);
    }
    nameCaEvent(s, &e, h->cid);
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteClaim(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char text[EBPFMON_CA_CLAIM], *to = h->cmd == EBPFMON_CA_CLIENT_NAME ? s->user : s->host;
    size_t have = m->have - h->head, n = strnlen((const char *)m->p + h->head, have);
    ebpfMonWireEvent e;

    snprintf(text, sizeof text, "%.*s", (int)n, (const char *)m->p + h->head);
    for (char *p = text; *p; p++)
        if ((uint8_t)*p < 0x20 || *p == 0x7f) /* the server has the name with it */
            *p = '?';
    if (strcmp(text, to) == 0)
        return;
    strcpy(to, text);
    e = ebpfMonCaEvent(s, ebpfMonWireUser, m);
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteUse(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h, ebpfMonWireKind kind)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, kind, m);

    nameCaEvent(s, &e, h->cid);
    e.ioid = kind == ebpfMonWireSubscribe ? h->extra : 0;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteCancel(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireFlow, m);

    removeId(&s->events, h->extra);
    e.ioid = h->extra;
    e.flow = ebpfMonWireFlowEnded;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void emitTcpSearch(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1];
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireSearch, m);

    if (m->have < m->total || ebpfMonCaText(name, sizeof name, m->p + h->head, h->size) || !name[0])
        return;
    e.name = name;
    e.cid = h->extra;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void emitRefused(ebpfMonCaState *s, const ebpfMonMessage *m, ebpfMonCaChannel *ch, const char *name)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireRefused, m);

    e.name = name;
    e.cid = ch->cid;
    ebpfMonCircuitEmit(s->circuit, &e);
    removeChannel(s, ch);
}

static void noteRefusedChannel(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonCaChannel *ch = findCaByCid(s, h->cid);

    if (!ch)
        setChannel(s, &h->cid, NULL, ""); /* the request may come later (noteCreation) */
    else if (!ch->hasSid && ch->name[0])
        emitRefused(s, m, ch, ch->name);
}

static void noteCreation(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1];
    ebpfMonCaChannel *was = findCaByCid(s, h->cid), *now;
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireChannel, m);
    uint32_t sid;

    if (m->have < m->total)
        return;
    if (ebpfMonCaText(name, sizeof name, m->p + h->head, h->size) || !name[0]) {
        ebpfMonCircuitStats(s->circuit)->malformed++;
        removeChannel(s, was); /* its number is another one's now */
        return;
    }
    /* We may see the two directions in another order than they were sent: then the reply came first. */
    if (was && !was->hasSid && !was->name[0]) {
        emitRefused(s, m, was, name);
        return;
    }
    if (!was || !was->hasSid || was->name[0]) {
        setChannel(s, &h->cid, NULL, name);
        return;
    }
    sid = was->sid;
    e.dbrType = was->type;
    e.count = was->count;
    now = setChannel(s, &h->cid, &sid, name);
    if (!now)
        return;
    now->type = e.dbrType;
    now->count = e.count;
    nameCaEvent(s, &e, sid);
    caEventNative(&e);
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* Emits the event of the message, if it has one, and notes what later messages need. */
static void caRequest(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_WRITE:
    case EBPFMON_CA_WRITE_NOTIFY:
        noteWrite(s, m, h);
        break;
    case EBPFMON_CA_CREATE_CHAN:
        noteCreation(s, m, h);
        break;
    case EBPFMON_CA_READ:
    case EBPFMON_CA_READ_NOTIFY:
        rememberRequest(s, &s->reads, h->extra, 1ull + h->count, h->cid);
        noteUse(s, m, h, ebpfMonWireRead);
        break;
    case EBPFMON_CA_EVENT_ADD:
        rememberRequest(s, &s->events, h->extra, 1ull + h->count, h->cid);
        noteUse(s, m, h, ebpfMonWireSubscribe);
        break;
    case EBPFMON_CA_EVENT_CANCEL:
        noteCancel(s, m, h);
        break;
    case EBPFMON_CA_CLIENT_NAME:
    case EBPFMON_CA_HOST_NAME:
        noteClaim(s, m, h);
        break;
    case EBPFMON_CA_SEARCH:
        emitTcpSearch(s, m, h);
        break;
    default: /* no event */
        break;
    }
}

/* --- what a server sends --- */

/* Messages of a Channel Access server. */

static void noteCreated(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1] = "";
    ebpfMonCaChannel *ch = findCaByCid(s, h->cid);
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireChannel, m);

    if (ch)
        strcpy(name, ch->name); /* it fits: no name is longer */
    e.name = name;
    e.cid = h->cid;
    e.sid = h->extra;
    e.dbrType = (int)h->type;
    e.count = h->count;
    caEventNative(&e);
    ch = setChannel(s, &h->cid, &h->extra, name);
    if (ch) {
        ch->type = e.dbrType;
        ch->count = e.count;
    }
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteGone(ebpfMonCaState *s, const ebpfMonMessage *m, ebpfMonCaChannel *ch, uint32_t cid, uint32_t sid)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireChannelGone, m);
    char name[EBPFMON_CA_NAME_MAX + 1] = "";

    e.name = name;
    e.cid = cid;
    e.sid = sid;
    if (ch) {
        strcpy(name, ch->name); /* it fits: no name is longer */
        e.cid = ch->cid;
        e.sid = ch->sid;
        removeChannel(s, ch);
    }
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* Nonzero: the reply to this request does not show the value of the channel. A request for 0 elements asks for as many
 * as there are now. */
static int isPartial(const ebpfMonCaState *s, const ebpfMonIdEntry *asked, unsigned type)
{
    const ebpfMonCaChannel *ch = findCaBySid(s, asked->extra);

    return type == EBPFMON_CA_CLASS_NAME || (ch && ch->type >= 0 && asked->value > 1 && asked->value - 1 < ch->count);
}

static void noteValue(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonIdTable *t = h->cmd == EBPFMON_CA_EVENT_ADD ? &s->events : &s->reads;
    const ebpfMonIdEntry *asked = findId(t, h->extra);
    ebpfMonWireEvent e;

    if (!asked)
        return;
    e = ebpfMonCaEvent(s, ebpfMonWireValue, m);
    e.isUpdate = t == &s->events;
    e.isPartial = isPartial(s, asked, h->type);
    nameCaEvent(s, &e, asked->extra);
    e.ioid = e.isUpdate ? h->extra : 0;
    if (t == &s->reads)
        removeId(t, h->extra);
    /* m_cid is the status; only the reply to the old READ has none */
    if (h->size && (h->cid == EBPFMON_CA_NORMAL || h->cmd == EBPFMON_CA_READ) && setCaElements(s, &e, m, h))
        ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteWritten(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const ebpfMonIdEntry *asked = findId(&s->notifies, h->extra);
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireReply, m);

    if (asked && asked->value != UNSURE) {
        e.id = asked->value;
        nameCaEvent(s, &e, asked->extra);
        removeId(&s->notifies, h->extra);
    }
    e.replyAsked = 1;
    e.status = h->cid;
    e.ok = e.status == EBPFMON_CA_NORMAL;
    e.denied = e.status == EBPFMON_CA_NOWTACCESS;
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* An exception has the header of the request that failed, and a text. */
static void noteError(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const uint8_t *p = m->p + h->head;
    size_t have = m->have - h->head;
    char text[256] = "", unsure[256];
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireReply, m);
    ebpfMonCaHeader request;

    if (ebpfMonCaHeaderParse(&request, p, have) <= 0
        || (request.cmd != EBPFMON_CA_WRITE && request.cmd != EBPFMON_CA_WRITE_NOTIFY))
        return;
    if (ebpfMonCaText(text, sizeof text, p + request.head, have - request.head))
        text[0] = 0;
    e.status = h->extra;
    /* servers of caproto send ECA_PUTFAIL for everything that goes wrong: "Python exception: Forbidden …"
     * (server/common.py) */
    e.denied = e.status == EBPFMON_CA_NOWTACCESS || strstr(text, "exception: Forbidden") != NULL;
    if (request.cmd == EBPFMON_CA_WRITE) {
        e.id = findFailedWrite(s, &request, m->time, e.denied, &e.isUnsure);
        e.cid = request.extra;
        if (e.isUnsure)
            snprintf(unsure, sizeof unsure, "this or another one: %.200s", text);
    } else {
        const ebpfMonIdEntry *asked = findId(&s->notifies, request.extra);

        e.replyAsked = 1;
        if (asked && asked->value != UNSURE) {
            e.id = asked->value;
            removeId(&s->notifies, request.extra);
        }
    }
    nameCaEvent(s, &e, request.cid);
    e.message = e.isUnsure ? unsure : text;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void emitFound(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireFound, m);

    setCaServer(&e.peer, h->cid, h->type);
    e.cid = h->extra;
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* Emits the event of the message, if it has one, and notes what later messages need. */
static void caResponse(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_WRITE_NOTIFY:
        noteWritten(s, m, h);
        break;
    case EBPFMON_CA_EVENT_ADD:
    case EBPFMON_CA_READ:
    case EBPFMON_CA_READ_NOTIFY:
        noteValue(s, m, h);
        break;
    case EBPFMON_CA_ERROR:
        noteError(s, m, h);
        break;
    case EBPFMON_CA_CREATE_CHAN:
        noteCreated(s, m, h);
        break;
    case EBPFMON_CA_CREATE_CH_FAIL:
        noteRefusedChannel(s, m, h);
        break;
    case EBPFMON_CA_CLEAR_CHANNEL:
        noteGone(s, m, findCaBySid(s, h->cid), h->extra, h->cid);
        break;
    case EBPFMON_CA_SERVER_DISCONN:
        noteGone(s, m, findCaByCid(s, h->cid), h->cid, 0);
        break;
    case EBPFMON_CA_SEARCH:
        emitFound(s, m, h);
        break;
    default: /* no event */
        break;
    }
}

/* --- the protocol --- */

/*
 * Channel Access over TCP, as rsrv (camessage.c) and libca (tcpiiu.cpp, cac.cpp) of EPICS Base do it. A put has only
 * the number (sid) that the server gave to its channel. So we learn the names when channels are created.
 */

static int findCaFrame(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *f)
{
    ebpfMonCaHeader h;
    int r = ebpfMonCaHeaderParse(&h, p, have);

    if (r <= 0)
        return r;
    if (!ebpfMonCaHeaderPlausible(&h, fromServer, state == NULL))
        return -1;
    f->total = h.head + h.size;
    f->hashFrom = f->hashTo = f->total;
    if (h.type < EBPFMON_CA_TYPES && h.size) {
        const ebpfMonCaType *t = &ebpfMonCaTypes[h.type];
        uint64_t end = h.head + t->meta + (uint64_t)h.count * t->size;

        if (end < f->total)
            f->hashTo = (size_t)end;
        f->hashFrom = h.head + t->meta < f->hashTo ? h.head + t->meta : f->hashTo;
    }
    return 1;
}

static void *openCaState(ebpfMonCircuit *c)
{
    ebpfMonCaState *s = ebpfMonCircuitAlloc(c, sizeof *s);

    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->circuit = c;
    return s;
}

static void closeCaState(void *state)
{
    ebpfMonCaState *s = state;
    ebpfMonIdTable *tables[] = { &s->reads, &s->events, &s->notifies };

    clearChannels(s);
    for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++)
        clearIds(s->circuit, tables[i]);
    if (s->recent)
        ebpfMonCircuitFree(s->circuit, s->recent, EBPFMON_CA_RECENT * sizeof *s->recent);
    ebpfMonCircuitFree(s->circuit, s, sizeof *s);
}

static void readCaMessage(void *state, const ebpfMonMessage *m)
{
    ebpfMonCaHeader h;

    if (ebpfMonCaHeaderParse(&h, m->p, m->have) <= 0 || m->have < h.head)
        return;
    if (m->fromServer)
        caResponse(state, m, &h);
    else
        caRequest(state, m, &h);
}

/* Each channel and each request gets a new number, so what we know stays true. */
static void noteCaGap(void *state, int fromServer)
{
}

const ebpfMonProtocol ebpfMonCaProtocol = {
    .id = ebpfMonWireCa,
    .headerMax = EBPFMON_CA_HEADER_MAX,
    .frame = findCaFrame,
    .open = openCaState,
    .close = closeCaState,
    .message = readCaMessage,
    .gap = noteCaGap,
    .datagram = readCaDatagram
};

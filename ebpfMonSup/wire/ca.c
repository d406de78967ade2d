/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "wire/caDatagram.h"
#include "wire/caState.h"
#include "wire/caType.h"

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
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, sid);

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
        ebpfMonIdClear(s->circuit, t);
    }
    if (!ebpfMonIdSet(s->circuit, t, PENDING_MAX, id, value, sid))
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
        ebpfMonCaWriteNote(s, h, m->time);
    } else {
        rememberRequest(s, &s->notifies, h->extra, e.id, h->cid);
    }
    nameCaEvent(s, &e, h->cid);
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteClaim(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char text[EBPFMON_CA_CLAIM], *to = h->cmd == EBPFMON_CA_CLIENT_NAME ? s->user : s->host;
    ebpfMonWireEvent e;

    if (ebpfMonCaText(text, sizeof text, m->p + h->head, m->have - h->head)) {
        ebpfMonCircuitStats(s->circuit)->malformed++;
        return;
    }
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

static void noteCreation(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1];
    const ebpfMonCaChannel *was = ebpfMonCaByCid(s, h->cid);
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireChannel, m);
    ebpfMonCaChannel *now;
    uint32_t sid;

    if (m->have < m->total)
        return;
    if (ebpfMonCaText(name, sizeof name, m->p + h->head, h->size) || !name[0]) {
        ebpfMonCircuitStats(s->circuit)->malformed++;
        return;
    }
    if (!was || !was->hasSid || was->name[0]) {
        ebpfMonCaChannelSet(s, &h->cid, NULL, name);
        return;
    }
    /* We may see the two directions in another order than they were sent: here the reply came first. */
    sid = was->sid;
    e.dbrType = was->type;
    e.count = was->count;
    now = ebpfMonCaChannelSet(s, &h->cid, &sid, name);
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
        ebpfMonIdRemove(&s->events, h->extra);
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
    ebpfMonCaChannel *ch = ebpfMonCaByCid(s, h->cid);
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireChannel, m);

    if (ch)
        strcpy(name, ch->name); /* it fits: no name is longer */
    e.name = name;
    e.cid = h->cid;
    e.sid = h->extra;
    e.dbrType = (int)h->type;
    e.count = h->count;
    caEventNative(&e);
    ch = ebpfMonCaChannelSet(s, &h->cid, &h->extra, name);
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
        ebpfMonCaChannelRemove(s, ch);
    }
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* Nonzero: the reply to this request does not show the value of the channel. A request for 0 elements asks for as many
 * as there are now. */
static int isPartial(const ebpfMonCaState *s, const ebpfMonIdEntry *asked, unsigned type)
{
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, asked->extra);

    return type == EBPFMON_CA_CLASS_NAME || (ch && ch->type >= 0 && asked->value > 1 && asked->value - 1 < ch->count);
}

static void noteValue(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonIdTable *t = h->cmd == EBPFMON_CA_EVENT_ADD ? &s->events : &s->reads;
    const ebpfMonIdEntry *asked = ebpfMonIdFind(t, h->extra);
    ebpfMonWireEvent e;

    if (!asked)
        return;
    e = ebpfMonCaEvent(s, ebpfMonWireValue, m);
    e.isUpdate = t == &s->events;
    e.isPartial = isPartial(s, asked, h->type);
    nameCaEvent(s, &e, asked->extra);
    if (t == &s->reads)
        ebpfMonIdRemove(t, h->extra);
    /* m_cid is the status; only the reply to the old READ has none */
    if (h->size && (h->cid == EBPFMON_CA_NORMAL || h->cmd == EBPFMON_CA_READ) && setCaElements(s, &e, m, h))
        ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteWritten(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const ebpfMonIdEntry *asked = ebpfMonIdFind(&s->notifies, h->extra);
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireReply, m);

    if (asked) {
        e.id = asked->value;
        nameCaEvent(s, &e, asked->extra);
        ebpfMonIdRemove(&s->notifies, h->extra);
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
    char text[256] = "";
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireReply, m);
    ebpfMonCaHeader request;

    if (ebpfMonCaHeaderParse(&request, p, have) <= 0
        || (request.cmd != EBPFMON_CA_WRITE && request.cmd != EBPFMON_CA_WRITE_NOTIFY))
        return;
    if (ebpfMonCaText(text, sizeof text, p + request.head, have - request.head))
        text[0] = 0;
    if (request.cmd == EBPFMON_CA_WRITE) {
        e.id = ebpfMonCaWriteFailed(s, &request, m->time);
        e.cid = request.extra;
    } else {
        const ebpfMonIdEntry *asked = ebpfMonIdFind(&s->notifies, request.extra);

        e.replyAsked = 1;
        e.id = asked ? asked->value : 0;
        ebpfMonIdRemove(&s->notifies, request.extra);
    }
    nameCaEvent(s, &e, request.cid);
    e.status = h->extra;
    /* servers of caproto send ECA_PUTFAIL for everything that goes wrong: "Python exception: Forbidden …"
     * (server/common.py) */
    e.denied = e.status == EBPFMON_CA_NOWTACCESS || strstr(text, "exception: Forbidden") != NULL;
    e.message = text;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void emitFound(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireFound, m);

    ebpfMonCaServer(&e.peer, h->cid, h->type);
    e.cid = h->extra;
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* Emits the event of the message, if it has one, and notes what later messages need. */
static void caResponse(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonCaChannel *ch;

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
        ch = ebpfMonCaByCid(s, h->cid);
        if (ch && !ch->hasSid)
            ebpfMonCaChannelRemove(s, ch);
        break;
    case EBPFMON_CA_CLEAR_CHANNEL:
        noteGone(s, m, ebpfMonCaBySid(s, h->cid), h->extra, h->cid);
        break;
    case EBPFMON_CA_SERVER_DISCONN:
        noteGone(s, m, ebpfMonCaByCid(s, h->cid), h->cid, 0);
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

    ebpfMonCaChannelsClear(s);
    for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++)
        ebpfMonIdClear(s->circuit, tables[i]);
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
    (void)state;
    (void)fromServer;
}

static void noteCaName(void *state, uint32_t sid, const char *text)
{
    ebpfMonCaState *s = state;
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, sid);
    uint32_t cid = ch ? ch->cid : 0;

    ebpfMonCaChannelSet(s, ch && ch->hasCid ? &cid : NULL, &sid, text);
}

const ebpfMonProtocol ebpfMonCaProtocol = {
    .id = ebpfMonWireCa,
    .headerMax = EBPFMON_CA_HEADER_MAX,
    .frame = findCaFrame,
    .open = openCaState,
    .close = closeCaState,
    .message = readCaMessage,
    .gap = noteCaGap,
    .name = noteCaName,
    .datagram = ebpfMonCaDatagram
};

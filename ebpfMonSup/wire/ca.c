/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel Access over TCP, as EPICS Base's rsrv (camessage.c) and libca (tcpiiu.cpp, cac.cpp) speak it. A put names
 * its channel by the number that the server gave it (sid), so the names come from the channels' creation.
 */
#include <string.h>

#include "wire/caState.h"

#define PENDING_MAX 16384u /* requests of a kind that may be without their reply */

static int frame(void *state, int fromServer, const uint8_t *p, size_t have, ebpfMonFrame *f)
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

static void *openState(ebpfMonCircuit *c)
{
    ebpfMonCaState *s = ebpfMonCircuitAlloc(c, sizeof *s);

    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->circuit = c;
    return s;
}

static void closeState(void *state)
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

static ebpfMonWireEvent eventOf(const ebpfMonCaState *s, ebpfMonWireKind kind, const ebpfMonMessage *m)
{
    return (ebpfMonWireEvent){ .kind = kind, .time = m->time, .seq = m->seq, .end = m->seq + (uint32_t)m->total,
        .fromServer = m->fromServer, .user = s->user, .host = s->host };
}

static void nameBySid(const ebpfMonCaState *s, ebpfMonWireEvent *e, uint32_t sid)
{
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, sid);

    e->sid = sid;
    if (ch) {
        e->name = ch->name;
        e->cid = ch->cid;
    }
}

/* Remembers a request. What a server never answered must not keep new ones out. */
static void expect(ebpfMonCaState *s, ebpfMonIdTable *t, uint32_t id, uint64_t value, uint32_t sid)
{
    if (t->used >= PENDING_MAX) {
        ebpfMonCircuitStats(s->circuit)->noMemory += t->used;
        ebpfMonIdClear(s->circuit, t);
    }
    if (!ebpfMonIdSet(s->circuit, t, PENDING_MAX, id, value, sid))
        ebpfMonCircuitStats(s->circuit)->noMemory++;
}

/* The elements of a message. Fills in the event; 0: there are none that could be. */
static int elements(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h, ebpfMonWireEvent *e)
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
    /* A single string is sent no longer than it is. */
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

static void write(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonWireEvent e = eventOf(s, ebpfMonWirePut, m);

    if (!elements(s, m, h, &e))
        return;
    e.id = ++s->puts;
    e.replyAsked = h->cmd == EBPFMON_CA_WRITE_NOTIFY;
    if (!e.replyAsked) {
        e.cid = h->extra;
        ebpfMonCaWriteNote(s, h, m->time);
    } else {
        expect(s, &s->notifies, h->extra, e.id, h->cid);
    }
    nameBySid(s, &e, h->cid);
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void claim(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
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
    e = eventOf(s, ebpfMonWireUser, m);
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void search(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1];
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireSearch, m);

    if (m->have < m->total || ebpfMonCaText(name, sizeof name, m->p + h->head, h->size) || !name[0])
        return;
    e.name = name;
    e.cid = h->extra;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void native(ebpfMonWireEvent *e)
{
    int known = e->dbrType >= 0 && e->dbrType < EBPFMON_CA_TYPES;

    e->baseType = known ? ebpfMonCaTypes[e->dbrType].base : -1;
    e->elementSize = known ? ebpfMonCaTypes[e->dbrType].size : 0;
}

static void create(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1];
    const ebpfMonCaChannel *was = ebpfMonCaByCid(s, h->cid);
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireChannel, m);
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
    /* The two directions may come in another order than they were sent: the reply was first. */
    sid = was->sid;
    e.dbrType = was->type;
    e.count = was->count;
    now = ebpfMonCaChannelSet(s, &h->cid, &sid, name);
    if (!now)
        return;
    now->type = e.dbrType;
    now->count = e.count;
    nameBySid(s, &e, sid);
    native(&e);
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void fromClient(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_WRITE:
    case EBPFMON_CA_WRITE_NOTIFY:
        write(s, m, h);
        break;
    case EBPFMON_CA_CREATE_CHAN:
        create(s, m, h);
        break;
    case EBPFMON_CA_READ:
    case EBPFMON_CA_READ_NOTIFY:
        expect(s, &s->reads, h->extra, 1, h->cid);
        break;
    case EBPFMON_CA_EVENT_ADD:
        expect(s, &s->events, h->extra, 1, h->cid);
        break;
    case EBPFMON_CA_EVENT_CANCEL:
        ebpfMonIdRemove(&s->events, h->extra);
        break;
    case EBPFMON_CA_CLIENT_NAME:
    case EBPFMON_CA_HOST_NAME:
        claim(s, m, h);
        break;
    case EBPFMON_CA_SEARCH:
        search(s, m, h);
        break;
    default: /* nothing to tell */
        break;
    }
}

static void created(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    char name[EBPFMON_CA_NAME_MAX + 1] = "";
    ebpfMonCaChannel *ch = ebpfMonCaByCid(s, h->cid);
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireChannel, m);

    if (ch)
        strcpy(name, ch->name); /* no longer than that when it was made */
    e.name = name;
    e.cid = h->cid;
    e.sid = h->extra;
    e.dbrType = (int)h->type;
    e.count = h->count;
    native(&e);
    ch = ebpfMonCaChannelSet(s, &h->cid, &h->extra, name);
    if (ch) {
        ch->type = e.dbrType;
        ch->count = e.count;
    }
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void gone(ebpfMonCaState *s, const ebpfMonMessage *m, ebpfMonCaChannel *ch, uint32_t cid, uint32_t sid)
{
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireChannelGone, m);
    char name[EBPFMON_CA_NAME_MAX + 1] = "";

    e.name = name;
    e.cid = cid;
    e.sid = sid;
    if (ch) {
        strcpy(name, ch->name); /* no longer than that when it was made */
        e.cid = ch->cid;
        e.sid = ch->sid;
        ebpfMonCaChannelRemove(s, ch);
    }
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void value(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonIdTable *t = h->cmd == EBPFMON_CA_EVENT_ADD ? &s->events : &s->reads;
    const ebpfMonIdEntry *asked = ebpfMonIdFind(t, h->extra);
    ebpfMonWireEvent e;

    if (!asked)
        return;
    e = eventOf(s, ebpfMonWireValue, m);
    nameBySid(s, &e, asked->extra);
    if (t == &s->reads)
        ebpfMonIdRemove(t, h->extra);
    /* m_cid is the status, but in a reply to the old READ. */
    if (h->size && (h->cid == EBPFMON_CA_NORMAL || h->cmd == EBPFMON_CA_READ) && elements(s, m, h, &e))
        ebpfMonCircuitEmit(s->circuit, &e);
}

static void written(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const ebpfMonIdEntry *asked = ebpfMonIdFind(&s->notifies, h->extra);
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireReply, m);

    if (asked) {
        e.id = asked->value;
        nameBySid(s, &e, asked->extra);
        ebpfMonIdRemove(&s->notifies, h->extra);
    }
    e.replyAsked = 1;
    e.status = h->cid;
    e.ok = e.status == EBPFMON_CA_NORMAL;
    e.denied = e.status == EBPFMON_CA_NOWTACCESS;
    ebpfMonCircuitEmit(s->circuit, &e);
}

/* An exception: the header of the request that failed, and a text. */
static void error(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const uint8_t *p = m->p + h->head;
    size_t have = m->have - h->head;
    char text[256] = "";
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireReply, m);
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
    nameBySid(s, &e, request.cid);
    e.status = h->extra;
    /* caproto's servers have ECA_PUTFAIL for all that goes wrong: "Python exception: Forbidden …" (server/common.py) */
    e.denied = e.status == EBPFMON_CA_NOWTACCESS || strstr(text, "exception: Forbidden") != NULL;
    e.message = text;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void found(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonWireEvent e = eventOf(s, ebpfMonWireFound, m);

    ebpfMonCaServer(&e.peer, h->cid, h->type);
    e.cid = h->extra;
    ebpfMonCircuitEmit(s->circuit, &e);
}

static void fromServer(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    ebpfMonCaChannel *ch;

    switch (h->cmd) {
    case EBPFMON_CA_WRITE_NOTIFY:
        written(s, m, h);
        break;
    case EBPFMON_CA_EVENT_ADD:
    case EBPFMON_CA_READ:
    case EBPFMON_CA_READ_NOTIFY:
        value(s, m, h);
        break;
    case EBPFMON_CA_ERROR:
        error(s, m, h);
        break;
    case EBPFMON_CA_CREATE_CHAN:
        created(s, m, h);
        break;
    case EBPFMON_CA_CREATE_CH_FAIL:
        ch = ebpfMonCaByCid(s, h->cid);
        if (ch && !ch->hasSid)
            ebpfMonCaChannelRemove(s, ch);
        break;
    case EBPFMON_CA_CLEAR_CHANNEL:
        gone(s, m, ebpfMonCaBySid(s, h->cid), h->extra, h->cid);
        break;
    case EBPFMON_CA_SERVER_DISCONN:
        gone(s, m, ebpfMonCaByCid(s, h->cid), h->cid, 0);
        break;
    case EBPFMON_CA_SEARCH:
        found(s, m, h);
        break;
    default: /* nothing to tell */
        break;
    }
}

static void message(void *state, const ebpfMonMessage *m)
{
    ebpfMonCaHeader h;

    if (ebpfMonCaHeaderParse(&h, m->p, m->have) <= 0 || m->have < h.head)
        return;
    if (m->fromServer)
        fromServer(state, m, &h);
    else
        fromClient(state, m, &h);
}

/* Numbers are given anew for each channel and request, so what is known stays true. */
static void gap(void *state, int fromServer)
{
    (void)state;
    (void)fromServer;
}

static void name(void *state, uint32_t sid, const char *text)
{
    ebpfMonCaState *s = state;
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, sid);
    uint32_t cid = ch ? ch->cid : 0;

    ebpfMonCaChannelSet(s, ch && ch->hasCid ? &cid : NULL, &sid, text);
}

const ebpfMonProtocol ebpfMonCaProtocol = {
    .id = ebpfMonWireCa,
    .headerMax = EBPFMON_CA_HEADER_MAX,
    .frame = frame,
    .open = openState,
    .close = closeState,
    .message = message,
    .gap = gap,
    .name = name,
    .datagram = ebpfMonCaDatagram
};

/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "wire/caEvent.h"
#include "wire/caRequest.h"

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

    if (!ebpfMonCaEventElements(s, &e, m, h)) { /* this type does not exist: the server will refuse the write */
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
    ebpfMonCaEventName(s, &e, h->cid);
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

    ebpfMonCaEventName(s, &e, h->cid);
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
    ebpfMonCaEventName(s, &e, sid);
    ebpfMonCaEventNative(&e);
    ebpfMonCircuitEmit(s->circuit, &e);
}

void ebpfMonCaRequest(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
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

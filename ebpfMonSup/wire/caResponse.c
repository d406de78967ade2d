/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "wire/caDatagram.h"
#include "wire/caEvent.h"
#include "wire/caResponse.h"
#include "wire/caType.h"

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
    ebpfMonCaEventNative(&e);
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
    ebpfMonCaEventName(s, &e, asked->extra);
    if (t == &s->reads)
        ebpfMonIdRemove(t, h->extra);
    /* m_cid is the status; only the reply to the old READ has none */
    if (h->size && (h->cid == EBPFMON_CA_NORMAL || h->cmd == EBPFMON_CA_READ) && ebpfMonCaEventElements(s, &e, m, h))
        ebpfMonCircuitEmit(s->circuit, &e);
}

static void noteWritten(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
{
    const ebpfMonIdEntry *asked = ebpfMonIdFind(&s->notifies, h->extra);
    ebpfMonWireEvent e = ebpfMonCaEvent(s, ebpfMonWireReply, m);

    if (asked) {
        e.id = asked->value;
        ebpfMonCaEventName(s, &e, asked->extra);
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
    ebpfMonCaEventName(s, &e, request.cid);
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

void ebpfMonCaResponse(ebpfMonCaState *s, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
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

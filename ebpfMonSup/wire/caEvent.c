/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/caEvent.h"

void ebpfMonCaEventName(const ebpfMonCaState *s, ebpfMonWireEvent *e, uint32_t sid)
{
    const ebpfMonCaChannel *ch = ebpfMonCaBySid(s, sid);

    e->sid = sid;
    if (ch) {
        e->name = ch->name;
        e->cid = ch->cid;
    }
}

int ebpfMonCaEventElements(ebpfMonCaState *s, ebpfMonWireEvent *e, const ebpfMonMessage *m, const ebpfMonCaHeader *h)
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

void ebpfMonCaEventNative(ebpfMonWireEvent *e)
{
    int known = e->dbrType >= 0 && e->dbrType < EBPFMON_CA_TYPES;

    e->baseType = known ? ebpfMonCaTypes[e->dbrType].base : -1;
    e->elementSize = known ? ebpfMonCaTypes[e->dbrType].size : 0;
}

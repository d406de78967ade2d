/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "trace/stamp.h"
#include "trace/traceChain.h"

ebpfMonChainId ebpfMonTraceChainGetId(const ebpfMonTraceChain *c)
{
    return (ebpfMonChainId){
        .iocId = c->chain.head.iocId, .tid = c->chain.head.tid, .begin = c->chain.begin,
    };
}

ebpfMonChainId ebpfMonTraceChainGetBeginner(const ebpfMonTraceChain *c)
{
    return (ebpfMonChainId){
        .iocId = c->chain.head.iocId, .tid = c->chain.causeTid, .begin = c->chain.causeBegin,
    };
}

static int compareStamps(const void *a, const void *b)
{
    const struct ebpfMonChainRec *x = a, *y = b;
    int64_t tx = ebpfMonStampToUnix(x->time), ty = ebpfMonStampToUnix(y->time);

    return tx < ty ? -1 : tx > ty;
}

/* 1 + slot to 1 + index; 0: none, or a record that is not in the catalogue. */
static uint32_t findIndex(const ebpfMonTarget *t, uint32_t slot)
{
    return slot && slot - 1 - t->slot < t->cat->count ? slot - t->slot : 0;
}

ebpfMonTraceChain *ebpfMonTraceChainNew(const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                                        const struct ebpfMonChainRec *rec, uint32_t count)
{
    ebpfMonTraceChain *c = malloc(sizeof(*c) + count * sizeof(*rec));
    uint32_t n = 0;

    if (!c)
        return NULL;
    memset(c, 0, sizeof(*c));
    c->chain = *chain;
    c->chain.rootSlot -= t->slot;
    c->chain.outer = findIndex(t, chain->outer);
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
        c->chain.async[i] = findIndex(t, chain->async[i]);
    for (uint32_t i = 0; i < count; i++)
        if (rec[i].slot - t->slot < t->cat->count) {
            c->rec[n] = rec[i];
            c->rec[n++].slot -= t->slot;
        }
    c->count = n;
    qsort(c->rec, n, sizeof(c->rec[0]), compareStamps);
    return c;
}

void ebpfMonTraceChainSetSource(const ebpfMonTarget *t, ebpfMonTraceChain *c, const struct ebpfMonHandOver *from)
{
    long root = ebpfMonCatalogueFindAddr(t->cat, from->source.root);

    c->source = (ebpfMonChainId){ .iocId = t->iocId, .tid = from->source.tid, .begin = from->source.begin };
    c->sourceRoot = root >= 0 ? (uint32_t)root + 1 : 0;
    c->delay = from->delay;
}

int ebpfMonTraceChainCompletes(const ebpfMonTraceChain *c, const ebpfMonTraceChain *source)
{
    return c->chain.causeBegin == source->chain.begin && c->chain.causeTid == source->chain.head.tid;
}

int ebpfMonTraceChainIsHandedOverBy(const ebpfMonTraceChain *c, const ebpfMonTraceChain *source)
{
    return c->source.iocId && !c->chain.causeBegin && c->source.begin == source->chain.begin &&
           c->source.tid == source->chain.head.tid;
}

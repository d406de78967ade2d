/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "trace/cpLinkSources.h"
#include "trace/traceChain.h"

#define HASH 4096 /* a power of two */

static ebpfMonTraceChain *known[HASH];

static ebpfMonTraceChain **bucket(uint32_t tid, uint64_t begin)
{
    return &known[((begin + tid) * 0x9e3779b97f4a7c15ull >> 40) % HASH];
}

void ebpfMonTraceChainRemember(ebpfMonTraceChain *half)
{
    ebpfMonTraceChain **p = bucket(half->chain.head.tid, half->chain.begin);

    while (*p)
        p = &(*p)->same;
    *p = half;
}

void ebpfMonTraceChainForget(const ebpfMonTraceChain *half)
{
    ebpfMonTraceChain **p = bucket(half->chain.head.tid, half->chain.begin);

    while (*p && *p != half)
        p = &(*p)->same;
    if (*p)
        *p = half->same;
}

ebpfMonTraceChain *ebpfMonTraceChainFind(const ebpfMonChainId *chain)
{
    ebpfMonTraceChain *half = *bucket(chain->tid, chain->begin);

    while (half && (half->chain.begin != chain->begin || half->chain.head.tid != chain->tid ||
                    half->chain.head.iocId != chain->iocId))
        half = half->same;
    return half;
}

static int byTime(const void *a, const void *b)
{
    const struct ebpfMonChainRec *x = a, *y = b;
    int64_t tx = ebpfMonStampNs(x->time), ty = ebpfMonStampNs(y->time);

    return tx < ty ? -1 : tx > ty;
}

ebpfMonChainId ebpfMonTraceChainId(const ebpfMonTraceChain *half)
{
    return (ebpfMonChainId){
        .iocId = half->chain.head.iocId, .tid = half->chain.head.tid, .begin = half->chain.begin,
    };
}

ebpfMonChainId ebpfMonTraceChainBegunBy(const ebpfMonTraceChain *half)
{
    return (ebpfMonChainId){
        .iocId = half->chain.head.iocId, .tid = half->chain.causeTid, .begin = half->chain.causeBegin,
    };
}

ebpfMonTraceChain *ebpfMonTraceChainNew(const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                            const struct ebpfMonChainRec *rec, uint32_t count)
{
    ebpfMonTraceChain *half = malloc(sizeof(*half) + count * sizeof(*rec));
    uint32_t n = 0;

    if (!half)
        return NULL;
    half->next = half->same = NULL;
    half->trace = NULL;
    half->chain = *chain;
    half->chain.rootSlot -= t->slot;
    half->chain.outer = chain->outer && chain->outer - 1 - t->slot < t->cat->count ? chain->outer - t->slot : 0;
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++) {
        uint32_t index = chain->async[i] - 1 - t->slot;

        half->chain.async[i] = chain->async[i] && index < t->cat->count ? index + 1 : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        if (rec[i].slot - t->slot < t->cat->count) {
            half->rec[n] = rec[i];
            half->rec[n++].slot -= t->slot;
        }
    half->count = n;
    qsort(half->rec, n, sizeof(half->rec[0]), byTime);
    memset(&half->by, 0, sizeof(half->by));
    half->byRoot = 0;
    half->delay = 0;
    return half;
}

void ebpfMonTraceChainSetSource(const ebpfMonTarget *t, ebpfMonTraceChain *half, const struct ebpfMonHandOver *from)
{
    long root = ebpfMonCatalogueFindAddr(t->cat, from->by.root);

    half->by = (ebpfMonChainId){ .iocId = t->iocId, .tid = from->by.tid, .begin = from->by.begin };
    half->byRoot = root >= 0 ? (uint32_t)root + 1 : 0;
    half->delay = from->delay;
}

void ebpfMonTraceChainNoteStamps(const ebpfMonTraceChain *half)
{
    ebpfMonChainId id = ebpfMonTraceChainId(half);

    for (uint32_t i = 0; i < half->count; i++)
        ebpfMonCpLinkSourcesAdd(&id, half->chain.rootSlot, i, half->rec[i].slot, half->rec[i].time);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "trace/trace.h"

/* --- a chain --- */

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

/* --- a trace --- */

ebpfMonTrace *ebpfMonTraceNew(const ebpfMonTarget *t)
{
    ebpfMonTrace *trace = calloc(1, sizeof(*trace));

    if (!trace)
        return NULL;
    trace->iocId = t->iocId;
    trace->cat = ebpfMonCatalogueHold(t->cat);
    return trace;
}

void ebpfMonTraceFree(ebpfMonTrace *trace)
{
    while (trace->first) {
        ebpfMonTraceChain *c = trace->first;

        trace->first = c->next;
        free(c);
    }
    ebpfMonCatalogueRelease(trace->cat);
    free(trace->put);
    free(trace->cpLink);
    free(trace);
}

void ebpfMonTraceAppend(ebpfMonTrace *trace, ebpfMonTraceChain *c)
{
    *(trace->last ? &trace->last->next : &trace->first) = c;
    trace->last = c;
    c->next = NULL;
    c->trace = trace;
    trace->chains++;
    trace->records += c->count;
    if (c->chain.head.ktime > trace->end)
        trace->end = c->chain.head.ktime;
}

void ebpfMonTraceAddAsync(ebpfMonTrace *trace, uint32_t number)
{
    unsigned i = 0;

    if (!number)
        return;
    while (i < EBPFMON_TRACE_ASYNC && trace->async[i] && trace->async[i] != number)
        i++;
    if (i < EBPFMON_TRACE_ASYNC)
        trace->async[i] = number;
    else
        trace->isIncomplete = 1;
}

void ebpfMonTraceRemoveAsync(ebpfMonTrace *trace, uint32_t number)
{
    for (unsigned i = 0; i < EBPFMON_TRACE_ASYNC; i++)
        if (trace->async[i] == number)
            trace->async[i] = 0;
}

int ebpfMonTraceHasAsync(const ebpfMonTrace *trace)
{
    for (unsigned i = 0; i < EBPFMON_TRACE_ASYNC; i++)
        if (trace->async[i])
            return 1;
    return 0;
}

ebpfMonChainId ebpfMonTraceGetCause(const ebpfMonTrace *trace)
{
    return trace->put ? trace->put->linkChain : trace->source.chain;
}

const ebpfMonTraceChain *ebpfMonTraceFindSpanOwner(const ebpfMonTrace *trace, const ebpfMonTraceChain *c)
{
    const ebpfMonTraceChain *above = trace->first;
    ebpfMonChainId beginner = ebpfMonTraceChainGetBeginner(c), id;

    if (!beginner.begin)
        return c;
    for (; above && above != c; above = above->next) { /* it stands in front of what completes it */
        id = ebpfMonTraceChainGetId(above);
        if (ebpfMonChainIdIsSame(&id, &beginner))
            return ebpfMonTraceFindSpanOwner(trace, above);
    }
    return c;
}

int ebpfMonTraceHasMessage(const ebpfMonTrace *trace)
{
    return trace->put && trace->put->key.seqKind == EBPFMON_SEQ_MESSAGE && trace->put->key.peer.sport;
}

int ebpfMonTraceHasRecord(const ebpfMonTrace *trace, int (*isWanted)(void *arg, uint32_t index), void *arg)
{
    for (const ebpfMonTraceChain *c = trace->first; c; c = c->next) {
        for (uint32_t i = 0; i < c->count; i++)
            if (isWanted(arg, c->rec[i].slot))
                return 1;
        for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
            if (c->chain.async[i] && isWanted(arg, c->chain.async[i] - 1))
                return 1;
    }
    return 0;
}

uint32_t ebpfMonTraceCountRecords(const ebpfMonTrace *trace)
{
    uint32_t total = 0;

    for (const ebpfMonTraceChain *c = trace->first; c; c = c->next)
        total += c->chain.total;
    return total;
}

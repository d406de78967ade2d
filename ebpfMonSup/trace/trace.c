/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/trace.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "ioc/baseLayout.h"
#include "put/putWriter.h"
#include "trace/trace.h"

/* --- sources of CP links --- */

#define STAMPS 16384 /* a power of two */

typedef struct {
    uint64_t stamp;
    ebpfMonChainId chain;
    uint32_t root, place, index;
} stampedRecord;

struct ebpfMonCpLinkSources {
    ebpfMonTargets *targets;
    stampedRecord stamped[STAMPS]; /* by hash; the newest record of each hash */
};

ebpfMonCpLinkSources *ebpfMonCpLinkSourcesNew(ebpfMonTargets *targets)
{
    ebpfMonCpLinkSources *sources = calloc(1, sizeof(*sources));

    if (sources)
        sources->targets = targets;
    return sources;
}

void ebpfMonCpLinkSourcesFree(ebpfMonCpLinkSources *sources)
{
    free(sources);
}

/* The record is part of the hash: many records can have one time stamp, that of an event or of another record (TSE,
 * TSEL). */
static unsigned hashStamp(uint32_t iocId, uint32_t index, uint64_t stamp)
{
    return (unsigned)(ebpfMonHashInteger(stamp ^ (uint64_t)index << 20 ^ (uint64_t)iocId << 44) >> 40) % STAMPS;
}

void ebpfMonCpLinkSourcesAdd(ebpfMonCpLinkSources *sources, const ebpfMonChainId *chain, uint32_t root, uint32_t place,
                             uint32_t index, uint64_t stamp)
{
    sources->stamped[hashStamp(chain->iocId, index, stamp)] =
        (stampedRecord){ .stamp = stamp, .chain = *chain, .root = root, .place = place, .index = index };
}

/* The note of the record whose time stamp is somewhere in the struct caLink. NULL: none. */
static const stampedRecord *findStamp(const ebpfMonCpLinkSources *sources, const ebpfMonTarget *from, uint32_t index,
                                      const uint8_t *caLink)
{
    for (unsigned at = 0; at + 8 <= EBPFMON_CALINK_SIZE; at += 4) {
        const stampedRecord *s;
        uint64_t stamp;

        memcpy(&stamp, caLink + at, sizeof(stamp));
        s = &sources->stamped[hashStamp(from->iocId, index, stamp)];
        if (stamp && s->stamp == stamp && s->index == index && s->chain.iocId == from->iocId)
            return s;
    }
    return NULL;
}

ebpfMonCpLinkResult ebpfMonCpLinkSourcesFind(const ebpfMonCpLinkSources *sources, ebpfMonTarget *t, uint32_t root,
                                             ebpfMonCpLink *link, ebpfMonCpLinkSource *source)
{
    ebpfMonCpLinkResult result = ebpfMonCpLinkUnknown;

    if (!link->name[0] &&
        ebpfMonThreadJobReadCpLink(t, t->cat->rec[root].addr, link->at, link->name, sizeof(link->name)))
        return ebpfMonLateReadsAreWanted(t->eventThread.reads) ? ebpfMonCpLinkAwaited : ebpfMonCpLinkUnknown;
    link->name[strcspn(link->name, ".")] = 0; /* the record that it watches */
    for (const ebpfMonTarget *from = ebpfMonTargetsGetFirst(sources->targets); from; from = from->next) {
        long index = from->cat ? ebpfMonCatalogueFind(from->cat, link->name) : -1;
        const stampedRecord *s = index >= 0 ? findStamp(sources, from, (uint32_t)index, link->start) : NULL;

        if (index >= 0 && from->level >= ebpfMonLevelChains && !from->gone) {
            link->sourcePid = (uint32_t)from->pid;
            result = ebpfMonCpLinkAwaited;
        }
        if (!s)
            continue;
        source->chain = s->chain;
        source->place = s->place;
        snprintf(source->record, sizeof(source->record), "%s", ebpfMonCatalogueName(from->cat, s->index));
        snprintf(source->root, sizeof(source->root), "%s",
                 s->root < from->cat->count ? ebpfMonCatalogueName(from->cat, s->root) : source->record);
        snprintf(source->ioc, sizeof(source->ioc), "%s", from == t ? "" : from->name);
        return ebpfMonCpLinkFound;
    }
    return result;
}

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

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "put/threadPuts.h"

#define SETS 64
#define WAYS 4

static ebpfMonThreadPut lastPuts[SETS][WAYS];

static ebpfMonThreadPut *find(uint32_t iocId, uint32_t tid)
{
    ebpfMonThreadPut *set = lastPuts[tid % SETS];

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].tid == tid && set[i].iocId == iocId)
            return &set[i];
    return NULL;
}

const ebpfMonThreadPut *ebpfMonThreadPutsFindForChain(const struct ebpfMonChain *chain, uint64_t root)
{
    const ebpfMonThreadPut *p = find(chain->head.iocId, chain->head.tid);

    return p && p->seen.precord == root && p->seen.at >= chain->begin && p->seen.at <= chain->head.ktime ? p : NULL;
}

/* The first one from the chain's begin on: a thread may serve many clients (pvxs), and have made puts since. */
const char *ebpfMonThreadPutsFindWriter(uint32_t iocId, const struct ebpfMonSourceChain *source)
{
    const ebpfMonThreadPut *p = find(iocId, source->tid);
    const ebpfMonPutSeen *first = p ? &p->seen : NULL;
    int all = 1, same = 1;

    if (!first || first->at < source->begin)
        return "";
    for (unsigned i = 0; i < EBPFMON_PUTS_BEFORE; i++) {
        const ebpfMonPutSeen *b = &p->before[i];

        if (b->at < source->begin) {
            all = 0;
            continue;
        }
        same &= b->precord == first->precord && strcmp(b->who, first->who) == 0;
        if (b->at < first->at)
            first = b;
    }
    return first->precord == source->root && (!all || same) ? first->who : "";
}

void ebpfMonThreadPutsAdd(const struct ebpfMonPutEvent *ev, const char *who)
{
    ebpfMonThreadPut *p, *set = lastPuts[ev->head.tid % SETS];

    if (ev->site != EBPFMON_SITE_PUT || (ev->root && ev->root != ev->precord))
        return;
    p = find(ev->head.iocId, ev->head.tid);
    for (unsigned i = 0; !p && i < WAYS; i++)
        if (!set[i].tid)
            p = &set[i];
    if (!p) {
        p = &set[0];
        for (unsigned i = 1; i < WAYS; i++)
            if (set[i].seen.at < p->seen.at)
                p = &set[i];
    }
    if (p->tid != ev->head.tid || p->iocId != ev->head.iocId)
        memset(p, 0, sizeof(*p));
    else
        p->before[p->next++ % EBPFMON_PUTS_BEFORE] = p->seen;
    p->iocId = ev->head.iocId;
    p->tid = ev->head.tid;
    p->id = ev->id;
    p->seen.at = ev->head.ktime;
    p->seen.precord = ev->precord;
    p->byClient = ev->who.isCA || ev->who.peer.addr;
    snprintf(p->seen.who, sizeof(p->seen.who), "%s", who);
    p->done = 0;
}

void ebpfMonThreadPutsComplete(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonPutSummary *put)
{
    ebpfMonThreadPut *p = find(iocId, tid);

    if (!p || p->id != id)
        return;
    p->put = *put;
    p->done = 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "monitor/lastPuts.h"

#define SETS 64
#define WAYS 4

static ebpfMonLastPut lastPuts[SETS][WAYS];

static ebpfMonLastPut *find(uint32_t iocId, uint32_t tid)
{
    ebpfMonLastPut *set = lastPuts[tid % SETS];

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].tid == tid && set[i].iocId == iocId)
            return &set[i];
    return NULL;
}

const ebpfMonLastPut *ebpfMonLastPutOf(const struct ebpfMonChain *chain, uint64_t root)
{
    const ebpfMonLastPut *p = find(chain->head.iocId, chain->head.tid);

    return p && p->precord == root && p->at >= chain->begin && p->at <= chain->head.ktime ? p : NULL;
}

const char *ebpfMonLastPutBy(uint32_t iocId, const struct ebpfMonGiver *giver)
{
    const ebpfMonLastPut *p = find(iocId, giver->tid);

    return p && p->precord == giver->root && p->at >= giver->begin ? p->who : "";
}

void ebpfMonLastPutSeen(const struct ebpfMonPutEvent *ev, const char *who)
{
    ebpfMonLastPut *p, *set = lastPuts[ev->head.tid % SETS];

    if (ev->site != EBPFMON_SITE_PUT || (ev->root && ev->root != ev->precord))
        return;
    p = find(ev->head.iocId, ev->head.tid);
    for (unsigned i = 0; !p && i < WAYS; i++)
        if (!set[i].tid)
            p = &set[i];
    if (!p) {
        p = &set[0];
        for (unsigned i = 1; i < WAYS; i++)
            if (set[i].at < p->at)
                p = &set[i];
    }
    p->iocId = ev->head.iocId;
    p->tid = ev->head.tid;
    p->at = ev->head.ktime;
    p->id = ev->id;
    p->precord = ev->precord;
    p->byClient = ev->who.isCA || ev->who.peer.addr;
    snprintf(p->who, sizeof(p->who), "%s", who);
    p->done = 0;
}

void ebpfMonLastPutDone(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonTracePut *put)
{
    ebpfMonLastPut *p = find(iocId, tid);

    if (!p || p->id != id)
        return;
    p->put = *put;
    p->done = 1;
}

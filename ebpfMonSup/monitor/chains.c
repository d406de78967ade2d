/* SPDX-License-Identifier: BSD-3-Clause */
#include "monitor/chains.h"
#include "monitor/traces.h"

#define RECORDS     2048 /* of one chain that are kept */
#define OPEN_CHAINS   8    /* chains of different threads can arrive part by part at a time */

typedef struct {
    uint32_t tid, count;
    uint64_t end; /* 0: free */
    struct ebpfMonChainRec rec[RECORDS];
} parts;

static parts open[OPEN_CHAINS];

void ebpfMonChainPart(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size)
{
    const struct ebpfMonChain *chain = &ev->chain;
    parts *c = NULL;

    if (size < sizeof(*ev) || chain->count > EBPFMON_CHUNK || t->slot == UINT32_MAX || !t->cat ||
        chain->head.ktime < t->slotAt || chain->rootSlot - t->slot >= t->cat->count)
        return;
    if (chain->part == 0 && chain->last) {
        ebpfMonTracesChain(t, chain, ev->rec, chain->count);
        return;
    }
    for (unsigned i = 0; i < OPEN_CHAINS; i++)
        if (open[i].tid == chain->head.tid && open[i].end == chain->head.ktime)
            c = &open[i];
    if (!c) {
        if (chain->part != 0)
            return; /* its beginning was lost, and counted as such */
        c = &open[0]; /* a free one, or the oldest: its other parts were lost */
        for (unsigned i = 1; i < OPEN_CHAINS; i++)
            if (open[i].end < c->end)
                c = &open[i];
        c->tid = chain->head.tid;
        c->end = chain->head.ktime;
        c->count = 0;
    }
    for (uint32_t i = 0; i < chain->count && c->count < RECORDS; i++)
        c->rec[c->count++] = ev->rec[i];
    if (chain->last) {
        ebpfMonTracesChain(t, chain, c->rec, c->count);
        c->end = 0;
    }
}

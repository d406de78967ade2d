/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/clock.h"
#include "trace/chainParts.h"
#include "model/losses.h"
#include "trace/traces.h"

#define RECORDS     2048  /* of one chain that are kept */
#define CLOCKS_NS   20000 /* two readings of two clocks differ by less */
#define LATE_CHAINS 10    /* in a row: the IOC's clock is late */
#define OPEN_CHAINS 32    /* chains of different threads can arrive part by part at a time */
#define STALE_NS    1000000000ull /* what did not come by then was lost in the ring, and counted there */

typedef struct {
    uint32_t tid, count;
    uint64_t end; /* 0: free */
    struct ebpfMonChainRec rec[RECORDS];
} parts;

static parts open[OPEN_CHAINS];
static parts single; /* one that comes in one part takes no place */

/* A stamp of a device's, or another record's, may be of any time. */
static int tells(const ebpfMonTarget *t, const struct ebpfMonChainRec *rec)
{
    uint32_t index = rec->slot - t->slot;

    return index < t->cat->count && !(t->cat->rec[index].flags & EBPFMON_REC_TSE);
}

/* What processed while nobody looked, as when the probes are attached, is counted with the next chain that could have
 * done it (bpf/walk.bpf.h, look), but is none of it: its stamp is older. An IOC may have a clock of its own (an event
 * receiver's, say): the newest stamp tells where the chain's begin is in that. If even that one is of before, by our
 * clock, either nothing is of this chain, or that is a clock which is late: then it is so each time. */
static uint32_t dropEarlier(ebpfMonTarget *t, const struct ebpfMonChain *chain, parts *c)
{
    epicsTimeStamp begin = ebpfMonClockWallTime(chain->begin);
    int64_t from = (int64_t)begin.secPastEpoch * 1000000000 + begin.nsec - CLOCKS_NS, newest = INT64_MIN;
    uint32_t n = 0, all = c->count;

    if (chain->flags & EBPFMON_CHAIN_LATE)
        return 0;
    for (uint32_t i = 0; i < all; i++)
        if (tells(t, &c->rec[i]) && ebpfMonStampNs(c->rec[i].time) > newest)
            newest = ebpfMonStampNs(c->rec[i].time);
    if (newest == INT64_MIN)
        return 0;
    t->eventThread.lateChains = newest >= from ? 0 : t->eventThread.lateChains + 1;
    if (newest >= from || t->eventThread.lateChains > LATE_CHAINS)
        from = newest - (int64_t)(chain->head.ktime - chain->begin) - CLOCKS_NS;
    for (uint32_t i = 0; i < all; i++)
        if (!tells(t, &c->rec[i]) || ebpfMonStampNs(c->rec[i].time) >= from)
            c->rec[n++] = c->rec[i];
    c->count = n;
    return all - n;
}

static void tell(ebpfMonTarget *t, const struct ebpfMonChain *chain, parts *c)
{
    struct ebpfMonChain whole = *chain;

    whole.total -= dropEarlier(t, chain, c);
    if (c->count || whole.async[0])
        ebpfMonTracesAddChain(t, &whole, c->rec, c->count);
}

void ebpfMonChainPartsAdd(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size)
{
    const struct ebpfMonChain *chain = &ev->chain;
    parts *c = NULL;

    if (size < sizeof(*ev) || chain->count > EBPFMON_CHUNK || t->slot == UINT32_MAX || !t->cat ||
        chain->head.ktime < t->slotAt || chain->rootSlot - t->slot >= t->cat->count)
        return;
    if (chain->part == 0 && chain->last) {
        memcpy(single.rec, ev->rec, chain->count * sizeof(ev->rec[0]));
        single.count = chain->count;
        tell(t, chain, &single);
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
        if (c->end && c->end + STALE_NS > chain->head.ktime)
            ebpfMonLossesAdd(ebpfMonLossParts);
        c->tid = chain->head.tid;
        c->end = chain->head.ktime;
        c->count = 0;
    }
    for (uint32_t i = 0; i < chain->count && c->count < RECORDS; i++)
        c->rec[c->count++] = ev->rec[i];
    if (chain->last) {
        tell(t, chain, c);
        c->end = 0;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "trace/chainParts.h"
#include "trace/trace.h"
#include "model/audits.h"

#define CLOCKS_NS   20000 /* the difference between two readings of two clocks is less than this */
#define LATE_CHAINS 10    /* in a row: the IOC's clock is late */
#define OPEN_CHAINS 32    /* chains of different threads whose parts can arrive at the same time */
#define STALE_NS    1000000000ull /* parts that have not come by then were lost in the ring, and counted there */

typedef struct {
    uint32_t tid, count;
    uint64_t end; /* of the chain, monotonic ns; 0: free */
    struct ebpfMonChainRec rec[EBPFMON_CHAIN_RECORDS];
} openChain;

struct ebpfMonChainParts {
    ebpfMonLosses *losses;
    ebpfMonChainFn onChain;
    void     *arg;
    openChain open[OPEN_CHAINS];
    openChain single; /* a chain of one part: it needs no place in "open" */
};

ebpfMonChainParts *ebpfMonChainPartsNew(ebpfMonLosses *losses, ebpfMonChainFn onChain, void *arg)
{
    ebpfMonChainParts *parts = calloc(1, sizeof(*parts));

    if (parts) {
        parts->losses = losses;
        parts->onChain = onChain;
        parts->arg = arg;
    }
    return parts;
}

void ebpfMonChainPartsFree(ebpfMonChainParts *parts)
{
    free(parts);
}

/* The time stamp of a device, or of another record (TSE, TSEL), may be of any time. */
static int isStampOwn(const ebpfMonTarget *t, const struct ebpfMonChainRec *rec)
{
    uint32_t index = rec->slot - t->slot;

    return index < t->cat->count && !(t->cat->rec[index].flags & EBPFMON_REC_TSE);
}

/* The newest time stamp of the chain, ns since 1970; INT64_MIN: none that tells anything. */
static int64_t findNewestStamp(const ebpfMonTarget *t, const openChain *c)
{
    int64_t newest = INT64_MIN;

    for (uint32_t i = 0; i < c->count; i++)
        if (isStampOwn(t, &c->rec[i]) && ebpfMonStampToUnix(c->rec[i].time) > newest)
            newest = ebpfMonStampToUnix(c->rec[i].time);
    return newest;
}

/*
 * Removes the records that processed before the chain began, and returns how many. What processed while nobody looked,
 * as when the probes are attached, is counted with the next chain that could have processed it
 * (bpf/chain/snapshot.bpf.h), but does not belong to that chain: its time stamp is older.
 *
 * An IOC may have a clock of its own (that of an event receiver, for example): then the newest time stamp tells when
 * the chain ended by that clock. If even the newest one is older than the chain by our clock, either nothing belongs to
 * the chain, or the IOC's clock is late; if it is late, all chains look like that.
 */
static uint32_t removeEarlierRecords(ebpfMonTarget *t, const struct ebpfMonChain *chain, openChain *c,
                                     uint64_t unixOffset)
{
    int64_t from = (int64_t)(chain->begin + unixOffset - CLOCKS_NS), newest;
    uint32_t n = 0, all = c->count;

    if (chain->flags & EBPFMON_CHAIN_LATE)
        return 0;
    newest = findNewestStamp(t, c);
    if (newest == INT64_MIN)
        return 0;
    t->eventThread.lateChains = newest >= from ? 0 : t->eventThread.lateChains + 1;
    if (newest >= from || t->eventThread.lateChains > LATE_CHAINS)
        from = (int64_t)((uint64_t)newest - (chain->head.ktime - chain->begin) - CLOCKS_NS);
    for (uint32_t i = 0; i < all; i++)
        if (!isStampOwn(t, &c->rec[i]) || ebpfMonStampToUnix(c->rec[i].time) >= from)
            c->rec[n++] = c->rec[i];
    c->count = n;
    return all - n;
}

static void passOn(ebpfMonChainParts *parts, ebpfMonTarget *t, const struct ebpfMonChain *chain, openChain *c,
                   uint64_t unixOffset)
{
    struct ebpfMonChain whole = *chain;

    whole.total -= removeEarlierRecords(t, chain, c, unixOffset);
    if (c->count || whole.async[0])
        parts->onChain(parts->arg, t, &whole, c->rec, c->count);
}

/* The place of the chain that this is a part of, for a first part a new place. NULL: its first part was lost in the
 * ring, and counted there. */
static openChain *findOpenChain(ebpfMonChainParts *parts, const struct ebpfMonChain *chain)
{
    openChain *oldest = &parts->open[0];

    for (unsigned i = 0; i < OPEN_CHAINS; i++) {
        openChain *c = &parts->open[i];

        if (c->tid == chain->head.tid && c->end == chain->head.ktime)
            return c;
        if (c->end < oldest->end)
            oldest = c;
    }
    if (chain->part != 0)
        return NULL;
    if (oldest->end && oldest->end + STALE_NS > chain->head.ktime)
        ebpfMonLossesAdd(parts->losses, ebpfMonLossParts);
    oldest->tid = chain->head.tid;
    oldest->end = chain->head.ktime;
    oldest->count = 0;
    return oldest;
}

void ebpfMonChainPartsAdd(ebpfMonChainParts *parts, ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size,
                          uint64_t unixOffset)
{
    const struct ebpfMonChain *chain = &ev->chain;
    openChain *c;

    if (size < sizeof(*ev) || chain->count > EBPFMON_CHUNK || t->slot == UINT32_MAX || !t->cat ||
        chain->head.ktime < t->slotAt || chain->rootSlot - t->slot >= t->cat->count)
        return;
    if (chain->part == 0 && chain->last) {
        memcpy(parts->single.rec, ev->rec, chain->count * sizeof(ev->rec[0]));
        parts->single.count = chain->count;
        passOn(parts, t, chain, &parts->single, unixOffset);
        return;
    }
    c = findOpenChain(parts, chain);
    if (!c)
        return;
    for (uint32_t i = 0; i < chain->count && c->count < EBPFMON_CHAIN_RECORDS; i++)
        c->rec[c->count++] = ev->rec[i];
    if (chain->last) {
        passOn(parts, t, chain, c, unixOffset);
        c->end = 0;
    }
}

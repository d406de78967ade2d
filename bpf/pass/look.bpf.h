/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* One look at a record reads its time stamp and if it is busy. The records that processed are added to a root. */
#ifndef EBPFMON_LOOK_BPF_H
#define EBPFMON_LOOK_BPF_H

#include "common/probe.bpf.h"
#include "pass/roots.bpf.h"

/* TIME of a record, and the bytes before it. One of these bytes is PACT. */
struct window {
    __u8  before[EBPFMON_TIME_WINDOW];
    __u64 time;
};

/* Reads place "at" of the table of closures. 0: there is none. */
static __always_inline int readClosureEntry(__u32 at, __u32 *entry)
{
    struct ebpfMonClosurePair *p = findInBlocks(&closure, at / 2, EBPFMON_BLOCK);

    if (!p)
        return 0;
    *entry = at & 1 ? p->entry[1] : p->entry[0];
    return 1;
}

static __always_inline int readWindow(struct window *w, __u64 addr, __u16 timeOff)
{
    return bpf_probe_read_user(w, sizeof(*w), (void *)(addr + timeOff - EBPFMON_TIME_WINDOW));
}

/* Nonzero: PACT is set. The bound is checked where it is used, because verifiers before 6.8 forget it with the
 * register. */
static __always_inline int isBusy(const struct window *w, __u32 pactBefore)
{
    FORGET_ORIGIN(pactBefore);
    return pactBefore < EBPFMON_TIME_WINDOW && w->before[pactBefore];
}

/* An epicsTimeStamp as a number that can be compared: its seconds are in the low half. */
static __always_inline __u64 stampOrder(__u64 time)
{
    return time << 32 | time >> 32;
}

/* Nonzero: this is the completion of a processing that a sweep has counted already. */
static __always_inline int takeEarly(struct ebpfMonRecState *st)
{
    __u32 early = st->early;

    if (early)
        st->early = 0;
    return early == EBPFMON_EARLY_SURE;
}

/* Returns the number of timed chains of this root so far. The caller holds the lock of the root. */
static __always_inline __u64 addLatency(struct ebpfMonRootStat *rs, __u64 latency, __u64 wait)
{
    rs->last = latency;
    __sync_fetch_and_add(&rs->sum, latency);
    if (latency > rs->max)
        rs->max = latency;
    if (wait) {
        __sync_fetch_and_add(&rs->waitSum, wait);
        if (wait > rs->waitMax)
            rs->waitMax = wait;
    }
    __sync_fetch_and_add(&rs->hist[ebpfMonBucket(latency) & (EBPFMON_BUCKETS - 1)], 1);
    __sync_fetch_and_add(&rs->count, 1);
    return *(volatile __u64 *)&rs->count;
}

#endif

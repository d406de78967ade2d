// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Quick chains of periodic scan lists, in an IOC whose passes are watched. At the end of such a chain only the clock is
 * read, and its time is noted. The sweep at the end of the pass finds which roots have processed, and gives the times
 * to them (foldQuick in sweep.bpf.c). Such a chain costs half as much as one with a look of its own, because its root,
 * the tables of the root, and the next record are not in the caches of the CPU.
 *
 * A chain is not quick if more must be known about it: it took long, waited for its lock, handed something over, or
 * may have begun an asynchronous record. While queries look at the roots of chains, no chain is quick; nor while the
 * probes of sweeps are attached or removed. Then ebpfmon_pass_next looks at it as at each other chain.
 */
#include "heldLocks.bpf.h"
#include "quickChain.bpf.h"

#ifndef EBPFMON_OLD_KERNEL /* no sweeps */

static __always_inline struct quickTimes *getQuickTimes(__u32 tid)
{
    static const struct quickTimes none;
    struct quickTimes *q = bpf_map_lookup_elem(&quick, &tid);

    if (q)
        return q;
    bpf_map_update_elem(&quick, &tid, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&quick, &tid);
}

/* Nonzero: this IOC may have quick chains. */
static __always_inline int hasQuickChains(const struct ebpfMonTargetConf *conf)
{
    return conf->hasQuick && conf->sweeps && conf->level == EBPFMON_CHAINS && !conf->untimed && !conf->endsOtherwise &&
           !rootsNeeded;
}

__attribute__((noinline)) int ebpfmon_begin_quick(__u64 mutex, __u64 now)
{
    struct ebpfMonListKey key = { .mutex = mutex };
    struct ebpfMonList *list;
    struct quickTimes *q;
    struct caller c;

    if (!findCaller(&c) || !hasQuickChains(c.conf) || !(q = getQuickTimes(c.tid)))
        return 0;
    key.tgid = c.tgid;
    list = bpf_map_lookup_elem(&lists, &key);
    q->begin = now;
    q->count = q->folded = 0;
    q->isOpen = list && !list->hasAsync;
    return 0;
}

/* Ends the chain: as endChain in chain.bpf.c, but its root may not have processed. */
static __always_inline void endQuick(struct thread *th, struct ebpfMonHeld *h, __u64 precord, __u64 took, __u64 now)
{
    h->root = precord;
    endScanChain(&th->seen.scan, h, now);
    th->seen.holds++;
    th->seen.holdSum += took;
    ebpfMonRecentAdd(&th->seen.hold, now, took, precord);
}

/* Begins the next chain: as noteLock. If the list is at its end, ebpfmon_end_pass removes the entry. */
static __always_inline void beginAfterQuick(struct thread *th, struct ebpfMonHeld *h)
{
    h->root = 0;
    h->lockSet = 0;
    h->got = 0;
    h->hasInner = 0;
    clearOffCpu(th);
    th->off.queueWait = 0;
    h->begin = bpf_ktime_get_ns();
}

__attribute__((noinline)) int ebpfmon_note_quick(__u64 precord, __u64 now)
{
    struct ebpfMonHeld *h;
    struct quickTimes *q;
    struct thread *th;
    struct caller c;
    __u64 took;
    __u32 n;

    if (!findCaller(&c) || !hasQuickChains(c.conf) || !(th = bpf_map_lookup_elem(&threads, &c.tid)) ||
        th->seen.heldCount != 1 || !th->seen.scan.period || th->locked.id)
        return 0;
    h = getHeld(th, 0);
    took = now - h->begin;
    if (!h->sp || isUntimed(&c, h) || h->handOvers || took >= LOCK_WAIT_LEAST ||
        (c.conf->slowNs && took >= c.conf->slowNs) || precord >> QUICK_ADDRESS_BITS)
        return 0;
    q = bpf_map_lookup_elem(&quick, &c.tid);
    if (!q || !q->isOpen || q->count >= QUICK_TIMES)
        return 0;
    n = q->count;
    barrier_var(n);
    q->entry[n & (QUICK_TIMES - 1)] = QUICK_ENTRY(precord, took);
    q->count = n + 1;
    countHits(&c, EBPFMON_HIT_ENTRY, 1);
    endQuick(th, h, precord, took, now);
    beginAfterQuick(th, h);
    return 1;
}

#endif

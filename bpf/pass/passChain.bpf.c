// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Chains of scan lists. scanList() (dbScan.c) goes from one record to the next in a loop. So one trap for each chain is
 * enough: at its call of dbScanUnlock() (ebpfmon_pass_next, chain.bpf.c). It ends a chain and begins the next, some 50
 * ns before the call of dbScanLock(). If sweeps count the passes (sweep.bpf.c), chains are timed in turns: this probe
 * is attached during a turn only. Between the turns a pass stands for its chains: it begins at the entry of scanList()
 * and ends with the list.
 */
#include "pass/passChain.bpf.h"
#include "pass/sweep.bpf.h"
#include "thread/heldLocks.bpf.h"

/* Notes a pass, or the rest of one, with chains that are not timed. */
static __always_inline void noteUntimed(const struct caller *c, struct thread *th, __u32 n, __u64 sp)
{
    struct ebpfMonHeld *h = getHeld(th, n);

    *h = (struct ebpfMonHeld){ .begin = bpf_ktime_get_ns(), .depth = 1, .sp = sp };
    th->passWait = readCpuWait();
    th->seen.heldCount = n + 1;
    th->seen.scan.timed = 0;
    if (n)
        return;
    takeLate(c, th);
    th->queueWait = 0;
}

/* What is needed of an element of a scan list (struct scan_element in dbScan.c). One read of all of it costs half as
 * much as two. */
struct scanElement {
    __u64 next, previous, list, precord;
};

_Static_assert(__builtin_offsetof(struct scanElement, next) == EBPFMON_ScanElement_node &&
               __builtin_offsetof(struct scanElement, precord) == EBPFMON_ScanElement_precord, "as in Base");

/* Reads an element. Returns its record; 0: there is none. */
static __always_inline __u64 readElement(__u64 at, struct scanElement *e)
{
    return at && !bpf_probe_read_user(e, sizeof(*e), (void *)at) ? e->precord : 0;
}

/* Begins the chain of the record to which the scan list goes next. */
static __always_inline void beginPassChain(const struct caller *c, struct thread *th, const struct scanElement *e,
                                           __u64 sp)
{
    __u32 n = th->seen.heldCount;

    if (n >= EBPFMON_NESTED)
        return;
    if (c->conf->untimed)
        noteUntimed(c, th, n, sp);
    else
        noteLock(c, th, n, 0, e->precord, bpf_ktime_get_ns(), sp);
    getHeld(th, n)->isLast = !e->next;
}

/* Begins the first chain of the list. */
static __always_inline void beginPass(const struct caller *c, __u64 list, __u64 sp)
{
    struct thread *th = getThread(c->tid);
    struct scanElement e;

    if (!th)
        return;
    /* the last pass may have been noted at the call of scanList(), on x86-64 one word above its entry. If another list
     * is in progress around this one, its entry is higher on the stack */
    dropEndedPasses(th, sp + 1 + sizeof(sp));
    if (!readElement(readPtr(list + EBPFMON_ScanList_list), &e))
        return;
    if (!th->seen.heldCount && isScanThread(&th->seen)) /* whatever its first record is: that may have left the list */
        beginScanPass(&th->seen.scan, e.precord, bpf_ktime_get_ns(), !c->conf->untimed);
    beginPassChain(c, th, &e, sp);
}

static __always_inline void seePass(__u64 list, __u64 sp, __u64 now)
{
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return;
#ifndef EBPFMON_OLD_KERNEL
    if (c.conf->sweeps && !c.conf->endsOtherwise)
        ebpfmon_begin_list(readPtr(list + EBPFMON_ScanList_lock), now);
#endif
    if (c.conf->level >= EBPFMON_CHAINS)
        beginPass(&c, list, sp);
}

/* scanList(scan_list *) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_pass_begin, __u64 list)
{
    RUN_TIMED(seePass(list, PT_REGS_SP(ctx), now));
}

/* Nonzero: the chain that has just ended was that of the last record of the list. A record that came to the list since
 * is processed in this pass, but its chain is not timed. To expect a record that does not come would be worse: the
 * thread would seem to hold its lock set until its next trap. */
static __always_inline int wasLast(struct thread *th, __u64 precord)
{
    __u32 n = th->seen.heldCount;
    const struct ebpfMonHeld *h;

    if (n >= EBPFMON_NESTED)
        return 0;
    h = getHeld(th, n);
    return h->sp && h->root == precord && h->isLast;
}

__attribute__((noinline)) int ebpfmon_begin_next(__u64 precord, __u64 sp)
{
    struct scanElement e;
    struct thread *th;
    struct caller c;

    if (!findCaller(&c) || !(th = bpf_map_lookup_elem(&threads, &c.tid)) || wasLast(th, precord))
        return 0;
    if (readElement(readPtr(readPtr(precord + c.conf->spvt) + EBPFMON_ScanElement_node), &e))
        beginPassChain(&c, th, &e, sp);
    return 0;
}

/* A pass, or a part of one, took so long, and none of its chains was timed. Decides if one of them may have been
 * slow. A pass takes some time also without a slow chain. If the thread waited for a CPU, that is no reason to look
 * closer. */
static __always_inline void judgeUntimed(const struct caller *c, const struct thread *th, __u64 took)
{
    __u64 limit = c->conf->slowNs, waited = readCpuWait() - th->passWait, least = th->seen.scan.least;
    __u32 tgid = c->tgid;
    struct ebpfMonPassNotes *notes;

    if (!limit || took < limit || took < least + limit / 2 || !(notes = bpf_map_lookup_elem(&passNotes, &tgid)))
        return;
    __sync_fetch_and_add(&notes->slow, 1);
    if (took >= waited + limit && took >= waited + least + limit / 2)
        __sync_fetch_and_add(&notes->slowItself, 1);
}

/* Ends a pass with chains that are not timed. */
static __always_inline void endUntimed(const struct caller *c, struct thread *th, const struct ebpfMonHeld *h,
                                       __u64 now)
{
    th->seen.heldCount--;
    th->seen.scan.timed = 0;
    if (!th->seen.heldCount)
        th->seen.scan.end = now;
    judgeUntimed(c, th, now - h->begin);
}

__attribute__((noinline)) int ebpfmon_end_untimed(__u64 now)
{
    struct ebpfMonHeld *h;
    struct thread *th;
    struct caller c;

    if (findCaller(&c) && (th = bpf_map_lookup_elem(&threads, &c.tid)) && (h = getLastHeld(th)))
        endUntimed(&c, th, h, now);
    return 0;
}

__attribute__((noinline)) int ebpfmon_end_pass(__u64 sp, __u64 now)
{
    struct thread *th;
    struct caller c;

    if (!findCaller(&c) || c.conf->level < EBPFMON_CHAINS || !(th = bpf_map_lookup_elem(&threads, &c.tid)))
        return 0;
#pragma unroll
    for (int i = 0; i < EBPFMON_NESTED; i++) {
        struct ebpfMonHeld *h = getLastHeld(th);

        if (!h || !h->sp || h->sp > sp + sizeof(sp)) /* see beginPass */
            break;
        endUntimed(&c, th, h, now);
    }
    if (th->seen.heldCount || !th->seen.scan.timed)
        return 0;
    th->seen.scan.end = now;
    th->seen.scan.least = 2 * th->seen.scan.longest < c.conf->slowNs ? now - th->seen.scan.begin : 0;
    return 0;
}

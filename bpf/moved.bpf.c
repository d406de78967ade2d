// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Records that move to another scan list, or to another place in their list, by puts. Until the user part has read the
 * lists again, sweeps look at these records, too. The user part reads the lists when no such put is under way.
 */
#include "ebpfMonBase.h"
#include "leftList.bpf.h"
#include "look.bpf.h"
#include "moved.bpf.h"
#include "steady.bpf.h"
#include "sweep.bpf.h"

struct moving {
    __u64 now, mutex;
    __u64 next;
    __u32 tgid, group;
    __u16 spvt;
};

/* Nonzero: the record is in another scan list. */
static __always_inline int isElsewhere(const struct moving *v, const struct ebpfMonRecState *st)
{
    __u64 element = readPtr(st->addr + v->spvt), list;

    if (!element || !(list = readPtr(element + EBPFMON_SCANELEMENT_LIST)))
        return 0;
    return readPtr(list + EBPFMON_SCANLIST_LOCK) != v->mutex;
}

static long sweepMoved(__u32 i, struct moving *v)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &v->tgid);
    struct ebpfMonRecState *st;
    __u32 slot;

    if (!m || v->next >= m->added)
        return 1;
    slot = m->slot[v->next++ & (EBPFMON_MOVED_MAX - 1)];
    st = findState(slot);
    if (!st || !st->addr || (v->group != ANY_GROUP && v->group != st->group + 1) || (v->mutex && isElsewhere(v, st)))
        return 0;
    ebpfmon_sweep_closure(slot, v->now, SWEEP_MOVED);
    flushRoot(st, slot); /* its list may not have it any more when ebpfmon_flush_list looks */
    return 0;
}

__attribute__((noinline)) int ebpfmon_sweep_moved(__u64 now, __u64 mutex, __u32 group)
{
    struct moving v = { .now = now, .mutex = mutex, .group = group };
    struct ebpfMonMoved *m;
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps)
        return 0;
    v.tgid = c.tgid;
    v.spvt = c.conf->spvt;
    v.next = c.conf->movedTaken;
    m = bpf_map_lookup_elem(&moved, &v.tgid);
    if (!m || m->added == v.next)
        return 0;
    if (m->added - v.next > EBPFMON_MOVED_MAX)
        noteMissed(c.tgid);
    bpf_loop(EBPFMON_MOVED_MAX, sweepMoved, &v, 0);
    return 0;
}

__attribute__((noinline)) __u32 ebpfmon_end_scan_puts(__u32 isLocked)
{
    struct ebpfMonMoved *m;
    struct groupThread *gt;
    struct caller c;
    __u32 count;

    if (!findCaller(&c) || !(gt = bpf_map_lookup_elem(&groupThreads, &c.tid)))
        return 0;
    count = gt->scanPuts;
    gt->scanPuts = 0;
    if (count && gt->scanPutsSweeps == c.conf->sweeps && (m = bpf_map_lookup_elem(&moved, &c.tgid))) {
        ebpfmon_end_leaving(isLocked);
        __sync_fetch_and_add(&m->putsDone, count);
    }
    return count;
}

/* Begins one such put. 0: it cannot be followed. */
static __always_inline int beginScanPut(const struct caller *c, struct ebpfMonMoved *m)
{
    struct groupThread *gt = getGroupThread(c->tid);

    if (!gt)
        return 0;
    if (gt->scanPutsSweeps != c->conf->sweeps)
        gt->scanPuts = 0;
    if (!gt->scanPuts)
        gt->leftFirst = gt->leftEnd = 0;
    gt->scanPutsSweeps = c->conf->sweeps;
    gt->scanPuts++;
    __sync_fetch_and_add(&m->putsBegun, 1);
    return 1;
}

/* It may have been processed in this pass, and be processed again. So its processings are counted up to now. */
__attribute__((noinline)) int ebpfmon_add_moved(__u64 precord, __u64 now)
{
    struct ebpfMonRecState *st;
    struct ebpfMonMoved *m;
    struct caller c;
    __u32 slot;
    __u64 n;

    if (!findCaller(&c) || !findSlot(c.tgid, precord, &slot) || !(m = bpf_map_lookup_elem(&moved, &c.tgid)) ||
        !(st = findState(slot)))
        return 0;
    if (!st->moved) {
        st->moved = 1;
        n = __sync_fetch_and_add(&m->added, 1);
        m->slot[n & (EBPFMON_MOVED_MAX - 1)] = slot;
    }
    ebpfmon_note_unsteady(precord, 0);
    ebpfmon_sweep_closure(slot, now, SWEEP_LOCKED);
    return 0;
}

__attribute__((noinline)) int ebpfmon_begin_scan_put(__u64 precord, __u64 now)
{
    struct ebpfMonMoved *m;
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps || !(m = bpf_map_lookup_elem(&moved, &c.tgid)))
        return 0;
    if (!beginScanPut(&c, m))
        noteMissed(c.tgid);
    ebpfmon_add_moved(precord, now);
    ebpfmon_leave_list(precord);
    return 0;
}

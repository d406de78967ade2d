// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * When sweeps look: at the end of a pass, and when a thread that is not the list's own enters or leaves a group of
 * records (sweep.bpf.c tells why).
 */
#include "ebpfMonBase.h"
#include "pass/group.bpf.h"
#include "pass/passChain.bpf.h"
#include "pass/scanPut.bpf.h"
#include "pass/sweep.bpf.h"

/* The thread has ended the pass of this list. */
static __always_inline void endList(__u64 mutex, __u64 now)
{
    ebpfmon_end_scan_puts(now);
    ebpfmon_sweep_list(mutex, now);
}

/* scanList() calls epicsMutexUnlock() for the last time. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_list_end, __u64 mutex)
{
    RUN_ALWAYS_TIMED({
        ebpfmon_end_pass(PT_REGS_SP(ctx), now);
        endList(mutex, now);
    });
}

/* scanList(scan_list *), if it has an end that no probe sees (ebpfMonTargetConf.endsOtherwise): the end of its last
 * pass may not have been seen. In other IOCs ebpfmon_pass_begin tells that the list begins. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_list_begin, __u64 list)
{
    RUN_ALWAYS_TIMED({
        __u64 mutex = readPtr(list + EBPFMON_ScanList_lock);

        endList(mutex, now);
        ebpfmon_begin_list(mutex, now);
    });
}

static __always_inline void requestLock(__u64 lock, __u32 isMany)
{
    struct caller c;

    if (enterProbe(&c, EBPFMON_HIT_ENTRY))
        noteRequest(&c, lock, isMany);
}

/* The calls of dbScanLock(dbCommon *), except those in scanList() and in functions that only read. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_request, __u64 precord)
{
    RUN_TIMED(requestLock(precord, 0));
}

/* The calls of dbScanLockMany(dbLocker *), with the same exceptions. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_request_many, __u64 locker)
{
    RUN_TIMED(requestLock(locker, 1));
}

/* Nonzero: "lock" is a dbLocker, and the thread is in the group by it already. Base sorts the records of a dbLocker by
 * their lock sets (dbLock.c, dbLockUpdateRefs), so those of one group follow each other. */
static __always_inline int isInside(const struct groupThread *gt, __u32 n, __u64 precord, __u64 lock, __u32 group)
{
    const struct inside *in = &gt->inside[(n - 1) & (INSIDE_MAX - 1)];

    return n && lock != precord && in->lock == lock && in->group == group;
}

/* This thread has the lock of the record. Before it processes anything, the processings of passes up to now are
 * counted. "lock": the record, or a dbLocker. */
__attribute__((noinline)) int ebpfmon_enter(__u64 precord, __u64 lock, __u64 now)
{
    struct ebpfMonRecState *st, *head;
    struct groupThread *gt;
    struct caller c;
    __u32 slot, group, n;

    if (!findCaller(&c) || !c.conf->sweeps || !findSlot(c.tgid, precord, &slot) ||
        !(gt = bpf_map_lookup_elem(&groupThreads, &c.tid)))
        return 0;
    st = findState(slot);
    if (!st)
        return 0;
    group = st->group;
    head = findState(group);
    if (!head)
        return 0;
    if (c.conf->isScanPutSeen)
        gt->sweepsSeen = c.conf->sweeps;
    n = gt->insideCount;
    if (n && gt->inside[0].sweeps != c.conf->sweeps) /* from an earlier time with sweeps */
        n = 0;
    /* Not one condition within the other: that takes more stack than is left for functions that call each other. */
    if (n >= INSIDE_MAX && !isInside(gt, n, precord, lock, group)) {
        noteMissed(c.tgid);
    } else if (n < INSIDE_MAX && !isInside(gt, n, precord, lock, group)) {
        barrier_var(n);
        gt->inside[n & (INSIDE_MAX - 1)] = (struct inside){ lock, group, c.conf->sweeps };
        gt->insideCount = n + 1;
        if (!(*(volatile __u32 *)&head->inside & EBPFMON_INSIDE_COUNT)) /* before a sweep sees the thread: it would be
                                                                         * taken for one that has never left */
            *ebpfMonEnteredAt(head) = now;
        if (!(__sync_fetch_and_add(&head->inside, 1) & EBPFMON_INSIDE_COUNT))
            *ebpfMonEnteredAt(head) = now;
    }
    ebpfmon_sweep_closure(slot, now, SWEEP_LOCKED);
    if (st->wasBusy && !st->noted)
        ebpfmon_note_beginner(slot);
    return 0;
}

struct entering {
    __u64 refs, lock, now;
};

static long enterNext(__u32 i, struct entering *e)
{
    __u64 plr = readPtr(e->refs + (__u64)i * EBPFMON_LOCKREF_SIZE);

    if (plr)
        ebpfmon_enter(readPtr(plr + EBPFMON_LockRecord_precord), e->lock, e->now);
    return 0;
}

/* The thread has the lock that it requested. */
static __always_inline void takeRequested(const struct caller *c, struct groupThread *gt, __u64 now)
{
    struct thread *th = bpf_map_lookup_elem(&threads, &c->tid);
    struct ebpfMonHeld *h = th ? getLastHeld(th) : 0;

    if (h && !h->got && !h->sp && h->root == gt->requested)
        h->got = now;
    gt->requested = 0;
}

/* The thread has the lock that it requested, and enters its groups. */
__attribute__((noinline)) int ebpfmon_enter_requested(__u64 now)
{
    struct entering e = { .now = now };
    struct groupThread *gt;
    struct caller c;
    __u64 n = 0;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return 0;
    gt = bpf_map_lookup_elem(&groupThreads, &c.tid);
    if (!gt || !gt->requested)
        return 0;
    e.lock = gt->requested;
    takeRequested(&c, gt, now);
    if (!gt->requestedMany) {
        ebpfmon_enter(e.lock, e.lock, now);
        return 0;
    }
    e.refs = e.lock + EBPFMON_LOCKER_REFS;
    bpf_probe_read_user(&n, sizeof(n), (void *)(e.lock + EBPFMON_LOCKER_MAXREFS));
    if (n > EBPFMON_MANY_MAX)
        noteMissed(c.tgid);
    bpf_loop(n < EBPFMON_MANY_MAX ? n : EBPFMON_MANY_MAX, enterNext, &e, 0);
    return 0;
}

__attribute__((noinline)) int ebpfmon_enter_put(__u64 precord, __u64 now)
{
    struct groupThread *gt;
    struct caller c;

    if (!findCaller(&c) || !(gt = bpf_map_lookup_elem(&groupThreads, &c.tid)) || gt->requested != precord)
        return 0;
    takeRequested(&c, gt, now);
    ebpfmon_enter(precord, precord, now);
    return 0;
}

/* After these calls: the thread has the lock. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_locked)
{
    RUN_TIMED(ebpfmon_enter_requested(now));
}

/* This thread leaves the group. If it is the last one, and sweeps left the group out, it looks at the group. */
__attribute__((noinline)) int ebpfmon_leave_group(__u32 group, __u64 now)
{
    struct ebpfMonRecState *head = findState(group);
    struct ebpfMonRecConf *rc = findConf(group);
    __u32 was;

    if (!head || !rc)
        return 0;
    was = __sync_fetch_and_add(&head->inside, EBPFMON_INSIDE_LEFT - 1);
    if ((was & EBPFMON_INSIDE_COUNT) != 1 || !(was & EBPFMON_INSIDE_SKIPPED))
        return 0;
    __sync_fetch_and_and(&head->inside, ~EBPFMON_INSIDE_SKIPPED);
    ebpfmon_sweep_places(rc->groupFirst, rc->groupLen, now, SWEEP_LOCKED);
    return 0;
}

struct leaving {
    __u64 lock, now;
    struct groupThread *gt;
    __u32 from;
    __u32 sweeps;
    __u32 isMany;
    __u32 pad;
};

/* Leaves one of the groups of this thread, from the last one back. */
static long leaveNext(__u32 i, struct leaving *v)
{
    struct groupThread *gt = v->gt;
    __u32 n = gt->insideCount, group, sweeps;
    struct inside *in = &gt->inside[(v->from - 1 - i) & (INSIDE_MAX - 1)];

    if (!n || n > INSIDE_MAX)
        return 1;
    if (in->lock != v->lock && in->sweeps == v->sweeps)
        return 0;
    group = in->group;
    sweeps = in->sweeps;
    n--;
    *in = gt->inside[n & (INSIDE_MAX - 1)];
    gt->insideCount = n;
    if (sweeps != v->sweeps) /* from an earlier time with sweeps */
        return 0;
    ebpfmon_leave_group(group, v->now);
    return !v->isMany;
}

__attribute__((noinline)) int ebpfmon_leave(__u64 lock, __u64 now, __u32 isMany)
{
    struct leaving v = { .lock = lock, .now = now, .isMany = isMany };
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps || !(v.gt = getGroupThread(c.tid)))
        return 0;
    if (c.conf->isScanPutSeen && v.gt->sweepsSeen != c.conf->sweeps) {
        v.gt->sweepsSeen = c.conf->sweeps;
        ebpfmon_note_unseen_put(c.tgid);
    }
    /* dbScanLockMany() gives back what it has if a link changed meanwhile, and begins again (dbLock.c): the thread
     * still requests these locks. */
    if (!isMany || !v.gt->requestedMany || v.gt->requested != lock)
        v.gt->requested = 0;
    v.sweeps = c.conf->sweeps;
    v.from = v.gt->insideCount;
    if (v.from)
        bpf_loop(v.from, leaveNext, &v, 0);
    if (v.gt->scanPuts && !v.gt->insideCount) /* locks that were taken inside this one are released before */
        ebpfmon_end_scan_puts(now);
    return 0;
}

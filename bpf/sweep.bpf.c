// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * The sweep: what a whole pass of a scan list processed, by one look at its end.
 *
 * A pass holds no lock when it ends, so another thread may be processing any of its records. Whoever else processes is
 * seen when it has taken the lock (ebpfmon_locked), and when it releases it. It enters the group of the record: all
 * records that links connect with it. On entering it counts what passes have processed so far, before it processes the
 * same records again. While somebody is inside, a sweep leaves the group out and says so, and the last who leaves looks
 * at the group. Each processing is counted by whoever exchanges the time stamp that was noted for the record.
 */
#include "ebpfMonBase.h"
#include "look.bpf.h"

#define STUCK_NS 60000000000ull /* a pass cannot process a group that a thread is in. So who is inside at its end came while
                                 * it lasted, and not so long ago */
#define LOOKS_AGAIN 256 /* of one sweep, at records whose group was entered at that moment */

struct sweep {
    __u64 now;
    __u32 first, len; /* places in the table of closures */
    __u32 next;
    __u32 time, pactBefore;
    __u32 counted;
    __u32 missed;   /* it may not have seen all … */
    __u32 stuck;    /* … because of one who has left unseen */
    __u32 isLocked; /* this thread holds the lock of these records */
    __u32 zero;     /* as in struct ebpfMonRecConf */
};

static __always_inline __u32 readInside(const struct ebpfMonRecState *head)
{
    return *(volatile __u32 *)&head->inside;
}

/* Counts what this record has processed since it was counted last. A sweep does not end what an asynchronous record has
 * begun: its completion does, which holds the lock. */
static __always_inline void sweepRecord(struct sweep *s, struct ebpfMonRecState *st, __u64 own, const struct window *win)
{
    if (isBusy(win, s->pactBefore) || st->pending || stampOrder(win->time) <= stampOrder(own) ||
        !__sync_bool_compare_and_swap(&st->time, own, win->time))
        return;
    __sync_fetch_and_add(&st->count, 1);
    st->stamp = s->now;
    s->counted++;
}

/* Says that the group is left out. 0: nobody is inside any more. */
static __always_inline int skipGroup(struct sweep *s, struct ebpfMonRecState *head)
{
    __sync_fetch_and_or(&head->inside, EBPFMON_INSIDE_SKIPPED);
    if (s->now > head->passStamp + STUCK_NS)
        s->stuck = 1;
    return readInside(head) & EBPFMON_INSIDE_COUNT;
}

static long sweepNext(__u32 i, struct sweep *s)
{
    struct ebpfMonRecState *st, *head;
    __u32 n = s->next, entry, slot, inside;
    struct window win;
    __u64 own;

    if (n >= s->len || !closureEntry(s->first + n, &entry))
        return 1;
    s->next = n + 1;
    slot = EBPFMON_ENTRY_SLOT(entry);
    st = bpf_map_lookup_elem(&recState, &slot);
    if (!st || !st->addr || !st->seen)
        return 0;
    slot = st->group;
    head = bpf_map_lookup_elem(&recState, &slot);
    if (!head)
        return 0;
    inside = readInside(head);
    if (!s->isLocked && (inside & EBPFMON_INSIDE_COUNT)) {
        if (skipGroup(s, head))
            return 0;
        inside = readInside(head); /* it has left meanwhile, and may not have seen that */
    }
    own = *(volatile __u64 *)&st->time;
    if (readWindow(&win, st->addr, s->time)) {
        countLost(EBPFMON_LOST_FAULT);
        s->missed = 1;
        return 0;
    }
    if (!s->isLocked && ((inside & EBPFMON_INSIDE_COUNT) || ((readInside(head) ^ inside) & ~EBPFMON_INSIDE_SKIPPED)))
        s->next = n; /* somebody came: what was read may be half of something */
    else
        sweepRecord(s, st, own, &win);
    return 0;
}

static __always_inline void beginSweep(struct sweep *s, const struct ebpfMonTargetConf *conf, __u64 now)
{
    __builtin_memset(s, 0, sizeof(*s));
    s->now = now;
    s->zero = conf->zero;
    s->time = conf->time;
    s->pactBefore = conf->pact - (conf->time - EBPFMON_TIME_WINDOW);
}

/* Looks at so many records from "first" on. */
static __always_inline void sweepPlaces(struct sweep *s, __u32 first, __u32 len)
{
    s->first = first;
    s->len = len;
    s->next = s->zero;
    bpf_loop(len + LOOKS_AGAIN, sweepNext, s, 0);
}

/* After the records were counted: the user part compares both sums (publish/rootAudit.c). What a sweep counts is added to
 * the first record of all that it looks at. */
static __always_inline void addSwept(__u32 slot, __u32 processed)
{
    struct ebpfMonRootStat *rs = processed ? rootStat(slot) : 0;

    if (rs)
        __sync_fetch_and_add(&rs->processed, processed);
}

static __always_inline void noteMissed(__u32 tgid)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &tgid);

    if (m)
        __sync_fetch_and_add(&m->missed, 1);
}

static __always_inline void sweepAll(const struct caller *c, struct sweep *s, __u32 first, __u32 len)
{
    __u32 entry, before = s->counted, tgid = c->tgid;
    struct ebpfMonMoved *m;

    sweepPlaces(s, first, len);
    if (s->missed || s->next < s->len)
        noteMissed(c->tgid);
    if (s->stuck && (m = bpf_map_lookup_elem(&moved, &tgid)))
        __sync_fetch_and_add(&m->stuck, 1);
    if (s->counted != before && closureEntry(first, &entry))
        addSwept(EBPFMON_ENTRY_SLOT(entry), s->counted - before);
}

/* Counts what the records of the closure of this one have processed so far. */
__attribute__((noinline)) int ebpfmon_sweep_closure(__u32 slot, __u64 now, __u32 isLocked)
{
    struct ebpfMonRecConf *rc = bpf_map_lookup_elem(&recConf, &slot);
    struct sweep s;
    struct caller c;

    if (!rc || !findCaller(&c))
        return 0;
    beginSweep(&s, c.conf, now);
    s.isLocked = isLocked;
    sweepAll(&c, &s, rc->first, rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX);
    return 0;
}

struct moving {
    __u64 now;
    __u64 next;
    __u32 tgid;
};

static long sweepMoved(__u32 i, struct moving *v)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &v->tgid);

    if (!m || v->next >= m->added)
        return 1;
    ebpfmon_sweep_closure(m->slot[v->next & (EBPFMON_MOVED_MAX - 1)], v->now, 0);
    v->next++;
    return 0;
}

/* Records that went to another list, after the lists were made, are looked at with each list. */
__attribute__((noinline)) int ebpfmon_sweep_moved(__u64 now)
{
    struct moving v = { .now = now };
    struct ebpfMonMoved *m;
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps)
        return 0;
    v.tgid = c.tgid;
    v.next = c.conf->movedTaken;
    m = bpf_map_lookup_elem(&moved, &v.tgid);
    if (!m || m->added == v.next)
        return 0;
    if (m->added - v.next > EBPFMON_MOVED_MAX)
        noteMissed(c.tgid);
    bpf_loop(EBPFMON_MOVED_MAX, sweepMoved, &v, 0);
    return 0;
}

__attribute__((noinline)) int ebpfmon_sweep_list(__u64 mutex, __u64 now)
{
    struct ebpfMonListKey key = { .mutex = mutex };
    struct ebpfMonList *list;
    struct sweep s;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !c.conf->sweeps)
        return 0;
    key.tgid = c.tgid;
    list = bpf_map_lookup_elem(&lists, &key);
    if (list) {
        beginSweep(&s, c.conf, now);
        sweepAll(&c, &s, list->first, list->len);
    }
    return 0;
}

/* passChain.bpf.c */
int ebpfmon_end_pass(__u64 sp, __u64 now);

/* scanList calls epicsMutexUnlock for the last time. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_list_end, __u64 mutex)
{
    RUN_ALWAYS_TIMED({
        ebpfmon_end_pass(PT_REGS_SP(ctx), now);
        ebpfmon_sweep_list(mutex, now);
        ebpfmon_sweep_moved(now);
    });
}

/* scanList(scan_list *): where it has another way out than that one. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_list_begin, __u64 list)
{
    RUN_ALWAYS_TIMED({
        ebpfmon_sweep_list(readPtr(list), now);
        ebpfmon_sweep_moved(now);
    });
}

static __always_inline void askFor(__u64 lock, __u32 isMany)
{
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return;
    th = threadOf(c.tid);
    if (!th) {
        noteMissed(c.tgid);
        return;
    }
    th->asked = lock;
    th->askedMany = isMany;
}

/* The calls of dbScanLock(dbCommon *) … */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_ask, __u64 precord)
{
    RUN_TIMED(askFor(precord, 0));
}

/* … and of dbScanLockMany(dbLocker *), but for those of scanList and of functions that only read. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_ask_many, __u64 locker)
{
    RUN_TIMED(askFor(locker, 1));
}

/* This thread has the lock of the record. Before it processes anything, the processings of passes up to now are
 * counted. */
__attribute__((noinline)) int ebpfmon_enter(__u64 precord, __u64 lock, __u64 now)
{
    struct ebpfMonRecState *st, *head;
    struct thread *th;
    struct caller c;
    __u32 slot, group, n;

    if (!findCaller(&c) || !c.conf->sweeps || !findSlot(c.tgid, precord, &slot) ||
        !(th = bpf_map_lookup_elem(&threads, &c.tid)))
        return 0;
    st = bpf_map_lookup_elem(&recState, &slot);
    if (!st)
        return 0;
    group = st->group;
    head = bpf_map_lookup_elem(&recState, &group);
    if (!head)
        return 0;
    n = th->insideCount;
    if (n >= INSIDE_MAX) {
        noteMissed(c.tgid);
    } else {
        barrier_var(n);
        th->inside[n & (INSIDE_MAX - 1)] = (struct inside){ lock, group, c.conf->sweeps };
        th->insideCount = n + 1;
        if (!(__sync_fetch_and_add(&head->inside, 1) & EBPFMON_INSIDE_COUNT))
            head->passStamp = now;
    }
    ebpfmon_sweep_closure(slot, now, 1);
    return 0;
}

struct entering {
    __u64 refs, lock, now;
};

static long enterNext(__u32 i, struct entering *e)
{
    __u64 plr = readPtr(e->refs + (__u64)i * EBPFMON_LOCKREF_SIZE);

    if (plr)
        ebpfmon_enter(readPtr(plr + EBPFMON_LOCKRECORD_PRECORD), e->lock, e->now);
    return 0;
}

__attribute__((noinline)) int ebpfmon_enter_asked(__u64 now)
{
    struct entering e = { .now = now };
    struct ebpfMonHeld *h;
    struct thread *th;
    struct caller c;
    __u64 n = 0;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = bpf_map_lookup_elem(&threads, &c.tid)) || !th->asked)
        return 0;
    e.lock = th->asked;
    th->asked = 0;
    h = heldLast(th);
    if (h && !h->got && !h->sp && h->root == e.lock)
        h->got = now;
    if (!th->askedMany) {
        ebpfmon_enter(e.lock, e.lock, now);
        return 0;
    }
    e.refs = e.lock + EBPFMON_LOCKER_REFS;
    bpf_probe_read_user(&n, sizeof(n), (void *)(e.lock + EBPFMON_LOCKER_MAXREFS));
    bpf_loop(n < EBPFMON_MANY_MAX ? n : EBPFMON_MANY_MAX, enterNext, &e, 0);
    return 0;
}

/* Behind those calls: the lock is there. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_locked)
{
    RUN_TIMED(ebpfmon_enter_asked(now));
}

/* This thread leaves the group. If it is the last one, it looks at the group instead of the sweeps that left it out,
 * and returns 1. */
__attribute__((noinline)) int ebpfmon_leave_group(__u32 group, __u64 now)
{
    struct ebpfMonRecState *head = bpf_map_lookup_elem(&recState, &group);
    struct ebpfMonRecConf *rc = bpf_map_lookup_elem(&recConf, &group);
    struct sweep s;
    struct caller c;
    __u32 was;

    if (!head || !rc || !findCaller(&c))
        return 0;
    was = __sync_fetch_and_add(&head->inside, EBPFMON_INSIDE_TURN - 1);
    if ((was & EBPFMON_INSIDE_COUNT) != 1 || !(was & EBPFMON_INSIDE_SKIPPED))
        return 0;
    __sync_fetch_and_and(&head->inside, ~EBPFMON_INSIDE_SKIPPED);
    beginSweep(&s, c.conf, now);
    s.isLocked = 1;
    sweepAll(&c, &s, rc->groupFirst, rc->groupLen);
    return 1;
}

struct leaving {
    __u64 lock, now;
    struct thread *th;
    __u32 from;
    __u32 sweeps;
    __u32 isMany;
    __u32 looked; /* a sweep had left out one of the groups */
};

/* Of the groups that this thread is in, from the last one back. */
static long leaveNext(__u32 i, struct leaving *v)
{
    struct thread *th = v->th;
    __u32 n = th->insideCount, group, sweeps;
    struct inside *in = &th->inside[(v->from - 1 - i) & (INSIDE_MAX - 1)];

    if (!n || n > INSIDE_MAX)
        return 1;
    if (in->lock != v->lock && in->sweeps == v->sweeps)
        return 0;
    group = in->group;
    sweeps = in->sweeps;
    n--;
    *in = th->inside[n & (INSIDE_MAX - 1)];
    th->insideCount = n;
    if (sweeps != v->sweeps) /* of an earlier time */
        return 0;
    if (ebpfmon_leave_group(group, v->now))
        v->looked = 1;
    return !v->isMany;
}

/* Called after what the thread itself processed was counted, and before it releases the lock. Nonzero: ebpfmon_sweep_moved
 * is to be called, too, since the lists that were read do not have all of a group. */
__attribute__((noinline)) int ebpfmon_leave(__u64 lock, __u64 now, __u32 isMany)
{
    struct leaving v = { .lock = lock, .now = now, .isMany = isMany };
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps || !(v.th = bpf_map_lookup_elem(&threads, &c.tid)))
        return 0;
    v.th->asked = 0;
    v.sweeps = c.conf->sweeps;
    v.from = v.th->insideCount;
    if (v.from)
        bpf_loop(v.from, leaveNext, &v, 0);
    return v.looked;
}

/* dbPut(DBADDR *) to a field of the scan: the record may go to another list, or to another place in its own. It may have
 * been processed before, and will be once more in the same pass. */
static __always_inline void seeScanPut(__u64 paddr)
{
    struct ebpfMonRecState *st;
    struct ebpfMonMoved *m;
    struct caller c;
    __s16 special = 0;
    __u32 slot;
    __u64 n;

    bpf_probe_read_user(&special, sizeof(special), (void *)(paddr + EBPFMON_DBADDR_SPECIAL));
    if (special != EBPFMON_SPC_SCAN || !findCaller(&c) || !c.conf->sweeps ||
        !findSlot(c.tgid, readPtr(paddr + EBPFMON_DBADDR_PRECORD), &slot) ||
        !(m = bpf_map_lookup_elem(&moved, &c.tgid)) || !(st = bpf_map_lookup_elem(&recState, &slot)))
        return;
    if (!st->moved) {
        st->moved = 1;
        n = __sync_fetch_and_add(&m->added, 1);
        m->slot[n & (EBPFMON_MOVED_MAX - 1)] = slot;
    }
    ebpfmon_sweep_closure(slot, bpf_ktime_get_ns(), 1);
}

SEC("uprobe")
int BPF_UPROBE(ebpfmon_scan_put, __u64 paddr)
{
    seeScanPut(paddr);
    return 0;
}

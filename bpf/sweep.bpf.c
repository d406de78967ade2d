// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * The sweep: finds what a whole pass of a scan list processed, by one look at its end.
 *
 * A pass holds no lock when it ends, so another thread may be processing any of its records. We see such a thread when
 * it has taken the lock (ebpfmon_locked), and when it releases it. It enters the group of the record: all records that
 * links connect with it. When it enters, it first counts what passes have processed so far, because it may process the
 * same records again. While a thread is in a group, a sweep leaves the group out and notes that; the last thread that
 * leaves looks at the group then (group.bpf.c). A processing is counted by the program that succeeds to exchange the
 * time stamp that was noted for the record.
 */
#include "ebpfMonBase.h"
#include "look.bpf.h"
#include "quickChain.bpf.h"
#include "sweep.bpf.h"
#include "walk.bpf.h"

#define STUCK_NS 60000000000ull /* ns; a pass cannot process a group while another thread is in it. So a thread that
                                 * is in the group at the end of a pass entered it during the pass, and not so long
                                 * ago */
#define UNSEEN_NS 60000000000ull /* ns; so long a thread may hold a lock that it took before passes were watched */
#define LOOKS_AGAIN 256 /* records that one sweep may look at again, because a thread entered their group at that
                         * moment */

#define CHECK_EVERY 16 /* one sweep in so many looks at each steady record */
#define STEPS_BACK   8 /* records that one sweep tries as the last steady one */

/* values of sweep.trouble */
#define SWEEP_HAS_MISSED 1 /* it may have missed something … */
#define SWEEP_HAS_STUCK  2 /* … because a thread has left a group unseen */
#define SWEEP_HAS_UNSURE 4 /* ebpfMonRecState.unsure was set */

struct sweep {
    __u64 now;
    __u32 first, len; /* the places in the table of closures */
    __u32 next;
    __u32 counted;
    __u16 time, pactBefore;
    __u8 trouble;  /* SWEEP_HAS_… */
    __u8 isLocked; /* nonzero: this thread holds the lock of these records */
    __u8 isUnsafe; /* nonzero: a thread that was not seen may be processing them */
    __u8 hasAsync; /* nonzero: one of the records was seen while it processed asynchronously */
    __u8 hasStretches;   /* nonzero: the last record of a stretch tells of all */
    __u8 isCheck;        /* nonzero: look at each record in any case */
    __u32 stretchEnd;    /* place behind the stretch at which the sweep is */
    __u32 stretchInside; /* ebpfMonRecState.inside of its group, when its last record was looked at */
    __u64 stretchTime;   /* TIME of its last record; 0: it has not processed, so look at each single record */
    __u64 expected; /* the root of the next quick chain of the pass; 0: there is none */
    __u64 steadyTime;   /* TIME of the last steady record, which this pass has processed … */
    __u64 steadyBefore; /* … and the order of that time at the end of the pass before */
    __u32 steadyLen;    /* the steady ones of so many places have been processed; 0: look at each */
};

static __always_inline __u32 readInside(const struct ebpfMonRecState *head)
{
    return *(volatile __u32 *)&head->inside;
}

/* A sweep may have counted this record when it had set its time stamp, before it became asynchronous. Then its
 * completion is not counted. If that processing had completed, and this is the next one, this leaves one out: so the
 * count is a lower bound. Only with the lock: while a record processes, it is busy for a moment in any case. */
static __always_inline void noteEarly(struct sweep *s, struct ebpfMonRecState *st)
{
    st->early = EBPFMON_EARLY_SURE;
    st->unsure = 1;
    s->trouble |= SWEEP_HAS_UNSURE;
}

/* Counts a processing, unless another thread has done so. "own": the time that was noted before. */
static __always_inline void countSwept(struct sweep *s, struct ebpfMonRecState *st, __u64 own, __u64 time)
{
    if (!__sync_bool_compare_and_swap(&st->time, own, time))
        return;
    if (!st->seen) { /* since when is not known */
        st->seen = 1;
        return;
    }
    if ((st->early == EBPFMON_EARLY_SURE || !s->isUnsafe) && takeEarly(st))
        return;
    __sync_fetch_and_add(&st->count, 1);
    st->stamp = s->now;
    s->counted++;
}

/* Counts a processing of this record since it was counted last. A processing of an asynchronous record counts only when
 * it completes: the thread that does so holds the lock set and counts it. A stamp that is earlier than the one that was
 * noted is not counted, but noted: if the clock was set back, all further ones are earlier, too. (Or a later one was
 * noted for a whole stretch, or for all steady records. Then this one has been counted, and does no harm.) */
static __always_inline void sweepRecord(struct sweep *s, struct ebpfMonRecState *st, __u64 own,
                                        const struct window *win)
{
    if (isBusy(win, s->pactBefore)) {
        st->wasBusy = 1;
        if (s->isLocked && st->early == EBPFMON_EARLY_PERHAPS && win->time == own)
            noteEarly(s, st);
    }
    s->hasAsync |= st->wasBusy;
    if (isBusy(win, s->pactBefore) || st->pending || win->time == own)
        return;
    if (stampOrder(win->time) < stampOrder(own)) {
        __sync_bool_compare_and_swap(&st->time, own, win->time);
        return;
    }
    if (s->isUnsafe && !st->early) /* before it is counted, so that who finds it busy afterwards sees this */
        st->early = EBPFMON_EARLY_PERHAPS;
    countSwept(s, st, own, win->time);
}

/* Goes on to the next quick chain of the pass. */
static __always_inline void expectNext(struct sweep *s, const struct quickTimes *q)
{
    __u32 n = q ? q->folded : 0;

    FORGET_ORIGIN(n);
    s->expected = q && n < q->count ? QUICK_RECORD(q->entry[n & (QUICK_TIMES - 1)]) : 0;
}

/* Keeps the time of the expected quick chain for its root, if the root has processed in this pass: it was counted since
 * the begin of the pass, or ("isLater") it was not counted yet. */
static __always_inline void foldQuick(struct sweep *s, struct ebpfMonRecState *st, int isLater)
{
    struct quickTimes *q = findQuickTimes();
    __u32 k = st->quickCount, n;

    if (!q)
        return;
    n = q->folded;
    FORGET_ORIGIN(n);
    q->folded = n + 1;
    if (k < EBPFMON_QUICK_KEPT && (isLater || *(volatile __u64 *)&st->stamp >= q->begin)) {
        st->quickTook[k] = QUICK_TOOK(q->entry[n & (QUICK_TIMES - 1)]);
        st->quickCount = k + 1;
    }
    expectNext(s, q);
}

/* The same for a record that the sweep leaves out, because another thread may be processing it. "win" is only room. */
static __always_inline void foldSkipped(struct sweep *s, struct ebpfMonRecState *st, struct window *win)
{
    win->time = 0;
    bpf_probe_read_user(&win->time, sizeof(win->time), (void *)(st->addr + s->time));
    foldQuick(s, st, stampOrder(win->time) > stampOrder(*(volatile __u64 *)&st->time));
}

/* Notes that the group is left out. 0: no thread is in it any more. */
static __always_inline int skipGroup(struct sweep *s, struct ebpfMonRecState *head)
{
    __sync_fetch_and_or(&head->inside, EBPFMON_INSIDE_SKIPPED);
    if (s->now > head->passStamp + STUCK_NS)
        s->trouble |= SWEEP_HAS_STUCK;
    return readInside(head) & EBPFMON_INSIDE_COUNT;
}

/* Nonzero: a thread has entered the group since then, or has left it. */
static __always_inline int hasChanged(const struct ebpfMonRecState *head, __u32 inside)
{
    return (readInside(head) ^ inside) & ~EBPFMON_INSIDE_SKIPPED;
}

/* Looks at the last record of the stretch that begins with this entry, and counts it. If it has processed, all have.
 * "entry" and "win" are only room then, as in countStretch (snapshot.bpf.h). */
static __always_inline void beginStretch(struct sweep *s, __u32 *entry, __u32 inside,
                                         const struct ebpfMonRecState *head, struct window *win)
{
    struct ebpfMonRecState *last;
    __u64 own;

    s->stretchTime = 0;
    s->stretchEnd = s->next + EBPFMON_ENTRY_AHEAD(*entry);
    if (!EBPFMON_ENTRY_AHEAD(*entry) || !s->hasStretches || inside & EBPFMON_INSIDE_COUNT ||
        !readClosureEntry(s->first + s->stretchEnd - 1, entry) || !(last = findState(EBPFMON_ENTRY_SLOT(*entry))) ||
        !last->addr || !last->seen || last->wasBusy)
        return;
    own = *(volatile __u64 *)&last->time;
    if (readWindow(win, last->addr, s->time) || isBusy(win, s->pactBefore) ||
        stampOrder(win->time) <= stampOrder(own) || hasChanged(head, inside))
        return;
    countSwept(s, last, own, win->time);
    s->stretchInside = inside;
    s->stretchTime = win->time;
}

/* Counts a record of a stretch whose last record has processed. The time of the last record is noted for it, which is
 * not earlier than its own. A thread that enters the group counts each record with its own time; so what was noted
 * before is read first, then it is seen that no thread has entered, and an exchange fails if one enters now. 0: look at
 * this record, and at all that follow. */
static __always_inline int sweepInStretch(struct sweep *s, struct ebpfMonRecState *st,
                                          const struct ebpfMonRecState *head)
{
    __u64 own = *(volatile __u64 *)&st->time;

    if (!s->stretchTime)
        return 0;
    if (st->wasBusy || !st->seen || hasChanged(head, s->stretchInside)) {
        s->stretchTime = 0;
        return 0;
    }
    if (s->next < s->stretchEnd && stampOrder(s->stretchTime) > stampOrder(own))
        countSwept(s, st, own, s->stretchTime);
    return 1;
}

static __always_inline struct ebpfMonRecState *findLastSteady(struct ebpfMonList *list, __u32 len)
{
    struct ebpfMonRecState *st;
    __u32 entry, n;

    for (int k = 0; k < STEPS_BACK; k++) {
        n = list->lastSteady;
        if (!n || n > len || !readClosureEntry(list->first + n - 1, &entry) ||
            !(st = findState(EBPFMON_ENTRY_SLOT(entry))))
            return 0;
        if (st->steady == EBPFMON_STEADY_YES)
            return st;
        list->lastSteady = n - 1;
    }
    return 0;
}

/* Looks at the last steady record of the list. If this pass has processed it, and nobody has counted that yet, the pass
 * has processed all steady records before it. A global function, so that its stack is not added to that of the walk. */
__attribute__((noinline)) int ebpfmon_begin_steady(struct sweep *s, __u64 mutex)
{
    struct ebpfMonListKey key = { .mutex = mutex };
    struct ebpfMonRecState *last, *head;
    struct ebpfMonList *list;
    struct window win;
    struct caller c;
    __u32 inside;
    __u64 own;

    if (!s || !findCaller(&c))
        return 0;
    key.tgid = c.tgid;
    list = bpf_map_lookup_elem(&lists, &key);
    if (!list || list->first != s->first || !(last = findLastSteady(list, s->len)) || !last->addr ||
        !last->seen || !(head = findState(last->group)))
        return 0;
    s->steadyBefore = stampOrder(list->stamp);
    list->stamp = 0;
    inside = readInside(head);
    own = *(volatile __u64 *)&last->time;
    if (inside & EBPFMON_INSIDE_COUNT || readWindow(&win, last->addr, s->time) || isBusy(&win, s->pactBefore) ||
        hasChanged(head, inside))
        return 0;
    list->stamp = win.time;
    if (stampOrder(own) > s->steadyBefore || stampOrder(win.time) <= s->steadyBefore)
        return 0;
    s->steadyTime = win.time;
    s->steadyLen = list->lastSteady;
    s->isCheck = ++list->unchecked >= CHECK_EVERY;
    if (s->isCheck)
        list->unchecked = 0;
    return 0;
}

/* Nonzero: this pass must have processed the record, and nobody has counted that. What is counted has its time noted,
 * and no time of this pass is as early as steadyBefore. */
static __always_inline int isOwed(const struct sweep *s, const struct ebpfMonRecState *st, __u64 own)
{
    return s->next <= s->steadyLen && st->steady == EBPFMON_STEADY_YES && st->seen && !st->wasBusy &&
           stampOrder(own) <= s->steadyBefore;
}

/* Counts a steady record without a look at it. The time of the last one is noted for it, as in a stretch. 0: look. */
static __always_inline int countSteady(struct sweep *s, struct ebpfMonRecState *st)
{
    __u64 own = *(volatile __u64 *)&st->time;

    if (s->isCheck || !isOwed(s, st, own))
        return 0;
    countSwept(s, st, own, s->steadyTime);
    return 1;
}

/* This record was steady so far, and the pass has not processed it: we know something wrong about it. */
static __always_inline void noteLeftOut(struct sweep *s, struct ebpfMonRecState *st)
{
    st->steady = EBPFMON_STEADY_NOT;
    st->unsure = 1;
    s->trouble |= SWEEP_HAS_UNSURE;
}

static __always_inline long sweepNext(__u32 i, struct sweep *s)
{
    struct ebpfMonRecState *st, *head;
    __u32 entry, inside;
    struct window win;
    __u64 own;

    if (s->next >= s->len || !readClosureEntry(s->first + s->next, &entry))
        return 1;
    s->next++;
    st = findState(EBPFMON_ENTRY_SLOT(entry));
    if (!st || !st->addr)
        return 0;
    if (countSteady(s, st)) {
        if (st->addr == s->expected)
            foldQuick(s, st, 0);
        return 0;
    }
    head = findState(st->group);
    if (!head)
        return 0;
    inside = readInside(head);
    if (s->isCheck)
        s->stretchTime = 0;
    else if (s->next > s->stretchEnd)
        beginStretch(s, &entry, inside, head, &win);
    if (sweepInStretch(s, st, head)) {
        if (st->addr == s->expected)
            foldQuick(s, st, 0);
        return 0;
    }
    if (!s->isLocked && (inside & EBPFMON_INSIDE_COUNT)) {
        if (skipGroup(s, head)) {
            if (st->addr == s->expected)
                foldSkipped(s, st, &win);
            return 0;
        }
        inside = readInside(head); /* the thread has left meanwhile, and may not have seen our note */
    }
    own = *(volatile __u64 *)&st->time;
    if (readWindow(&win, st->addr, s->time)) {
        countLost(EBPFMON_LOST_FAULT);
        s->trouble |= SWEEP_HAS_MISSED;
        return 0;
    }
    if (!s->isLocked && ((inside & EBPFMON_INSIDE_COUNT) || hasChanged(head, inside)))
        s->next--; /* a thread entered: what we read may be incomplete, so read it again */
    else {
        if (s->isCheck && stampOrder(win.time) <= stampOrder(own) && isOwed(s, st, own))
            noteLeftOut(s, st);
        sweepRecord(s, st, own, &win);
        if (st->addr == s->expected)
            foldQuick(s, st, 0);
    }
    return 0;
}

DEFINE_WALK(sweepNext, struct sweep, sweep)

/* Takes out the next quick chain. Its root has come to this list, or to another place of it, since the list was
 * read. */
static __always_inline long foldRest(__u32 i, struct sweep *s)
{
    struct ebpfMonRecState *st;
    struct quickTimes *q;
    struct caller c;
    __u32 slot;

    if (!s->expected)
        return 1;
    if (findCaller(&c) && findSlot(c.tgid, s->expected, &slot) && (st = findState(slot)) != 0) {
        foldQuick(s, st, 0);
        flushRoot(st, slot); /* ebpfmon_flush_list does not find it */
    } else if ((q = findQuickTimes()) != 0) {
        q->folded++;
        expectNext(s, q);
    }
    return 0;
}

DEFINE_WALK(foldRest, struct sweep, sweep)

static __always_inline void beginSweep(struct sweep *s, const struct ebpfMonTargetConf *conf, __u64 now)
{
    __builtin_memset(s, 0, sizeof(*s));
    s->now = now;
    /* Always 0, but the verifier must not know that: it would check the loop for each number that one of them can
     * have */
    s->next = s->counted = s->trouble = s->hasAsync = s->stretchEnd = conf->zero;
    s->time = conf->time;
    s->pactBefore = conf->pact - (conf->time - EBPFMON_TIME_WINDOW);
}

/* Adds what a sweep counted to the first record at which it looked, after the records were counted. The user part
 * compares both sums (publish/rootAudit.c). */
static __always_inline void addSwept(__u32 slot, __u32 processed)
{
    struct ebpfMonRootStat *rs = processed ? getRootStat(slot) : 0;

    if (rs)
        __sync_fetch_and_add(&rs->processed, processed);
}

/* The first part of a sweep. A global function, so that its stack is not added to that of the walk. 0: no IOC that is
 * watched. */
__attribute__((noinline)) int ebpfmon_begin_sweep(struct sweep *s, __u64 now, __u32 how)
{
    int isPass = how == SWEEP_PASS || how == SWEEP_WHOLE;
    struct caller c;

    if (!s || !findCaller(&c))
        return 0;
    beginSweep(s, c.conf, now);
    s->isLocked = how == SWEEP_LOCKED;
    s->hasStretches = how == SWEEP_WHOLE;
    s->isUnsafe = how == SWEEP_MOVED || (isPass && now < c.conf->sweepsSince + UNSEEN_NS);
    if (isPass)
        expectNext(s, findQuickTimes());
    return 1;
}

static __always_inline void endSweep(const struct sweep *s)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32, entry;
    struct ebpfMonMoved *m;

    if ((s->trouble & SWEEP_HAS_MISSED) || s->next < s->len)
        noteMissed(tgid);
    if ((s->trouble & (SWEEP_HAS_STUCK | SWEEP_HAS_UNSURE)) && (m = bpf_map_lookup_elem(&moved, &tgid))) {
        __sync_fetch_and_add(&m->stuck, !!(s->trouble & SWEEP_HAS_STUCK));
        __sync_fetch_and_add(&m->unsure, !!(s->trouble & SWEEP_HAS_UNSURE));
    }
    if (s->counted && readClosureEntry(s->first, &entry))
        addSwept(EBPFMON_ENTRY_SLOT(entry), s->counted);
}

/* Counts what the records at these places have processed so far. A global function, because programs call it at several
 * places, and so the verifier checks it only once. Nonzero: one of them was seen while it processed asynchronously. */
__attribute__((noinline)) int ebpfmon_sweep_places(__u32 first, __u32 len, __u64 now, __u32 how, __u64 mutex)
{
    struct sweep s = {};

    if (!ebpfmon_begin_sweep(&s, now, how))
        return 0;
    s.first = first;
    s.len = len;
    if (how == SWEEP_WHOLE)
        ebpfmon_begin_steady(&s, mutex);
    WALK(sweepNext, len + LOOKS_AGAIN, &s);
    endSweep(&s);
    return s.hasAsync;
}

/* Counts what the records of this record's closure have processed so far. */
__attribute__((noinline)) int ebpfmon_sweep_closure(__u32 slot, __u64 now, __u32 how)
{
    struct ebpfMonRecConf *rc = findConf(slot);

    return rc ? ebpfmon_sweep_places(rc->first, rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX, now,
                                     how, 0) :
                0;
}

/* Takes out the quick chains of this pass that are left, after all records were counted that may have processed in
 * it. */
__attribute__((noinline)) int ebpfmon_fold_rest(__u64 now)
{
    struct quickTimes *q = findQuickTimes();
    struct sweep s;
    struct caller c;

    if (!q || !q->isOpen || !findCaller(&c))
        return 0;
    beginSweep(&s, c.conf, now);
    expectNext(&s, q);
    if (s.expected)
        WALK(foldRest, QUICK_TIMES, &s);
    q->count = q->folded = q->isOpen = 0;
    q->kept++;
    return 0;
}

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
#include "common/walk.bpf.h"
#include "ebpfMonBase.h"
#include "pass/look.bpf.h"
#include "pass/sweep.bpf.h"

#define STUCK_NS 60000000000ull /* ns; a pass cannot process a group while another thread is in it. So a thread that
                                 * is in the group at the end of a pass entered it during the pass, and not so long
                                 * ago */
#define UNSEEN_NS 60000000000ull /* ns; so long a thread may hold a lock that it took before passes were watched */
#define LOOKS_AGAIN 256 /* records that one sweep may look at again, because a thread entered their group at that
                         * moment */

/* values of sweep.trouble */
#define SWEEP_HAS_MISSED 1 /* it may have missed something … */
#define SWEEP_HAS_STUCK  2 /* … because a thread has left a group unseen */
#define SWEEP_HAS_UNSURE 4 /* ebpfMonRecState.unsure was set */

struct sweep {
    __u64 now;
    __u32 first, len; /* the places in the table of closures */
    __u32 next;
    __u16 time, pactBefore;
    __u8 trouble;  /* SWEEP_HAS_… */
    __u8 isLocked; /* nonzero: this thread holds the lock of these records */
    __u8 isUnsafe; /* nonzero: a thread that was not seen may be processing them */
    __u8 hasStretches;   /* nonzero: the last record of a stretch tells of all */
    __u32 stretchEnd;    /* place behind the stretch at which the sweep is */
    __u32 stretchInside; /* ebpfMonRecState.inside of its group, when its last record was looked at */
    __u64 stretchTime;   /* TIME of its last record; 0: it has not processed, so look at each single record */
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
}

/* Counts a processing of this record since it was counted last. A processing of an asynchronous record counts only when
 * it completes: the thread that does so holds the lock set and counts it. A stamp that is earlier than the one that was
 * noted is not counted, but noted: if the clock was set back, all further ones are earlier, too. (Or a later one was
 * noted for a whole stretch. Then this one has been counted, and does no harm.) */
static __always_inline void sweepRecord(struct sweep *s, struct ebpfMonRecState *st, __u64 own,
                                        const struct window *win)
{
    if (isBusy(win, s->pactBefore)) {
        st->wasBusy = 1;
        if (s->isLocked && st->early == EBPFMON_EARLY_PERHAPS && win->time == own)
            noteEarly(s, st);
    }
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

/* Notes that the group is left out. 0: no thread is in it any more. */
static __always_inline int skipGroup(struct sweep *s, struct ebpfMonRecState *head)
{
    __sync_fetch_and_or(&head->inside, EBPFMON_INSIDE_SKIPPED);
    if (s->now > *ebpfMonEnteredAt(head) + STUCK_NS)
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
    head = findState(st->group);
    if (!head)
        return 0;
    inside = readInside(head);
    if (s->next > s->stretchEnd)
        beginStretch(s, &entry, inside, head, &win);
    if (sweepInStretch(s, st, head))
        return 0;
    if (!s->isLocked && (inside & EBPFMON_INSIDE_COUNT)) {
        if (skipGroup(s, head))
            return 0;
        inside = readInside(head); /* the thread has left meanwhile, and may not have seen our note */
        __sync_bool_compare_and_swap(&head->inside, (inside & ~EBPFMON_INSIDE_COUNT) | EBPFMON_INSIDE_SKIPPED,
                                     inside & ~(EBPFMON_INSIDE_COUNT | EBPFMON_INSIDE_SKIPPED)); /* it has not */
    }
    own = *(volatile __u64 *)&st->time;
    if (readWindow(&win, st->addr, s->time)) {
        countLost(EBPFMON_LOST_FAULT);
        s->trouble |= SWEEP_HAS_MISSED;
        return 0;
    }
    if (!s->isLocked && ((inside & EBPFMON_INSIDE_COUNT) || hasChanged(head, inside)))
        s->next--; /* a thread entered: what we read may be incomplete, so read it again */
    else
        sweepRecord(s, st, own, &win);
    return 0;
}

DEFINE_WALK(sweepNext, struct sweep, sweep)

static __always_inline void beginSweep(struct sweep *s, const struct ebpfMonTargetConf *conf, __u64 now)
{
    __builtin_memset(s, 0, sizeof(*s));
    s->now = now;
    /* Always 0, but the verifier must not know that: it would check the loop for each number that one of them can
     * have */
    s->next = s->trouble = s->stretchEnd = conf->zero;
    s->time = conf->time;
    s->pactBefore = conf->pact - (conf->time - EBPFMON_TIME_WINDOW);
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
    s->isUnsafe = how == SWEEP_UNSAFE || (isPass && now < c.conf->sweepsSince + UNSEEN_NS);
    return 1;
}

static __always_inline void endSweep(const struct sweep *s)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    struct ebpfMonPassNotes *notes;

    if ((s->trouble & SWEEP_HAS_MISSED) || s->next < s->len)
        noteMissed(tgid);
    if ((s->trouble & (SWEEP_HAS_STUCK | SWEEP_HAS_UNSURE)) && (notes = bpf_map_lookup_elem(&passNotes, &tgid))) {
        __sync_fetch_and_add(&notes->stuck, !!(s->trouble & SWEEP_HAS_STUCK));
        __sync_fetch_and_add(&notes->unsure, !!(s->trouble & SWEEP_HAS_UNSURE));
    }
}

/* Counts what the records at these places have processed so far. A global function, because programs call it at several
 * places, and so the verifier checks it only once. */
__attribute__((noinline)) int ebpfmon_sweep_places(__u32 first, __u32 len, __u64 now, __u32 how)
{
    struct sweep s = {};

    if (!ebpfmon_begin_sweep(&s, now, how))
        return 0;
    s.first = first;
    s.len = len;
    WALK(sweepNext, len + LOOKS_AGAIN, &s);
    endSweep(&s);
    return 0;
}

/* Counts what the records of this record's closure have processed so far. */
__attribute__((noinline)) int ebpfmon_sweep_closure(__u32 slot, __u64 now, __u32 how)
{
    struct ebpfMonRecConf *rc = findConf(slot);

    return rc ? ebpfmon_sweep_places(rc->first, rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX, now,
                                     how) :
                0;
}

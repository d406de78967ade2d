/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The snapshot: what processed, by one look at the chain's end.
 *
 * At the entry of dbScanUnlock the lock set is still held, so no record of the chain changes. A record's time stamp
 * (dbCommon.time) moves with each processing; the user part has put the records that the root can reach into "closure".
 * To compare each one's time stamp with the last one seen costs a tenth of a trap on dbProcess.
 */
#ifndef EBPFMON_SNAPSHOT_BPF_H
#define EBPFMON_SNAPSHOT_BPF_H

#include "look.bpf.h"
#include "walk.bpf.h"

int ebpfmon_note_async(__u32 slot, __u64 now, __u32 busy); /* async.bpf.c */

struct walk {
    __u64 stamp;
    __u32 first, len; /* the closure */
    __u32 next;       /* place in it to go on from */
    __u32 end;        /* place of the last record of a stretch that is looked through one by one */
    __u32 counted;
    __u32 time;
    __u32 pactBefore; /* PACT's place in the window */
    __u32 many;       /* no stretch counts: several locks are held, and a record may have been processed by another
                       * than its forerunner; or EBPFMON_REC_SINGLE */
    struct leftBusy left;
};

WALK_ROOM(snapshot, struct walk)

/* Nonzero: this record processed since it was counted last. It may have been counted with its whole stretch. "own":
 * the time that was noted for the record itself. */
static __always_inline int hasProcessed(const struct ebpfMonRecState *st, __u64 own, __u32 slot, __u64 time)
{
    __u64 known = stampOrder(own);
    __u32 last = st->last;

    if (last != slot) {
        struct ebpfMonRecState *ls = bpf_map_lookup_elem(&recState, &last);

        if (ls && stampOrder(ls->time) > known)
            known = stampOrder(ls->time);
    }
    return stampOrder(time) > known;
}

/* The record at place n processed; if the last one of its stretch did, all between them did, and are counted
 * with one look. 0: it did not, or is asynchronous, so the records are to be looked at one by one. "win" is room: what
 * it has is not needed any more, and a second one would not fit on the stack (512 bytes for all that call each other). */
static __always_inline int countStretch(struct walk *w, struct ebpfMonRecState *st, __u32 entry, __u32 n,
                                        struct window *win)
{
    __u32 ahead = EBPFMON_ENTRY_AHEAD(entry), last;
    struct ebpfMonRecState *ls;

    w->end = n + ahead;
    if (!closureEntry(w->first + n + ahead, &last))
        return 0;
    last = EBPFMON_ENTRY_SLOT(last);
    ls = bpf_map_lookup_elem(&recState, &last);
    if (!ls || !ls->addr || !ls->seen || readWindow(win, ls->addr, w->time))
        return 0;
    if (stampOrder(win->time) <= stampOrder(ls->time) || ls->pending || isBusy(win, w->pactBefore))
        return 0;
    st->pass[EBPFMON_ENTRY_BANK(entry)]++;
    st->passStamp = w->stamp;
    ls->time = win->time;
    ls->count++;
    ls->stamp = w->stamp;
    w->counted += ahead + 1;
    w->next = n + ahead + 1;
    return 1;
}

/* Notes the time stamp up to which the record is counted. A sweep, which looks without the lock, may see the same
 * (sweep.bpf.c): one of both counts it, and this returns 0 for the other. Before kernel 5.17 there are no sweeps. The
 * user part alone changes the time meanwhile (closureTable.c, setLast), and does so before it changes "last", which
 * hasProcessed read. */
static __always_inline int takeTime(struct ebpfMonRecState *st, __u64 own, __u64 time)
{
#ifdef EBPFMON_OLD_KERNEL /* no such operation before 5.12 */
    if (*(volatile __u64 *)&st->time != own)
        return 0;
    *(volatile __u64 *)&st->time = time;
    return 1;
#else
    return __sync_bool_compare_and_swap(&st->time, own, time);
#endif
}

/* Compares one record's time stamp with the last seen. An asynchronous record may move its time stamp
 * when it begins (output records do, so that TSEL readers see it) and again when it completes: the
 * processing counts when PACT is clear again. "n" is its place in the closure. */
static __always_inline void judgeRecord(struct walk *w, struct ebpfMonRecState *st, __u32 entry, __u32 n, struct window *win)
{
    __u32 slot = EBPFMON_ENTRY_SLOT(entry), ahead = EBPFMON_ENTRY_AHEAD(entry);
    int changed, busy = isBusy(win, w->pactBefore);
    __u64 own = *(volatile __u64 *)&st->time;

    /* The thread that set PACT holds the lock until its own look. So the first look that finds PACT set belongs to
     * the chain that set it. */
    if (!busy != !st->noted)
        ebpfmon_note_async(slot, w->stamp, busy);
    if (!busy) {
        st->noted = 0;
    } else if (!st->noted) {
        st->noted = EBPFMON_NOTED_BUSY; /* whatever "causes" has is of an earlier processing */
        w->left.more |= w->left.async[EBPFMON_ASYNC - 1] != 0;
#pragma unroll
        for (int k = EBPFMON_ASYNC - 1; k > 0; k--)
            w->left.async[k] = w->left.async[k - 1];
        w->left.async[0] = slot + 1;
    }
    changed = hasProcessed(st, own, slot, win->time);
    if (!st->seen || (!changed && !st->pending)) {
        st->time = win->time;
        st->seen = 1;
        if (ahead && !w->many && n + ahead < w->len)
            w->next = n + ahead; /* nor did those that only it could have processed */
        return;
    }
    if (!takeTime(st, own, win->time))
        return;
    if (busy) {
        if (changed)
            st->pending = 1;
        return;
    }
    st->pending = 0;
    if (ahead && !w->many && n >= w->end && n + ahead < w->len && countStretch(w, st, entry, n, win))
        return;
    __sync_fetch_and_add(&st->count, 1);
    st->stamp = w->stamp;
    w->counted++;
}

static long lookAtRecord(__u32 i, struct walk *w)
{
    struct ebpfMonRecState *st;
    struct window win;
    __u32 n = w->next, entry, slot;

    if (n >= w->len || !closureEntry(w->first + n, &entry))
        return 1;
    w->next = n + 1;
    slot = EBPFMON_ENTRY_SLOT(entry);
    st = bpf_map_lookup_elem(&recState, &slot);
    if (!st || !st->addr)
        return 0;
    if (readWindow(&win, st->addr, w->time))
        countLost(EBPFMON_LOST_FAULT);
    else
        judgeRecord(w, st, entry, n, &win);
    return 0;
}

DEFINE_WALK(lookAtRecord, struct walk, snapshot)

/* The root's own look tells whether there is a chain; if it is one record, that was it. 0: there is nothing to walk.
 */
static __always_inline int lookAtRoot(struct walk *w, __u32 slot, __u32 evenUnchanged)
{
    struct ebpfMonRecState *st = bpf_map_lookup_elem(&recState, &slot);
    struct window win;

    if (!w || !st || !st->addr)
        return 0;
    if (readWindow(&win, st->addr, w->time)) {
        countLost(EBPFMON_LOST_FAULT);
        return 0;
    }
    /* a read or a plain put; a record that is busy may be a seq in the middle of its links */
    if (!evenUnchanged && st->seen && win.time == st->time && !st->pending && !isBusy(&win, w->pactBefore))
        return 0;
    if (w->len > 1)
        return 1;
    judgeRecord(w, st, EBPFMON_ENTRY(slot, 0, 0), 0, &win);
    return 0;
}

/* Global as ebpfmon_note_cause is; and the stack of its caller has no room for it. */
#ifdef EBPFMON_OLD_KERNEL
__attribute__((noinline)) int ebpfmon_look_at_root(__u32 slot, __u32 evenUnchanged)
{
    return lookAtRoot(snapshotFindRoom(), slot, evenUnchanged);
}
#define LOOK_AT_ROOT(w, slot, evenUnchanged) ebpfmon_look_at_root(slot, evenUnchanged)
#else
__attribute__((noinline)) int ebpfmon_look_at_root(struct walk *w, __u32 slot, __u32 evenUnchanged)
{
    return lookAtRoot(w, slot, evenUnchanged);
}
#define LOOK_AT_ROOT(w, slot, evenUnchanged) ebpfmon_look_at_root(w, slot, evenUnchanged)
#endif

/* The processings of one root's chain. Returns how many records were processed. */
static __always_inline __u32 takeSnapshot(const struct caller *c, __u32 slot, __u64 now, int many, int late,
                                          struct leftBusy *left)
{
    struct ebpfMonRecConf *rc = bpf_map_lookup_elem(&recConf, &slot);
    BEGIN_WALK(snapshot, struct walk, w);

    if (!rc || !rc->len || !w)
        return 0;
    __builtin_memset(w, 0, sizeof(*w));
    w->stamp = now;
    w->first = rc->first;
    w->time = c->conf->time;
    w->pactBefore = c->conf->pact - (c->conf->time - EBPFMON_TIME_WINDOW);
    w->next = w->end = rc->zero;
    w->many = many || (rc->flags & EBPFMON_REC_SINGLE);
    w->len = rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX;
    /* With many locks held not even a NOTIME root is walked for nothing: the same chain would be, for each of them. */
    if (LOOK_AT_ROOT(w, slot, late || (!many && (rc->flags & EBPFMON_REC_NOTIME))))
        WALK(lookAtRecord, w->len, w);
    *left = w->left;
    return w->counted;
}

#endif

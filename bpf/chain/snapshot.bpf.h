/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The snapshot: finds the records that processed by one look at the end of the chain.
 *
 * At the entry of dbScanUnlock() the thread still holds the lock set, so no record of the chain changes. Each
 * processing changes the time stamp of a record (dbCommon.time). The user part has written the records that the root
 * can reach into "closure". To compare the time stamp of a record with the last one seen costs a tenth of a trap at
 * dbProcess().
 */
#ifndef EBPFMON_SNAPSHOT_BPF_H
#define EBPFMON_SNAPSHOT_BPF_H

#include "common/walk.bpf.h"
#include "pass/look.bpf.h"

int ebpfmon_note_async(__u32 slot, __u64 now, __u32 busy); /* async.bpf.c */

struct walk {
    __u64 stamp;
    __u32 first, len; /* the closure */
    __u32 next;       /* place in the closure at which the next step begins */
    __u32 end;        /* place of the last record of a stretch whose records are looked at one by one */
    __u32 counted;
    __u32 time;
    __u32 pactBefore; /* bytes from the begin of the window to PACT */
    __u32 many;       /* nonzero: do not use stretches, because several lock sets are held and a record may have been
                       * processed by another one than the record before it; or because of EBPFMON_REC_SINGLE */
    struct leftBusy left;
};

WALK_ROOM(snapshot, struct walk)

/* Nonzero: this record has processed since it was counted last. It may have been counted with its whole stretch. "own":
 * the time that was noted for the record itself. At the release of several lock sets, records are looked at in any
 * order, and the last record of the stretch may just have been counted: then what was noted before that tells. */
static __always_inline int hasProcessed(const struct walk *w, const struct ebpfMonRecState *st, __u64 own, __u32 slot,
                                        __u64 time)
{
    __u64 known = stampOrder(own), stretch;
    __u32 last = st->last;

    if (last != slot) {
        struct ebpfMonRecState *ls = findState(last);

        if (ls) {
            stretch = stampOrder(w->many && ls->stamp == w->stamp ? ls->before : ls->time);
            if (stretch > known)
                known = stretch;
        }
    }
    return stampOrder(time) > known;
}

/* The record at place n has processed. If the last record of its stretch has, too, all between them have, and one look
 * counts them all. 0: the last one has not, or is asynchronous, so look at the records one by one. "win" is only room:
 * its contents are not needed any more, and a second one would not fit on the stack (512 bytes for all functions that
 * call each other). */
static __always_inline int countStretch(struct walk *w, struct ebpfMonRecState *st, __u32 entry, __u32 n,
                                        struct window *win)
{
    __u32 ahead = EBPFMON_ENTRY_AHEAD(entry), last;
    struct ebpfMonRecState *ls;

    w->end = n + ahead;
    if (!readClosureEntry(w->first + n + ahead, &last))
        return 0;
    last = EBPFMON_ENTRY_SLOT(last);
    ls = findState(last);
    if (!ls || !ls->addr || !ls->seen || readWindow(win, ls->addr, w->time))
        return 0;
    if (stampOrder(win->time) <= stampOrder(ls->time) || ls->pending || isBusy(win, w->pactBefore))
        return 0;
    /* It processed before the first one did: by a link that we do not know yet. Those between need not have
     * processed. */
    if (stampOrder(win->time) < stampOrder(st->time))
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

/* Notes the time stamp up to which the record is counted. A sweep looks without the lock set (sweep.bpf.c) and may see
 * the same time stamp: one of both counts it, and for the other this returns 0. Before kernel 5.17 there are no sweeps.
 * The user part may change the time meanwhile, too (closureTable.c, setLast). Then the look is made again. */
static __always_inline int takeTime(struct ebpfMonRecState *st, __u64 own, __u64 time)
{
#ifdef EBPFMON_OLD_KERNEL /* the operation came with 5.12 */
    if (*(volatile __u64 *)&st->time != own)
        return 0;
    *(volatile __u64 *)&st->time = time;
    return 1;
#else
    return __sync_bool_compare_and_swap(&st->time, own, time);
#endif
}

static __always_inline __u32 readTrapped(const struct ebpfMonRecState *st)
{
    return (__u32) * (volatile __u64 *)&st->trapped;
}

/* Nonzero: the trap saw the record complete since it was counted last. If it did not, and the time stamp is new, device
 * support has set it, as that of asyn does for arrays before it requests a scan. */
static __always_inline int hasCompleted(struct ebpfMonRecState *st, int isStamped)
{
    if (st->trapSeen != readTrapped(st))
        return 1;
    st->strange += isStamped;
    return 0;
}

/* Compares the time stamp of one record with the last one seen. An asynchronous record may change its time stamp when
 * it begins (output records do, so that readers with TSEL see it), and again when it completes. It counts as processed
 * when PACT is clear again. "n": its place in the closure. */
static __always_inline void judgeRecord(struct walk *w, struct ebpfMonRecState *st, __u32 entry, __u32 n,
                                        struct window *win)
{
    __u32 slot = EBPFMON_ENTRY_SLOT(entry), ahead = EBPFMON_ENTRY_AHEAD(entry);
    int changed, busy = isBusy(win, w->pactBefore);
    __u64 own = *(volatile __u64 *)&st->time;

    /* The thread that set PACT holds the lock set until its own look. So the first look that finds PACT set belongs to
     * the chain that set it. */
    if (!busy != !st->noted)
        ebpfmon_note_async(slot, w->stamp, busy);
    if (!busy) {
        st->noted = 0;
    } else if (!st->noted) {
        st->wasBusy = 1;
        st->noted = EBPFMON_NOTED_BUSY; /* an entry in "causes" is of an earlier processing */
        w->left.more |= w->left.async[EBPFMON_ASYNC - 1] != 0;
#pragma unroll
        for (int k = EBPFMON_ASYNC - 1; k > 0; k--)
            w->left.async[k] = w->left.async[k - 1];
        w->left.async[0] = slot + 1;
    }
    changed = hasProcessed(w, st, own, slot, win->time);
    if (st->watch & EBPFMON_WATCH_STAMPS)
        changed = hasCompleted(st, changed && st->seen && !busy);
    if (!st->seen || (!changed && !st->pending)) {
        st->time = win->time;
        st->seen = 1;
        if (ahead && !w->many && n + ahead < w->len)
            w->next = n + ahead; /* the records that only this one could make process have not processed, either */
        return;
    }
    if (!takeTime(st, own, win->time)) {
        own = *(volatile __u64 *)&st->time;
        if (!hasProcessed(w, st, own, slot, win->time) || !takeTime(st, own, win->time))
            return;
    }
    if (busy) {
        if (changed)
            st->pending = 1;
        return;
    }
    st->pending = 0;
    if (takeEarly(st))
        return;
    if (ahead && !w->many && n >= w->end && n + ahead < w->len && countStretch(w, st, entry, n, win))
        return;
    if (st->watch & EBPFMON_WATCH_STAMPS)
        st->trapSeen = readTrapped(st);
    __sync_fetch_and_add(&st->count, 1);
    st->before = own;
    st->stamp = w->stamp;
    w->counted++;
}

static __always_inline long lookAtRecord(__u32 i, struct walk *w)
{
    struct ebpfMonRecState *st;
    struct window win;
    __u32 n = w->next, entry, slot;

    if (n >= w->len || !readClosureEntry(w->first + n, &entry))
        return 1;
    w->next = n + 1;
    slot = EBPFMON_ENTRY_SLOT(entry);
    st = findState(slot);
    if (!st || !st->addr)
        return 0;
    if (readWindow(&win, st->addr, w->time))
        countLost(EBPFMON_LOST_FAULT);
    else
        judgeRecord(w, st, entry, n, &win);
    return 0;
}

DEFINE_WALK(lookAtRecord, struct walk, snapshot)

/* Looks at the root, which shows if there is a chain. If the root is alone in its closure, that is all. 0: there is
 * nothing to walk through. */
static __always_inline int lookAtRoot(struct walk *w, __u32 slot, __u32 evenUnchanged)
{
    struct ebpfMonRecState *st = findState(slot);
    struct window win;

    if (!w || !st || !st->addr)
        return 0;
    if (readWindow(&win, st->addr, w->time)) {
        countLost(EBPFMON_LOST_FAULT);
        return 0;
    }
    /* nothing processed: it was a read or a plain put. A record that is busy may be a seq in the middle of its links */
    if (!evenUnchanged && st->seen && win.time == st->time && !st->pending && !isBusy(&win, w->pactBefore))
        return 0;
    if (w->len > 1)
        return 1;
    judgeRecord(w, st, EBPFMON_ENTRY(slot, 0, 0), 0, &win);
    return 0;
}

/* A global function, as ebpfmon_note_cause, also because the stack of its caller has no room for it. */
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

#define MANY_READ 1 /* several lock sets are held, and the thread has not put */
#define MANY_PUT  2 /* … and it has */

/* Takes the snapshot of the chain of one root: w->counted is the number of records that processed, and w->left has
 * those that are still busy. "many": MANY_…; 0: one lock set is held. The first contents of *w are 0. */
static __always_inline void takeSnapshot(const struct caller *c, __u32 slot, __u64 now, int many, int late,
                                         struct walk *w)
{
    struct ebpfMonRecConf *rc = findConf(slot);

    if (!rc || !rc->len)
        return;
    w->stamp = now;
    /* Before the closure: a walk through an old closure that begins while closures change must see EBPFMON_REC_SINGLE,
     * also if the change is over before it goes on. */
    w->many = many || (*(volatile __u8 *)&rc->flags & EBPFMON_REC_SINGLE);
    w->first = *(volatile __u32 *)&rc->first;
    w->time = c->conf->time;
    w->pactBefore = c->conf->pact - (c->conf->time - EBPFMON_TIME_WINDOW);
    w->next = w->end = rc->zero;
    w->len = rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX;
    /* With several lock sets held, a root with NOTIME that has not changed is walked through only after a put: the same
     * closure would be walked through for each of them at each read. */
    if (LOOK_AT_ROOT(w, slot, late || (many != MANY_READ && (rc->flags & EBPFMON_REC_NOTIME))))
        WALK(lookAtRecord, w->len, w);
}

#endif

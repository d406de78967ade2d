// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * What processed, and how long its chain took, by one look at the chain's end.
 *
 * At the entry of dbScanUnlock the lock set is still held, so every record that the chain processed lies
 * still. A record's time stamp (dbCommon.time) moves with each processing; the records that the root can
 * reach were put into "closure" by the user half. Comparing each one's time stamp with the last one seen
 * costs a tenth of a trap on dbProcess.
 */
#include "who.bpf.h"

/* struct dbLocker, lockRecord (dbLockPvt.h) of EPICS 7 */
#define LOCKER_MAXREFS 32
#define LOCKER_REFS    40
#define LOCKREF_SIZE   16
#define LOCKRECORD_SET     16
#define LOCKRECORD_PRECORD 24
#define MANY_MAX 256

/* Stops the clock of a thread that died with a lock: more than this is no chain. */
#define CHAIN_MAX_NS (3600ull * 1000000000ull)

/* What a snapshot wants of a record: TIME, and PACT, which lies some 90 bytes before it. One read for both:
 * each read from user memory costs as much as all the rest of a look. */
#define WINDOW      96
#define WINDOW_TIME (WINDOW - 8)

struct window {
    __u8  before[WINDOW_TIME];
    __u64 time;
};

static __always_inline int readWindow(struct window *w, __u64 addr, __u16 timeOff)
{
    return bpf_probe_read_user(w, sizeof(*w), (void *)(addr + timeOff - WINDOW_TIME));
}

/* The bound is tested where it is used: verifiers before 6.8 forget it with the register. */
static __always_inline int isBusy(const struct window *w, __u32 pactBefore)
{
    barrier_var(pactBefore);
    return pactBefore < WINDOW_TIME && w->before[pactBefore];
}

static __always_inline __u64 lockSetOf(const struct ebpfMonTargetConf *conf, __u64 precord)
{
    return readPtr(readPtr(precord + conf->lset) + LOCKRECORD_SET);
}

/* Period of a periodic scan thread, from its name "scan-0.1" (dbScan.c, spawnPeriodic); 0: it is none. What
 * sprintf writes with an exponent is no period that a thread could keep. */
static __always_inline __u64 scanPeriod(const char comm[EBPFMON_COMM_MAX])
{
    __u64 ns = 0, digit = 1000000000u;
    int i, point = 0;

    if (comm[0] != 's' || comm[1] != 'c' || comm[2] != 'a' || comm[3] != 'n' || comm[4] != '-')
        return 0;
#pragma unroll
    for (i = 5; i < EBPFMON_COMM_MAX - 1; i++) {
        char c = comm[i];

        if (!c)
            break;
        if (c == '.') {
            point = 1;
            continue;
        }
        if (c < '0' || c > '9')
            return 0;
        if (point)
            digit /= 10;
        else
            ns *= 10;
        ns += (__u64)(c - '0') * digit;
    }
    return ns;
}

static __always_inline int isOnceThread(const char comm[EBPFMON_COMM_MAX])
{
    return comm[0] == 's' && comm[1] == 'c' && comm[2] == 'a' && comm[3] == 'n' && comm[4] == 'O' && comm[5] == 'n' &&
           comm[6] == 'c' && comm[7] == 'e' && !comm[8];
}

static __always_inline int isScanThread(struct ebpfMonThread *seen)
{
    char comm[EBPFMON_COMM_MAX];

    if (!seen->named) {
        seen->named = 1;
        if (!bpf_get_current_comm(comm, sizeof(comm))) {
            seen->scan.period = scanPeriod(comm);
            seen->isOnce = isOnceThread(comm);
        }
    }
    return seen->scan.period != 0;
}

/* A pass of a scan thread begins: when the record comes again that the last one began with, or, should that have left
 * the list, after a rest. The rest alone does not tell: an overrun can leave next to none (dbScan.c, periodicTask). */
static __always_inline void scanBegins(struct ebpfMonScan *s, __u64 root, __u64 now)
{
    __u64 idle = now - s->end, period = now - s->begin;

    if (s->begin && root != s->first && idle < s->period / 4)
        return;
    /* after a longer rest there was nothing to scan, or the IOC was paused */
    if (s->begin && idle <= 4 * s->period + 1000000000u) {
        s->passes++;
        s->sum += period;
        s->busy += s->end - s->begin;
        if (period > s->max)
            s->max = period;
        s->eater = s->root;
        if (period > s->period + s->period / 2) {
            s->late++;
            s->lateEater = s->root;
        }
    }
    s->begin = s->end = now;
    s->first = s->root = root;
    s->longest = 0;
}

static __always_inline void scanChain(struct ebpfMonScan *s, const struct ebpfMonHeld *h, __u64 now)
{
    s->end = now;
    if (now - h->begin > s->longest) {
        s->longest = now - h->begin;
        s->root = h->root;
    }
}

SEC("uprobe")
int ebpfmon_lock(struct pt_regs *ctx)
{
    __u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid(), precord = PT_REGS_PARM1(ctx), set;
    __u32 tgid = id >> 32, tid = (__u32)id, n;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct thread *th;
    struct ebpfMonHeld *h;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    th = threadOf(tid);
    if (!th)
        return 0;
    set = lockSetOf(conf, precord);
    n = th->seen.heldCount;
    if (n > 0 && n <= EBPFMON_NESTED) {
        h = &th->seen.held[(n - 1) & (EBPFMON_NESTED - 1)];
        if (h->lockSet == set) { /* the lock is recursive */
            h->depth++;
            return 0;
        }
    }
    if (n >= EBPFMON_NESTED) {
        countLost(EBPFMON_LOST_NESTED);
        th->seen.heldCount = n < 1000 ? n + 1 : n;
        return 0;
    }
    h = &th->seen.held[n & (EBPFMON_NESTED - 1)];
    h->lockSet = set;
    h->root = precord;
    h->begin = now;
    h->depth = 1;
    h->gave = 0;
    if (n == 0) {
        th->off.left = th->off.blocked = th->off.queued = th->off.longest = 0;
        th->off.longestSyscall = EBPFMON_NO_SYSCALL;
        th->off.handed = th->handed; /* the first chain that it makes */
        th->handed = 0;
    }
    th->seen.heldCount = n + 1;
    if (n == 0 && isScanThread(&th->seen))
        scanBegins(&th->seen.scan, precord, now);
    else if (n == 0 && th->seen.isOnce)
        th->off.handed = takenOut(conf, tgid, precord, EBPFMON_QUEUE_ONCE, now, &th->from);
    return 0;
}

/* Records that a chain left processing asynchronously. */
struct left {
    __u32 async[EBPFMON_ASYNC]; /* 1 + slot */
    __u32 more;                 /* there were more, and of the first ones the cause is not known */
};

struct walk {
    __u64 stamp;
    __u32 first, len; /* the closure */
    __u32 next;       /* place in it to go on from */
    __u32 end;        /* place of the last record of a stretch that is looked through one by one */
    __u32 counted;
    __u32 looked;
    __u32 time;
    __u32 pactBefore; /* PACT's place in the window */
    __u32 many;       /* several locks are held: a record may have been processed by another than its forerunner */
    struct left left;
};

/* epicsTimeStamp as a number that can be compared: seconds are in the low half. */
static __always_inline __u64 order(__u64 time)
{
    return time << 32 | time >> 32;
}

/* Did this record process since it was accounted for? It may have gone by with its whole stretch. */
static __always_inline int isLater(const struct ebpfMonRecState *st, __u32 slot, __u64 time)
{
    __u64 known = order(st->time);
    __u32 last = st->last;

    if (last != slot) {
        struct ebpfMonRecState *ls = bpf_map_lookup_elem(&recState, &last);

        if (ls && order(ls->time) > known)
            known = order(ls->time);
    }
    return order(time) > known;
}

/* The record at place n processed; if the last one of its stretch did, all between them did, and are counted
 * with one look. 0: it did not, or is asynchronous, so the records are to be looked at one by one. "win" is room: what
 * it has is not needed any more, and a second one would not fit on the stack (512 bytes for all that call each other). */
static __always_inline int wholeStretch(struct walk *w, struct ebpfMonRecState *st, __u32 entry, __u32 n,
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
    w->looked++;
    if (order(win->time) <= order(ls->time) || ls->pending || isBusy(win, w->pactBefore))
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

/* Compares one record's time stamp with the last seen. An asynchronous record may move its time stamp
 * when it begins (output records do, so that TSEL readers see it) and again when it completes: the
 * processing counts when PACT is clear again. "n" is its place in the closure. */
static __always_inline void judge(struct walk *w, struct ebpfMonRecState *st, __u32 entry, __u32 n, struct window *win)
{
    __u32 slot = EBPFMON_ENTRY_SLOT(entry), ahead = EBPFMON_ENTRY_AHEAD(entry);
    int changed, busy = isBusy(win, w->pactBefore);

    w->looked++;
    /* Whoever set PACT holds the lock until its own look: so the first look that finds it set is that chain's. */
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
    changed = isLater(st, slot, win->time);
    if (!st->seen || (!changed && !st->pending)) {
        st->time = win->time;
        st->seen = 1;
        if (ahead && !w->many && n + ahead < w->len)
            w->next = n + ahead; /* nor did those that only it could have processed */
        return;
    }
    st->time = win->time;
    if (busy) {
        if (changed)
            st->pending = 1;
        return;
    }
    st->pending = 0;
    if (ahead && !w->many && n >= w->end && n + ahead < w->len && wholeStretch(w, st, entry, n, win))
        return;
    st->count++;
    st->stamp = w->stamp;
    w->counted++;
}

static long look(__u32 i, struct walk *w)
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
        judge(w, st, entry, n, &win);
    return 0;
}

/* The root's own look tells whether there is a chain; if it is one record, that was it. 0: there is nothing to walk.
 * Global as ebpfmon_note_cause is; and the stack of its caller has no room for it. */
__attribute__((noinline)) int ebpfmon_look_at_root(struct walk *w, __u32 slot, __u32 evenUnchanged)
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
    judge(w, st, EBPFMON_ENTRY(slot, 0, 0), 0, &win);
    return 0;
}

struct emit {
    struct ebpfMonChainEvent *ev;
    __u64 stamp;
    __u32 first;
    __u32 len;
    __u32 next;  /* closure index to go on from */
    __u32 through; /* before this one all belong to a stretch that was passed as a whole */
    __u16 sevr, stat, time;
    struct ebpfMonChain *chain; /* for every part; in the thread's entry, because the stack has no room */
    __u16 from; /* SEVR or STAT, whichever comes first */
    __u8 *span; /* the thread's buffer: room for twice SPAN */
};

/* SEVR, STAT and TIME, the last of them, lie within so many bytes (catalogue.c sees to it), and mostly the value does so,
 * too. All that is between is read with them: a read of user memory takes some 90 ns, and 300 bytes 25 more. */
#define SPAN 512

static __always_inline int readSpan(const struct emit *e, __u64 addr, __u64 len)
{
    len &= 2 * SPAN - 1; /* for the verifier, as the masks below: nothing is beyond SPAN */
    barrier_var(len);
    return !bpf_probe_read_user(e->span, len, (void *)(addr + e->from));
}

static __always_inline void readRecord(const struct emit *e, const struct ebpfMonRecConf *rc, __u64 addr,
                                       struct ebpfMonChainRec *r)
{
    __u64 from = e->from, val = rc->valOff - from, len = e->time + sizeof(r->time) - from;
    __u64 wide = rc->valSize > 8 ? 16 : 8;

    if (val <= SPAN - 16 && readSpan(e, addr, val + wide > len ? val + wide : len)) {
        val &= SPAN - 1;
        *(__u64 *)&r->val[0] = *(__u64 *)(e->span + val);
        *(__u64 *)&r->val[8] = *(__u64 *)(e->span + val + 8);
    } else { /* it is far off, or in a page that nobody has touched */
        if (!readSpan(e, addr, len))
            countLost(EBPFMON_LOST_FAULT);
        if (rc->valOff)
            bpf_probe_read_user(r->val, wide, (void *)(addr + rc->valOff));
    }
    r->sevr = *(__u16 *)(e->span + ((e->sevr - from) & (SPAN - 1)));
    r->stat = *(__u16 *)(e->span + ((e->stat - from) & (SPAN - 1)));
    r->time = *(__u64 *)(e->span + ((e->time - from) & (SPAN - 1)));
}

static long emitRecord(__u32 i, struct emit *e)
{
    struct ebpfMonChainEvent *ev = e->ev;
    __u32 entry, slot, at, n = ev->chain.count;
    struct ebpfMonRecConf *rc;
    struct ebpfMonRecState *st;
    struct ebpfMonChainRec *r;

    if (e->next >= e->len || n >= EBPFMON_CHUNK)
        return 1;
    at = e->next++;
    if (!closureEntry(e->first + at, &entry))
        return 1;
    slot = EBPFMON_ENTRY_SLOT(entry);
    rc = bpf_map_lookup_elem(&recConf, &slot);
    st = bpf_map_lookup_elem(&recState, &slot);
    if (!rc || !st)
        return 0;
    if (EBPFMON_ENTRY_AHEAD(entry) && st->passStamp == e->stamp)
        e->through = at + EBPFMON_ENTRY_AHEAD(entry);
    if (at >= e->through && st->stamp != e->stamp)
        return 0;
    barrier_var(n);
    if (n >= EBPFMON_CHUNK) /* again: as in isBusy */
        return 1;
    r = &ev->rec[n];
    r->slot = slot;
    readRecord(e, rc, st->addr, r);
    ev->chain.count = n + 1;
    return 0;
}

static long emitPart(__u32 i, struct emit *e)
{
    struct ebpfMonChainEvent *ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);

    if (!ev) {
        countLost(EBPFMON_LOST_RING);
        return 1;
    }
    __builtin_memcpy(&ev->chain, e->chain, sizeof(ev->chain));
    ev->chain.part = i;
    e->ev = ev;
    bpf_loop(EBPFMON_CLOSURE_MAX, emitRecord, e, 0);
    ev = e->ev;
    ev->chain.last = e->next >= e->len;
    i = ev->chain.last;
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
    return i;
}

/* Who began what now goes on asynchronously: the client that this thread serves; or, when this chain is such a
 * second half itself, who began that; else its root and thread. Global, so that the verifier goes through it once and
 * not again after each of the calls before. */
__attribute__((noinline)) int ebpfmon_note_cause(__u64 root, __u32 rootSlot, __u32 wasAsync, __u32 async)
{
    struct ebpfMonCauseEvent *known = wasAsync ? bpf_map_lookup_elem(&causes, &rootSlot) : 0;
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32, tid = (__u32)id, slot = async - 1, n;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ebpfMonRecState *st = bpf_map_lookup_elem(&recState, &slot);
    struct thread *th = threadOf(tid);

    if (!conf || !th || !st)
        return 0;
    if (known && !th->client && known->head.tgid == tgid) {
        __builtin_memcpy(&th->cause, known, sizeof(th->cause));
    } else {
        th->cause.head.tgid = tgid;
        th->cause.head.ktime = bpf_ktime_get_ns();
        th->cause.root = root;
        th->cause.byMain = tid == tgid;
        th->cause.link = 0;
        th->cause.name[0] = 0;
        readCaller(&th->cause.who, th, conf, tgid, root);
    }
    th->cause.head.tid = tid;
    n = th->seen.heldCount;
    th->cause.begin = n && n <= EBPFMON_NESTED ? th->seen.held[(n - 1) & (EBPFMON_NESTED - 1)].begin : 0;
    th->cause.kept = 0;
    if (!bpf_map_update_elem(&causes, &slot, &th->cause, BPF_ANY))
        st->noted = EBPFMON_NOTED_CAUSE;
    return 0;
}

/* The processings of one root's chain. Returns how many records were processed. */
static __always_inline __u32 snapshot(struct ebpfMonTargetConf *conf, __u32 tgid, __u32 slot, __u64 now, int many,
                                      int late, struct left *left)
{
    struct ebpfMonRecConf *rc = bpf_map_lookup_elem(&recConf, &slot);
    struct walk w = {};

    if (!rc || !rc->len)
        return 0;
    w.stamp = now;
    w.first = rc->first;
    w.time = conf->time;
    w.pactBefore = conf->pact - (conf->time - WINDOW_TIME);
    w.next = w.end = rc->zero;
    w.many = many;
    w.len = rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX;
    /* With many locks held not even a NOTIME root is walked for nothing: the same chain would be, for each of them. */
    if (ebpfmon_look_at_root(&w, slot, late || (!many && (rc->flags & EBPFMON_REC_NOTIME))))
        bpf_loop(w.len, look, &w, 0);
    if (w.looked)
        countHit(tgid, EBPFMON_HIT_WALKED, w.looked);
    *left = w.left;
    return w.counted;
}

static __always_inline struct ebpfMonRootStat *rootStat(__u32 slot)
{
    static const struct ebpfMonRootStat none;
    struct ebpfMonRootStat *rs = bpf_map_lookup_elem(&roots, &slot);

    if (rs)
        return rs;
    bpf_map_update_elem(&roots, &slot, &none, BPF_NOEXIST);
    rs = bpf_map_lookup_elem(&roots, &slot);
    if (!rs)
        countLost(EBPFMON_LOST_ROOTS);
    return rs;
}

static __always_inline int isWanted(__u32 slot)
{
    struct ebpfMonRecConf *rc = bpf_map_lookup_elem(&recConf, &slot);

    return rc && !(rc->flags & EBPFMON_REC_UNWANTED);
}

/* Who waits for this record's completion is to know that there is a tree that it belongs to. */
__attribute__((noinline)) int ebpfmon_mark_kept(__u32 async)
{
    __u32 slot = async - 1;
    struct ebpfMonCauseEvent *cause = bpf_map_lookup_elem(&causes, &slot);

    if (cause)
        cause->kept = 1;
    return 0;
}

/* Whether the chain is under way still that handed this one over. */
static __always_inline int isEarly(const struct ebpfMonGiver *by)
{
    __u32 tid = by->tid, n;
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);

    if (!th)
        return 0;
    if (th->ending == by->begin)
        return 1;
    n = th->seen.heldCount;
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_NESTED; i++)
        if (i < n && th->seen.held[i].begin == by->begin)
            return 1;
    return 0;
}

/* The chain that handed this one over was kept, or is so slow already that it will be. */
static __always_inline int isOfKept(const struct ebpfMonTargetConf *conf, const struct ebpfMonGiver *by, __u64 now)
{
    return isKept(by) || (conf->slowNs && now - by->begin >= conf->slowNs && isEarly(by));
}

/* Where the chain comes from that is told of next. Returns flags for it. Global, as ebpfmon_note_cause. */
__attribute__((noinline)) int ebpfmon_tell_taken(__u32 iocId, __u64 now)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = (__u32)id;
    struct thread *th = bpf_map_lookup_elem(&threads, &tid), *giver;
    struct ebpfMonHandEvent *ev;

    if (!th || (!th->from.by.begin && !th->from.isLink))
        return 0;
    ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);
    if (!ev) {
        countLost(EBPFMON_LOST_RING);
        return 0;
    }
    ev->head.kind = EBPFMON_EV_TAKEN;
    ev->head.tgid = id >> 32;
    ev->head.tid = tid;
    ev->head.iocId = iocId;
    ev->head.ktime = now; /* the chain has the same */
    ev->what = th->from;
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
    if (!th->from.by.begin)
        return 0;
    tid = th->from.by.tid;
    giver = bpf_map_lookup_elem(&threads, &tid);
    if (giver)
        giver->awaited = th->from.by.begin;
    return isEarly(&th->from.by) ? EBPFMON_CHAIN_EARLY : 0;
}

static __always_inline void emitChain(const struct ebpfMonTargetConf *conf, struct thread *th,
                                      const struct ebpfMonCauseEvent *cause, __u32 slot, __u32 counted, __u64 wait,
                                      __u64 begin, __u64 now, const struct left *left, __u32 flags)
{
    struct ebpfMonRecConf *rc = bpf_map_lookup_elem(&recConf, &slot);
    struct ebpfMonRecState *st = bpf_map_lookup_elem(&recState, &slot);
    __u64 id = bpf_get_current_pid_tgid();
    __u32 n, outer = 0;
    struct ebpfMonChain *chain = &th->chain;
    struct emit e = { .chain = chain };

    if (!rc || !st)
        return;
    __builtin_memset(chain, 0, sizeof(*chain));
    chain->head.kind = EBPFMON_EV_CHAIN;
    chain->head.tgid = id >> 32;
    chain->head.tid = (__u32)id;
    chain->head.iocId = conf->iocId;
    chain->head.ktime = now;
    chain->begin = begin;
    chain->wait = wait;
    chain->rootSlot = slot;
    chain->total = counted;
    chain->flags = flags | (st->noted ? EBPFMON_CHAIN_BUSY : 0) | ((__u32)id == id >> 32 ? EBPFMON_CHAIN_MAIN : 0) |
                    (left->more ? EBPFMON_CHAIN_MORE : 0);
    chain->cpu = bpf_get_smp_processor_id();
    __builtin_memcpy(chain->async, left->async, sizeof(left->async));
    n = th->seen.heldCount; /* without this lock, which is about to be released */
    if (n > 0 && n <= EBPFMON_NESTED && recordSlot(id >> 32, th->seen.held[(n - 1) & (EBPFMON_NESTED - 1)].root, &outer))
        chain->outer = outer + 1;
    chain->syscall = EBPFMON_NO_SYSCALL;
    if (!n) { /* else it was counted since the outer chain's begin */
        chain->blocked = th->off.blocked;
        chain->queued = th->off.queued;
        chain->handed = th->off.handed;
        chain->longest = th->off.longest;
        chain->syscall = th->off.longestSyscall;
        chain->flags |= ebpfmon_tell_taken(conf->iocId, now);
    }
    if (!(flags & EBPFMON_CHAIN_LATE))
        chain->gave = heldAt(th, n)->gave;
    if (chain->gave) {
        struct chainKey key = { begin, (__u32)id };

        bpf_map_update_elem(&kept, &key, &slot, BPF_ANY);
    }
    bpf_get_current_comm(chain->comm, sizeof(chain->comm));
    if (cause) {
        chain->causeBegin = cause->begin;
        chain->causeTid = cause->head.tid;
    }
#pragma unroll
    for (int i = 0; i < EBPFMON_ASYNC; i++)
        if (left->async[i])
            ebpfmon_mark_kept(left->async[i]);
    e.next = e.through = rc->zero;
    e.stamp = now;
    e.first = rc->first;
    e.len = rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX;
    e.time = conf->time;
    e.sevr = conf->sevr;
    e.stat = conf->stat;
    e.from = e.sevr < e.stat ? e.sevr : e.stat;
    e.span = th->data;
    bpf_loop(EBPFMON_CLOSURE_MAX / EBPFMON_CHUNK + 1, emitPart, &e, 0);
}

/* A lock set that is about to be released, and what was found then. */
struct ended {
    __u64 precord, now;
    __u32 slot, counted, wasAsync;
    struct left left;
};

static __always_inline void chainEnds(const struct ebpfMonTargetConf *conf, struct thread *th, struct ebpfMonHeld *h,
                                      struct ebpfMonRootStat *rs, const struct ended *x)
{
    __u64 id = bpf_get_current_pid_tgid(), begin = h->begin, start, lat, wait, nth, now = x->now, *rel;
    __u32 tgid = id >> 32, tid = (__u32)id, slot = x->slot, n = th->seen.heldCount, bucket;
    struct ebpfMonCauseEvent *cause;
    int whole, begun;

    if (n == 1 && th->locked.id) {
        tellResult(conf, tgid, tid, &th->locked, th->lockedStatus);
        th->locked.id = 0;
    }
    th->seen.heldCount = n - 1;
    if (n == 1 && th->seen.scan.period)
        scanChain(&th->seen.scan, h, now);
    if (h->root != x->precord) {
        /* locks are not released in the order we think: forget them all rather than guess */
        if (h->lockSet != lockSetOf(conf, x->precord)) {
            th->seen.heldCount = 0;
            if (th->locked.id) {
                tellResult(conf, tgid, tid, &th->locked, th->lockedStatus);
                th->locked.id = 0;
            }
            return;
        }
    }

    /* Whoever released this lock set while we asked for it is who we waited for. */
    {
        struct lockKey key = { h->lockSet, tgid };

        start = begin;
        rel = bpf_map_lookup_elem(&released, &key);
        if (rel) {
            if (*rel > begin)
                start = *rel;
            *rel = now;
        } else {
            bpf_map_update_elem(&released, &key, &now, BPF_ANY);
        }
    }
    th->seen.holds++;
    th->seen.holdSum += now - start;
    ebpfMonRecentAdd(&th->seen.hold, now, now - start, h->root);
    /* a chain that only began something is told of, but it is no chain yet */
    begun = !x->counted && x->left.async[0] && conf->level >= EBPFMON_TRACE;
    if ((!rs && !begun) || now - begin > CHAIN_MAX_NS)
        return;
    wait = start - begin;
    lat = now - start;
    nth = bpf_get_prandom_u32();
    if (rs) {
        nth = ++rs->count;
        rs->last = lat;
        rs->sum += lat;
        if (lat > rs->max)
            rs->max = lat;
        rs->waitSum += wait;
        if (wait > rs->waitMax)
            rs->waitMax = wait;
        bucket = ebpfMonBucket(lat) & (EBPFMON_BUCKETS - 1);
        rs->hist[bucket]++;
    }
    whole = rs && conf->slowNs && lat >= conf->slowNs;
    if (conf->level >= EBPFMON_TRACE && (conf->sample <= 1 || nth % conf->sample == 0) && isWanted(slot))
        whole = 1;
    cause = x->wasAsync && !th->client ? bpf_map_lookup_elem(&causes, &slot) : 0;
    if (cause && cause->head.tgid != tgid)
        cause = 0;
    if ((cause && cause->kept) || (rs && n == 1 && th->from.by.begin && isOfKept(conf, &th->from.by, now)))
        whole = 1; /* its other half was, or what handed it over … */
    if (th->awaited == begin)
        whole = 1; /* … or what it handed over */
    if (whole)
        emitChain(conf, th, cause, slot, x->counted, wait, begin, now, &x->left, 0);
}

SEC("uprobe")
int ebpfmon_unlock(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32, tid = (__u32)id, n;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ended x = { .precord = PT_REGS_PARM1(ctx), .now = bpf_ktime_get_ns() };
    struct ebpfMonRootStat *rs;
    struct thread *th;
    struct ebpfMonHeld *h;
    int late = 0;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    if (recordSlot(tgid, x.precord, &x.slot)) {
        struct ebpfMonRecState *st = bpf_map_lookup_elem(&recState, &x.slot);

        x.wasAsync = st && st->noted == EBPFMON_NOTED_CAUSE;
        /* what was locked before we looked may have processed its root before, too */
        if (conf->level >= EBPFMON_TRACE) {
            th = bpf_map_lookup_elem(&threads, &tid);
            late = !th || !th->seen.heldCount;
        }
        x.counted = snapshot(conf, tgid, x.slot, x.now, 0, late, &x.left);
#pragma unroll
        for (int i = 0; i < EBPFMON_ASYNC; i++)
            if (x.left.async[i])
                ebpfmon_note_cause(x.precord, x.slot, x.wasAsync, x.left.async[i]);
    }
    rs = x.counted ? rootStat(x.slot) : 0;
    if (rs)
        rs->chains++;
    if (conf->level < EBPFMON_CHAINS)
        return 0;

    th = bpf_map_lookup_elem(&threads, &tid);
    n = th ? th->seen.heldCount : 0;
    if (n == 0) { /* locked before we looked */
        th = x.counted && conf->level >= EBPFMON_TRACE && isWanted(x.slot) ? threadOf(tid) : 0;
        if (th)
            emitChain(conf, th, 0, x.slot, x.counted, 0, x.now, x.now, &x.left, EBPFMON_CHAIN_LATE);
        return 0;
    }
    if (n > EBPFMON_NESTED) {
        th->seen.heldCount = n - 1;
        return 0;
    }
    h = heldAt(th, n - 1);
    if (h->depth > 1) {
        h->depth--;
        return 0;
    }
    th->ending = h->begin;
    chainEnds(conf, th, h, rs, &x);
    th->ending = 0;
    if (n == 1 && th->seen.isOnce) { /* what scanOnce's thread took out is done */
        tellDone(conf, &th->from.by);
        th->from.by.begin = th->from.isLink = 0;
    }
    return 0;
}

struct many {
    __u64 refs;
    __u64 now;
    __u32 tgid;
    __u32 pad;
};

static long lookMany(__u32 i, struct many *m)
{
    __u64 plr = readPtr(m->refs + (__u64)i * LOCKREF_SIZE);
    __u32 tgid = m->tgid, slot, counted;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ebpfMonRootStat *rs;
    struct left left;

    if (!conf || !plr || !recordSlot(tgid, readPtr(plr + LOCKRECORD_PRECORD), &slot))
        return 0;
    counted = snapshot(conf, tgid, slot, m->now, 1, 0, &left);
    rs = counted ? rootStat(slot) : 0;
    if (rs)
        rs->chains++;
    return 0;
}

/* dbScanUnlockMany(dbLocker *): group puts of QSRV, and writes to links. Counted, but not timed. */
SEC("uprobe")
int ebpfmon_unlock_many(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), locker = PT_REGS_PARM1(ctx), n = 0;
    struct many m = {};

    m.tgid = id >> 32;
    if (!bpf_map_lookup_elem(&targets, &m.tgid))
        return 0;
    countHit(m.tgid, EBPFMON_HIT_ENTRY, 1);
    bpf_probe_read_user(&n, sizeof(n), (void *)(locker + LOCKER_MAXREFS));
    if (n > MANY_MAX)
        n = MANY_MAX;
    m.refs = locker + LOCKER_REFS;
    m.now = bpf_ktime_get_ns();
    bpf_loop(n, lookMany, &m, 0);
    return 0;
}

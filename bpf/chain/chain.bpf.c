// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * The end of a chain: its thread releases the lock set (lock.bpf.c has the begin). One look finds the records that
 * processed (snapshot.bpf.h). A chain that is kept is sent to the user part (sendChain.bpf.h).
 */
#include "chain/sendChain.bpf.h"
#include "chain/snapshot.bpf.h"
#include "pass/group.bpf.h"
#include "pass/passChain.bpf.h"
#include "pass/passRoot.bpf.h"
#include "thread/client.bpf.h"
#include "thread/heldLocks.bpf.h"

/* What takes longer than this is no chain: we have missed the release. */
#define CHAIN_MAX_NS (3600ull * 1000000000ull)

/* Notes who began the asynchronous records that go on after this chain: the client that this thread serves; or, if this
 * chain completes an asynchronous record itself, whoever began that record; or else the root and the thread of this
 * chain. A global function, so that the verifier checks it only once, and not again after each of the calls before
 * it. */
__attribute__((noinline)) int ebpfmon_note_cause(__u64 root, __u32 rootSlot, __u32 wasAsync, __u32 async)
{
    struct ebpfMonCauseEvent *known = wasAsync ? bpf_map_lookup_elem(&causes, &rootSlot) : 0;
    __u32 slot = async - 1;
    struct ebpfMonRecState *st = findState(slot);
    struct ebpfMonHeld *h;
    struct thread *th;
    struct caller c;

    if (!findCaller(&c) || !st || !(th = getThread(c.tid)))
        return 0;
    if (known && !th->client && known->head.tgid == c.tgid) {
        __builtin_memcpy(&th->cause, known, sizeof(th->cause));
    } else {
        th->cause.head.tgid = c.tgid;
        th->cause.head.ktime = bpf_ktime_get_ns();
        th->cause.root = root;
        th->cause.byMain = c.tid == c.tgid;
        th->cause.link = 0;
        th->cause.cpLink = getCpLink(th);
        th->cause.name[0] = 0;
        th->cause.putRecord = isInPut(th) ? th->put.precord : 0;
        th->cause.putField = th->put.pfldDes;
        th->cause.putNumber = (__u64)c.tid << 32 | th->put.number;
        readChainClient(&th->cause.who, &c, th, root);
    }
    th->cause.head.tid = c.tid;
    h = getLastHeld(th);
    th->cause.begin = h ? h->begin : 0;
    th->cause.kept = 0;
    if (!bpf_map_update_elem(&causes, &slot, &th->cause, BPF_ANY))
        st->noted = EBPFMON_NOTED_CAUSE;
    return 0;
}

/* A lock set that the thread is about to release, and what the snapshot found. */
struct ended {
    __u64 precord, now;
    __u32 slot;
    __u32 wasAsync; /* the chain completes its root, an asynchronous record */
    struct walk *found; /* which records processed. A pointer, because there is no room on the stack for a copy */
};

/* Notes the release. If another thread released this lock set after we had requested it, we waited for that thread.
 * Returns the time at which we got the lock set. */
static __always_inline __u64 noteRelease(__u32 tgid, __u64 lockSet, __u64 start, __u64 now)
{
    struct ebpfMonLockKey key = { lockSet, tgid };
    __u64 *before = bpf_map_lookup_elem(&released, &key);

    if (!before) {
        bpf_map_update_elem(&released, &key, &now, BPF_ANY);
        return start;
    }
    if (*before > start)
        start = *before;
    *before = now;
    return start;
}

static __always_inline __u64 findStart(const struct caller *c, struct ebpfMonHeld *h, __u64 now)
{
    __u64 start;

    if (h->sp && now - h->begin < LOCK_WAIT_LEAST) /* nobody can have waited longer for it. This saves a fifth of the
                                                    * program */
        return h->begin;
    start = noteRelease(c->tgid, getLockSet(c, h), h->begin, now);
    return h->got > start && h->got - h->begin > LOCK_WAIT_LEAST ? h->got : start;
}

/* Sends the result of the put that made this chain process. A global function, as ebpfmon_note_cause. */
__attribute__((noinline)) int ebpfmon_send_locked(void)
{
    struct thread *th;
    struct caller c;

    if (!findCaller(&c) || !(th = bpf_map_lookup_elem(&threads, &c.tid)))
        return 0;
    sendResult(&c, &th->locked, th->lockedStatus);
    th->locked.id = 0;
    return 0;
}

/* The record that the thread scanOnce took out of its queue is done. A global function, as ebpfmon_note_cause. */
__attribute__((noinline)) int ebpfmon_end_once(void)
{
    struct thread *th;
    struct caller c;

    if (findCaller(&c) && (th = bpf_map_lookup_elem(&threads, &c.tid)))
        endHandOver(&c, th);
    return 0;
}

/* Notes in th->kept what ebpfmon_send_chain needs. Member by member: the compiler would put a whole struct on the
 * stack, which has no room for it. */
static __always_inline void keepChain(struct thread *th, const struct ended *x, __u64 begin, __u64 wait, __u32 flags)
{
    th->kept.causeBegin = 0;
    th->kept.causeTid = 0;
    th->kept.begin = begin;
    th->kept.wait = wait;
    th->kept.now = x->now;
    th->kept.slot = x->slot;
    th->kept.counted = x->found->counted;
    th->kept.flags = flags;
    th->kept.left = x->found->left;
}

/* Ends a timed chain: notes its latency and lock wait, and decides if it is kept whole. */
static __always_inline void endChain(const struct caller *c, struct thread *th, struct ebpfMonHeld *h,
                                     struct ebpfMonRootStat *rs, const struct ended *x)
{
    __u64 begin = h->begin, now = x->now, start, latency, nth;
    __u32 slot = x->slot, n = th->seen.heldCount;
    struct ebpfMonCauseEvent *cause;
    int whole, begun;

    if (n == 1 && th->locked.id)
        ebpfmon_send_locked();
    th->seen.heldCount = n - 1;
    if (n == 1 && th->seen.scan.period)
        endScanChain(&th->seen.scan, h, now);
    /* the locks are released in an order that we do not expect: forget all of them instead of guessing */
    if (h->root != x->precord && getLockSet(c, h) != readLockSet(c->conf, x->precord)) {
        th->seen.heldCount = 0;
        if (th->locked.id)
            ebpfmon_send_locked();
        return;
    }
    start = findStart(c, h, now);
    latency = now - start;
    th->seen.holds++;
    th->seen.holdSum += latency;
    ebpfMonRecentAdd(&th->seen.hold, now, latency, h->root);
    /* no record has processed yet, but one has begun: the chain is sent, and not counted */
    begun = !x->found->counted && x->found->left.async[0] && c->conf->level >= EBPFMON_TRACE;
    if ((!rs && !begun) || now - begin > CHAIN_MAX_NS)
        return;
    nth = rs ? addLatency(rs, latency, start - begin) : bpf_get_prandom_u32();
    whole = rs && c->conf->slowNs && latency >= c->conf->slowNs;
    if (c->conf->level >= EBPFMON_TRACE && (c->conf->sample <= 1 || nth % c->conf->sample == 0) && isTraced(slot))
        whole = 1;
    cause = x->wasAsync && !th->client ? bpf_map_lookup_elem(&causes, &slot) : 0;
    if (cause && cause->head.tgid != c->tgid)
        cause = 0;
    /* This chain may complete what another chain began, or go on with what that handed over. If the other one was kept,
     * so is this one … */
    if ((cause && cause->kept) || (rs && n == 1 && th->from.source.begin && isSourceKept(c, &th->from.source, now)))
        whole = 1;
    if (th->awaited == begin)
        whole = 1; /* … or if a chain was kept to which it handed something over */
    if (whole) {
        keepChain(th, x, begin, start - begin, h->hasInner ? EBPFMON_CHAIN_MORE : 0);
        if (cause) {
            th->kept.causeBegin = cause->begin;
            th->kept.causeTid = cause->head.tid;
        }
        ebpfmon_send_chain();
    } else if (n == 1) {
        th->fromUnsent = 1;
    }
}

/* Finds the records that processed since the lock was taken. */
static __always_inline void findProcessed(const struct caller *c, struct ended *x)
{
    struct ebpfMonRecState *st;
    struct thread *th;
    int late = 0;

    __builtin_memset(x->found, 0, sizeof(*x->found));
    if (!findSlot(c->tgid, x->precord, &x->slot)) {
        countHits(c, EBPFMON_HIT_STRANGE, 1);
        return;
    }
    st = findState(x->slot);
    x->wasAsync = st && st->noted == EBPFMON_NOTED_CAUSE;
    /* if the chain took its lock before our probes were attached, its root may have processed before them, too */
    if (c->conf->level >= EBPFMON_TRACE) {
        th = bpf_map_lookup_elem(&threads, &c->tid);
        late = !th || !th->seen.heldCount;
    }
    takeSnapshot(c, x->slot, x->now, 0, late, x->found);
#pragma unroll
    for (int i = 0; i < EBPFMON_ASYNC; i++)
        if (x->found->left.async[i])
            ebpfmon_note_cause(x->precord, x->slot, x->wasAsync, x->found->left.async[i]);
}

/* Sends a chain that took its lock before our probes were attached: only its end is known. */
static __always_inline void sendLateChain(const struct caller *c, const struct ended *x)
{
    struct thread *th;

    if (!x->found->counted || c->conf->level < EBPFMON_TRACE || !isTraced(x->slot) || !(th = getThread(c->tid)))
        return;
    keepChain(th, x, x->now, 0, EBPFMON_CHAIN_LATE);
    ebpfmon_send_chain();
}

/* Finds and counts the records that processed. */
static __always_inline struct ebpfMonRootStat *countChain(const struct caller *c, struct ended *x)
{
    struct ebpfMonRootStat *rs;

    findProcessed(c, x);
    rs = x->found->counted ? getRootStat(x->slot) : 0;
    if (rs)
        rs->chains++;
    return rs;
}

/* The thread releases the lock set that it took last. */
static __always_inline void releaseLock(const struct caller *c, struct thread *th, struct ebpfMonRootStat *rs,
                                        const struct ended *x)
{
    __u32 n = th ? th->seen.heldCount : 0;
    struct ebpfMonHeld *h;

    if (n == 0) {
        sendLateChain(c, x);
        return;
    }
    if (n > EBPFMON_NESTED) {
        th->seen.heldCount = n - 1;
        return;
    }
    h = getHeld(th, n - 1);
    if (h->depth > 1) {
        h->depth--;
        h->hasInner |= x->found->counted || x->found->left.async[0];
        return;
    }
    th->ending = h->begin;
    endChain(c, th, h, rs, x);
    th->ending = 0;
    if (n == 1 && th->seen.isOnce)
        ebpfmon_end_once();
}

/* A global function, as ebpfmon_note_cause. "sp": the stack pointer. Nonzero: the thread may be in groups, which it
 * leaves now. */
__attribute__((noinline)) int ebpfmon_end_lock(__u64 precord, __u64 now, __u64 sp)
{
    BEGIN_WALK(snapshot, struct walk, w);
    struct ended x = { .precord = precord, .now = now, .found = w };
    struct ebpfMonRootStat *rs;
    struct thread *th = 0;
    struct caller c;
    __u32 sweeps;

    if (!w || !enterProbe(&c, EBPFMON_HIT_ENTRY))
        return 0;
    sweeps = c.conf->sweeps; /* now: if the thread loses its CPU below, the element may become one of another IOC */
    if (c.conf->level >= EBPFMON_CHAINS && (th = bpf_map_lookup_elem(&threads, &c.tid)))
        dropEndedPasses(th, sp);
    rs = countChain(&c, &x);
    if (c.conf->level >= EBPFMON_CHAINS)
        releaseLock(&c, th, rs, &x);
    return sweeps != 0;
}

/* Before kernel 5.17 there are no sweeps, because they need uprobe_multi (kernel 6.6). */
static __always_inline void leaveGroups(__u64 lock, __u64 now, __u32 isMany)
{
#ifndef EBPFMON_OLD_KERNEL
    ebpfmon_leave(lock, now, isMany);
#endif
}

/* Counts what the chain of this record has processed so far. Its thread holds its lock set. */
__attribute__((noinline)) int ebpfmon_count_part(__u64 precord, __u64 now)
{
    BEGIN_WALK(snapshot, struct walk, w);
    struct ebpfMonRootStat *rs;
    struct caller c;
    __u32 slot;

    if (!w || !findCaller(&c) || !findSlot(c.tgid, precord, &slot))
        return 0;
    __builtin_memset(w, 0, sizeof(*w));
    takeSnapshot(&c, slot, now, 0, 1, w);
    rs = w->counted ? getRootStat(slot) : 0;
    if (rs)
        rs->chains++;
    return 0;
}

/* Counts the part that the last call of dbProcess() began. Nonzero: the thread is in the chain of this call, because a
 * device support of it makes another call. "precord": the record whose chain is counted anyway. */
__attribute__((noinline)) int ebpfmon_end_part(__u64 precord, __u64 now, __u64 sp)
{
    struct thread *th;
    struct caller c;
    __u64 processed;

    if (!findCaller(&c) || !(th = bpf_map_lookup_elem(&threads, &c.tid)) || !th->processed)
        return 0;
    if (sp < th->processedSp)
        return 1;
    processed = th->processed;
    th->processed = 0;
    if (processed != precord)
        ebpfmon_count_part(processed, now);
    return 0;
}

static __always_inline void seeProcess(__u64 precord, __u64 now, __u64 sp)
{
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || ebpfmon_end_part(precord, now, sp))
        return;
    ebpfmon_count_part(precord, now);
    th = getThread(c.tid);
    if (!th)
        return;
    hasParts = 1;
    th->processed = precord;
    th->processedSp = sp;
}

/* The calls of dbProcess(dbCommon *) by code outside of Base. A thread may process several records under one lock, or
 * one several times. Each call ends the part before it. Before kernel 5.17 it is not loaded. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_process_call, __u64 precord)
{
    RUN_TIMED(seeProcess(precord, now, PT_REGS_SP(ctx)));
}

static __always_inline void endPart(__u64 precord, __u64 now, __u64 sp)
{
#ifndef EBPFMON_OLD_KERNEL
    if (hasParts)
        ebpfmon_end_part(precord, now, sp);
#endif
}

/* dbScanUnlock(dbCommon *) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_unlock, __u64 precord)
{
    RUN_TIMED({
        endPart(precord, now, PT_REGS_SP(ctx));
        if (ebpfmon_end_lock(precord, now, PT_REGS_SP(ctx)))
            leaveGroups(precord, now, 0);
    });
}

/* Corrects the root, if the list has changed and the thread processed another record than expected. */
static __always_inline void correctRoot(const struct caller *c, struct thread *th, __u64 precord)
{
    struct ebpfMonHeld *h = getLastHeld(th);

    if (!h || !h->sp || h->root == precord)
        return;
    h->root = precord;
    h->lockSet = 0;
}

/* A global function, as ebpfmon_end_lock. */
__attribute__((noinline)) int ebpfmon_end_in_list(__u64 precord, __u64 now, __u64 sp)
{
    BEGIN_WALK(snapshot, struct walk, w);
    struct ended x = { .precord = precord, .now = now, .found = w };
    struct ebpfMonRootStat *rs;
    struct ebpfMonHeld *h;
    struct thread *th;
    struct caller c;

    if (!w || !enterProbe(&c, EBPFMON_HIT_ENTRY))
        return 0;
    rs = countChain(&c, &x);
    th = getThread(c.tid);
    if (!th)
        return 0;
    dropEndedPasses(th, sp);
    h = getLastHeld(th);
    if (isUntimed(&c, h)) {
        ebpfmon_end_untimed(now);
        noteRelease(c.tgid, readLockSet(c.conf, precord), now, now);
        return 0;
    }
    correctRoot(&c, th, precord);
    releaseLock(&c, th, rs, &x);
    return 0;
}

/* The call of dbScanUnlock(dbCommon *) in scanList(). Before kernel 5.17 it is not loaded. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_pass_next, __u64 precord)
{
    RUN_TIMED({
        ebpfmon_end_in_list(precord, now, PT_REGS_SP(ctx));
        ebpfmon_begin_next(precord, PT_REGS_SP(ctx));
    });
}

/* The thread releases one of several lock sets. Notes the time, by which another thread sees that it had to wait; not
 * if this thread holds the lock set by another request, too. A global function, as ebpfmon_note_cause. */
__attribute__((noinline)) int ebpfmon_note_one_of_many(__u64 set, __u64 now)
{
    struct thread *th;
    struct caller c;

    if (!findCaller(&c))
        return 0;
    th = bpf_map_lookup_elem(&threads, &c.tid);
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_NESTED; i++)
        if (th && i < th->seen.heldCount && getLockSet(&c, getHeld(th, i)) == set)
            return 0;
    noteRelease(c.tgid, set, now, now);
    return 0;
}

struct many {
    __u64 refs;
    __u64 now;
    __u64 count;
    __u64 many; /* MANY_… */
};

WALK_ROOM(locked, struct many)

static __always_inline long lookAtLocked(__u32 i, struct many *m)
{
    __u64 plr = readPtr(m->refs + (__u64)i * EBPFMON_LOCKREF_SIZE);
    struct ebpfMonRootStat *rs;
    BEGIN_WALK(snapshot, struct walk, w);
    struct caller c;
    __u32 slot;

    if (i >= m->count)
        return 1;
    if (!w || !findCaller(&c) || !plr || !findSlot(c.tgid, readPtr(plr + EBPFMON_LockRecord_precord), &slot))
        return 0;
    __builtin_memset(w, 0, sizeof(*w));
    if (c.conf->level >= EBPFMON_CHAINS)
        ebpfmon_note_one_of_many(readPtr(plr + EBPFMON_LockRecord_plockSet), m->now);
    takeSnapshot(&c, slot, m->now, m->many == MANY_PUT ? MANY_PUT : MANY_READ, 0, w);
    rs = w->counted ? getRootStat(slot) : 0;
    if (rs)
        rs->chains++;
    return 0;
}

DEFINE_WALK(lookAtLocked, struct many, locked)

static __always_inline void seeUnlockMany(__u64 locker, __u64 now)
{
    BEGIN_WALK(locked, struct many, m);
    struct thread *th;
    struct caller c;
    __u64 n = 0;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !m)
        return;
    bpf_probe_read_user(&n, sizeof(n), (void *)(locker + EBPFMON_LOCKER_MAXREFS));
    if (n > EBPFMON_MANY_MAX)
        n = EBPFMON_MANY_MAX;
    m->refs = locker + EBPFMON_LOCKER_REFS;
    m->now = now;
    m->count = n;
    m->many = MANY_READ;
    th = bpf_map_lookup_elem(&threads, &c.tid);
    if (th && th->putIdMany != (__u32)th->putId) {
        th->putIdMany = (__u32)th->putId;
        m->many = MANY_PUT;
    }
    if (th && th->putsLink) { /* it may have waited long for its locks: the link is another one since now */
        th->putsLink = 0;
        noteStretchPutAt(c.conf->iocId, now);
    }
    WALK(lookAtLocked, n, m);
    leaveGroups(locker, now, 1);
}

/* dbScanUnlockMany(dbLocker *): group puts of QSRV, and writes to links. These records are counted, but not timed. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_unlock_many, __u64 locker)
{
    RUN_TIMED(seeUnlockMany(locker, now));
}

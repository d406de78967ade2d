// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Chains: from the request for a lock to its release. What processed is found by one look at the end (walk.bpf.h); a
 * chain that is kept is told of (tell.bpf.h).
 */
#include "scan.bpf.h"
#include "tell.bpf.h"
#include "walk.bpf.h"
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

static __always_inline __u64 lockSetOf(const struct ebpfMonTargetConf *conf, __u64 precord)
{
    return readPtr(readPtr(precord + conf->lset) + LOCKRECORD_SET);
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
    h->handOvers = 0;
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

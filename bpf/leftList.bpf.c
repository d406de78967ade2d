// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Records that leave their scan list during a pass. scanList() (dbScan.c) chooses a record and then requests its lock.
 * If another thread has the lock, and puts to SCAN, the pass processes the record still, although it is in another
 * list. That list may process it, too, before one of the two passes ends, and a sweep would count one processing only.
 * Then nobody knows if there was a second one, so the count is marked as a lower bound.
 *
 * The same with a put to PHAS: the record goes to an earlier place of the same list, and the pass goes on from there,
 * so other records process twice.
 */
#include "ebpfMonBase.h"
#include "leftList.bpf.h"
#include "look.bpf.h"
#include "sweep.bpf.h"

/* The mutex of the scan list in which the record is. 0: in none. */
static __always_inline __u64 findList(const struct ebpfMonTargetConf *conf, __u64 precord)
{
    __u64 element = readPtr(precord + conf->spvt), list = element ? readPtr(element + EBPFMON_SCANELEMENT_LIST) : 0;

    return list ? readPtr(list + EBPFMON_SCANLIST_LOCK) : 0;
}

static __always_inline __s16 readPhase(const struct ebpfMonTargetConf *conf, __u64 precord)
{
    __s16 phas = 0;

    bpf_probe_read_user(&phas, sizeof(phas), (void *)(precord + conf->phas));
    return phas;
}

/* Makes room for another record. If the put to this one is not over, or a pass that may have chosen it, the record is
 * not sure. */
static __always_inline void freeEntry(struct ebpfMonLeft *e, __u32 tgid, struct ebpfMonMoved *m)
{
    struct ebpfMonListKey key = { e->list, tgid };
    struct ebpfMonList *list = key.mutex ? bpf_map_lookup_elem(&lists, &key) : 0;
    struct ebpfMonRecState *st;

    if (!key.mutex || (list && e->until && (list->end > list->begin || list->begin > e->until)))
        return;
    st = findState(e->slot);
    if (!st)
        return;
    st->unsure = 1;
    __sync_fetch_and_add(&m->unsure, 1);
}

__attribute__((noinline)) int ebpfmon_leave_list(__u64 precord)
{
    struct ebpfMonMoved *m;
    struct ebpfMonLeft *e;
    struct groupThread *gt;
    struct caller c;
    __u64 list, n;
    __u32 slot;

    if (!findCaller(&c) || !findSlot(c.tgid, precord, &slot) || !(m = bpf_map_lookup_elem(&moved, &c.tgid)))
        return 0;
    list = findList(c.conf, precord);
    m->lastPut = bpf_ktime_get_ns();
    if (!list)
        return 0;
    n = __sync_fetch_and_add(&m->leftAdded, 1);
    e = &m->left[n & (EBPFMON_LEFT_MAX - 1)];
    freeEntry(e, c.tgid, m);
    e->list = 0; /* no check looks at it until it is whole */
    e->until = 0;
    e->time = readPtr(precord + c.conf->time);
    e->slot = slot;
    e->tid = c.tid;
    e->phas = readPhase(c.conf, precord);
    __sync_lock_test_and_set(&e->list, list);
    gt = bpf_map_lookup_elem(&groupThreads, &c.tid);
    if (!gt) /* its end will not be known: it seems to be under way */
        return 0;
    if (gt->leftEnd == gt->leftFirst)
        gt->leftFirst = (__u32)n;
    gt->leftEnd = (__u32)n + 1;
    return 0;
}

/* Nonzero: a pass of this list may be under way. */
static __always_inline int isUnderWay(__u64 mutex, __u32 tgid)
{
    struct ebpfMonListKey key = { mutex, tgid };
    struct ebpfMonList *list = bpf_map_lookup_elem(&lists, &key);

    return list && *(volatile __u64 *)&list->begin > *(volatile __u64 *)&list->end;
}

/* Nonzero: no thread waits for the lock set of this record (dbLock.c, dbScanLock: a reference from before the wait
 * until the lock is there). The caller holds the lock. A pass that lost its CPU between choosing the record and
 * requesting its lock has no reference yet. */
static __always_inline int isUnwanted(const struct caller *c, __u32 slot)
{
    struct ebpfMonRecState *st = findState(slot);
    __s32 count = 0, refs = 0;
    __u64 set;

    if (!c->conf->countsWaiters || !st || !st->addr)
        return 0;
    set = readPtr(readPtr(st->addr + c->conf->lset) + EBPFMON_LOCKRECORD_SET);
    return !bpf_probe_read_user(&count, sizeof(count), (void *)(set + EBPFMON_LOCKSET_COUNT)) &&
           !bpf_probe_read_user(&refs, sizeof(refs), (void *)(set + EBPFMON_LOCKSET_REFS)) && refs == count;
}

struct leftLook {
    __u64 mutex, begin, now;
    __u32 next, end;
    __u32 tgid, tid;
    __u32 isLocked; /* nonzero: this thread holds the locks of its records still */
    __u32 changed; /* records that are not sure now */
};

static long endLeaving(__u32 i, struct leftLook *v)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &v->tgid);
    struct ebpfMonLeft *e;
    struct caller c;

    if (!m || v->next == v->end || !findCaller(&c))
        return 1;
    e = &m->left[v->next++ & (EBPFMON_LEFT_MAX - 1)];
    if (e->tid != v->tid || e->until)
        return 0;
    e->until = v->now;
    if (v->isLocked && isUnwanted(&c, e->slot) && !isUnderWay(e->list, v->tgid))
        e->list = 0; /* no pass has chosen it */
    return 0;
}

__attribute__((noinline)) int ebpfmon_end_leaving(__u32 isLocked)
{
    struct leftLook v = { .isLocked = isLocked };
    struct ebpfMonMoved *m;
    struct groupThread *gt;
    struct caller c;

    if (!findCaller(&c) || !(gt = bpf_map_lookup_elem(&groupThreads, &c.tid)) ||
        !(m = bpf_map_lookup_elem(&moved, &c.tgid)))
        return 0;
    v.tgid = c.tgid;
    v.tid = c.tid;
    v.now = m->lastPut = bpf_ktime_get_ns();
    v.next = gt->leftFirst;
    v.end = gt->leftEnd;
    gt->leftFirst = gt->leftEnd = 0;
    bpf_loop(EBPFMON_LEFT_MAX, endLeaving, &v, 0);
    return 0;
}

/* The pass may have chosen this record before it left the list. Has somebody processed it since? */
static __always_inline void judgeLeft(struct leftLook *v, const struct caller *c, struct ebpfMonRecState *st,
                                      const struct ebpfMonLeft *e)
{
    __u64 list;

    if (readPtr(st->addr + c->conf->time) == e->time)
        return;
    list = findList(c->conf, st->addr);
    if (!list) { /* only this pass can have processed it. The lists may have been read again since it left */
        ebpfmon_sweep_closure(e->slot, v->now, SWEEP_MOVED);
        return;
    }
    if (list == v->mutex) {
        if (readPhase(c->conf, st->addr) < e->phas)
            noteMissed(c->tgid);
        return;
    }
    st->unsure = 1;
    v->changed++;
}

static long checkLeft(__u32 i, struct leftLook *v)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &v->tgid);
    struct ebpfMonRecState *st;
    struct ebpfMonLeft *e;
    struct caller c;

    if (!m || !findCaller(&c))
        return 1;
    e = &m->left[i & (EBPFMON_LEFT_MAX - 1)];
    /* a thread that scans a list does not wait for itself */
    if (e->list != v->mutex || e->tid == v->tid || (e->until && e->until < v->begin))
        return 0;
    st = findState(e->slot);
    if (st && st->addr)
        judgeLeft(v, &c, st, e);
    if (e->until)
        e->list = 0;
    return 0;
}

__attribute__((noinline)) int ebpfmon_check_left(__u64 mutex, __u64 now)
{
    struct leftLook v = { .mutex = mutex, .now = now };
    struct ebpfMonListKey key = { .mutex = mutex };
    struct ebpfMonList *list;
    struct ebpfMonMoved *m;
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps || !(m = bpf_map_lookup_elem(&moved, &c.tgid)))
        return 0;
    v.tgid = key.tgid = c.tgid;
    v.tid = c.tid;
    list = bpf_map_lookup_elem(&lists, &key);
    if (list) {
        v.begin = list->begin;
        list->end = now;
    }
    if (m->lastPut < v.begin && m->putsBegun == m->putsDone)
        return 0;
    bpf_loop(EBPFMON_LEFT_MAX, checkLeft, &v, 0);
    if (v.changed)
        __sync_fetch_and_add(&m->unsure, v.changed);
    return 0;
}

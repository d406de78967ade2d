/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Sends a chain that is kept whole to the user part, in parts. Before it comes the event that tells its source
 * chain. */
#ifndef EBPFMON_SENDCHAIN_BPF_H
#define EBPFMON_SENDCHAIN_BPF_H

#include "chain/snapshot.bpf.h"
#include "common/walk.bpf.h"
#include "thread/handOver.bpf.h"

struct sending {
#ifdef EBPFMON_OLD_KERNEL /* because a table cannot keep the address of an event in the ring */
    struct ebpfMonChainEvent event;
    __u8 data[2 * EBPFMON_RECORD_SPAN];
#else
    struct ebpfMonChainEvent *ev;
    struct thread *th; /* its "chain" is the head of each part; its "data" has room for twice EBPFMON_RECORD_SPAN */
#endif
    __u64 stamp;
    __u32 first;
    __u32 len;
    __u32 next;  /* place in the closure at which the next step begins */
    __u32 through; /* before this place all records belong to a stretch that was passed as a whole */
    __u16 sevr, stat, time;
    __u16 from; /* offset of SEVR or STAT, whichever is lower */
};

#ifdef EBPFMON_OLD_KERNEL
#define SENT_EVENT(e)  (&(e)->event)
#define RECORD_DATA(e) ((e)->data)
#else
#define SENT_EVENT(e)  ((e)->ev)
#define RECORD_DATA(e) ((e)->th->data)
#endif

WALK_ROOM(sending, struct sending)

/* Reads SEVR, STAT and TIME, and mostly the value, in one read. They lie within EBPFMON_RECORD_SPAN bytes, TIME last.
 * To read what is between them is cheap: a read of user memory takes some 90 ns, and 300 bytes take 25 ns more. */
static __always_inline int readSpan(struct sending *e, __u64 addr, __u64 len)
{
    len &= 2 * EBPFMON_RECORD_SPAN - 1; /* for the verifier, as the masks below; nothing is beyond
                                         * EBPFMON_RECORD_SPAN */
    barrier_var(len);
    return !bpf_probe_read_user(RECORD_DATA(e), len, (void *)(addr + e->from));
}

static __always_inline void readRecord(struct sending *e, const struct ebpfMonRecConf *rc, __u64 addr,
                                       struct ebpfMonChainRec *r)
{
    __u64 from = e->from, val = rc->valOff - from, len = e->time + sizeof(r->time) - from;
    __u64 wide = rc->valSize > 8 ? 16 : 8;

    if (val <= EBPFMON_RECORD_SPAN - 16 && readSpan(e, addr, val + wide > len ? val + wide : len)) {
        val &= EBPFMON_RECORD_SPAN - 1;
        *(__u64 *)&r->val[0] = *(__u64 *)(RECORD_DATA(e) + val);
        *(__u64 *)&r->val[8] = *(__u64 *)(RECORD_DATA(e) + val + 8);
    } else { /* the value is too far away, or in a page that nobody has used */
        if (!readSpan(e, addr, len))
            countLost(EBPFMON_LOST_FAULT);
        if (rc->valOff)
            bpf_probe_read_user(r->val, wide, (void *)(addr + rc->valOff));
    }
    r->sevr = *(__u16 *)(RECORD_DATA(e) + ((e->sevr - from) & (EBPFMON_RECORD_SPAN - 1)));
    r->stat = *(__u16 *)(RECORD_DATA(e) + ((e->stat - from) & (EBPFMON_RECORD_SPAN - 1)));
    r->time = *(__u64 *)(RECORD_DATA(e) + ((e->time - from) & (EBPFMON_RECORD_SPAN - 1)));
}

static __always_inline long addRecord(__u32 i, struct sending *e)
{
    struct ebpfMonChainEvent *ev = SENT_EVENT(e);
    struct ebpfMonRecConf *rc;
    struct ebpfMonRecState *st;
    struct ebpfMonChainRec *r;
    __u32 entry, slot, at, n;

    if (e->next >= e->len || ev->chain.count >= EBPFMON_CHUNK)
        return 1;
    at = e->next++;
    if (!readClosureEntry(e->first + at, &entry))
        return 1;
    slot = EBPFMON_ENTRY_SLOT(entry);
    rc = findConf(slot);
    st = findState(slot);
    if (!rc || !st)
        return 0;
    if (EBPFMON_ENTRY_AHEAD(entry) && st->passStamp == e->stamp)
        e->through = at + EBPFMON_ENTRY_AHEAD(entry);
    if (at >= e->through && st->stamp != e->stamp)
        return 0;
    /* Read again just before it is used: over the lookups the compiler keeps it on the stack, and there the verifier of
     * 6.1 does not learn its bound. */
    n = *(volatile __u32 *)&ev->chain.count;
    if (n >= EBPFMON_CHUNK)
        return 1;
    r = &ev->rec[n];
    r->slot = slot;
    readRecord(e, rc, st->addr, r);
    ev->chain.count++;
    return 0;
}

DEFINE_WALK_INLINE(addRecord, struct sending, sending)

/* Begins an event with the head that all parts have. NULL: there is no room. */
static __always_inline struct ebpfMonChainEvent *beginPart(struct sending *e)
{
#ifdef EBPFMON_OLD_KERNEL
    e->event.chain.count = 0;
    return &e->event;
#else
    struct ebpfMonChainEvent *ev = reserveShare(e->th->chain.head.iocId, sizeof(*ev), EBPFMON_SHARE_CHAINS);

    if (ev)
        __builtin_memcpy(&ev->chain, &e->th->chain, sizeof(ev->chain));
    return e->ev = ev;
#endif
}

static __always_inline void sendPart(struct ebpfMonChainEvent *ev)
{
#ifdef EBPFMON_OLD_KERNEL
    sendShare(ev, sizeof(*ev), BPF_RB_NO_WAKEUP, EBPFMON_SHARE_CHAINS);
#else
    commitEvent(ev);
#endif
}

static __always_inline long sendChainPart(__u32 i, struct sending *e)
{
    struct ebpfMonChainEvent *ev = beginPart(e);

    if (!ev)
        return 1;
    ev->chain.part = i;
    WALK(addRecord, EBPFMON_CLOSURE_MAX, e);
    ev = SENT_EVENT(e);
    ev->chain.last = e->next >= e->len;
    i = ev->chain.last;
    sendPart(ev);
    return i;
}

DEFINE_WALK_INLINE(sendChainPart, struct sending, sending)

/* Notes that the chain that completes this record is kept, too, because it belongs to the same trace. */
__attribute__((noinline)) int ebpfmon_mark_kept(__u32 async)
{
    __u32 slot = async - 1;
    struct ebpfMonCauseEvent *cause = bpf_map_lookup_elem(&causes, &slot);

    if (cause)
        cause->kept = 1;
    return 0;
}

/* Nonzero: the filter selects a record that a chain with this root can reach (level trace). */
static __always_inline int isTraced(__u32 slot)
{
    struct ebpfMonRecConf *rc = findConf(slot);

    return rc && !(rc->flags & EBPFMON_REC_UNTRACED);
}

/* Nonzero: the source chain was kept, or has not ended yet and will surely be kept. */
static __always_inline int isSourceKept(const struct caller *c, const struct ebpfMonSourceChain *by, __u64 now)
{
    int underWay = isUnderWay(by); /* asked first: it may end meanwhile, and is kept before it counts as ended */
    __u32 slot = 0;

    if (isKept(by))
        return 1;
    if (!underWay)
        return 0;
    if (c->conf->slowNs && now - by->begin >= c->conf->slowNs)
        return 1;
    return c->conf->level >= EBPFMON_TRACE && c->conf->sample <= 1 && findSlot(c->tgid, by->root, &slot) &&
           isTraced(slot);
}

/* Sends the event that tells the source chain of the next chain. Returns flags for that chain. A global function, as
 * ebpfmon_note_cause. */
__attribute__((noinline)) int ebpfmon_send_source(__u64 now)
{
    struct ebpfMonHandOverEvent *ev;
    struct thread *th, *source;
    struct caller c;
    __u32 tid;

    if (!findCaller(&c))
        return 0;
    th = bpf_map_lookup_elem(&threads, &c.tid);
    if (!th || (!th->from.source.begin && !th->from.cpLink))
        return 0;
    th->fromChains++;
    ev = reserveShare(c.conf->iocId, sizeof(*ev), EBPFMON_SHARE_CHAINS);
    if (!ev)
        return 0;
    fillHead(&ev->head, &c, EBPFMON_EV_HANDOVER_BEGIN, now); /* the event of the chain has the same time */
    ev->what = th->from;
    commitEvent(ev);
    if (!th->from.source.begin)
        return 0;
    tid = th->from.source.tid;
    source = bpf_map_lookup_elem(&threads, &tid);
    if (source)
        source->awaited = th->from.source.begin;
    return isUnderWay(&th->from.source) ? EBPFMON_CHAIN_EARLY : 0;
}

/* Sends the chain that th->kept describes. A global function, as ebpfmon_note_cause, because many programs call it. It
 * is longer than other functions: it fills one event, and all parts need the same lookups. */
__attribute__((noinline)) int ebpfmon_send_chain(void)
{
    BEGIN_WALK(sending, struct sending, e);
    const struct keptChain *k;
    struct ebpfMonRecState *st;
    struct ebpfMonRecConf *rc;
    struct ebpfMonChain *chain;
    struct thread *th;
    struct caller c;
    __u32 slot, n, outer = 0;

    if (!findCaller(&c) || !(th = bpf_map_lookup_elem(&threads, &c.tid)))
        return 0;
    k = &th->kept;
    slot = k->slot;
    rc = findConf(slot);
    st = findState(slot);
    if (!rc || !st || !e)
        return 0;
#ifdef EBPFMON_OLD_KERNEL
    chain = &e->event.chain;
#else
    e->th = th;
    chain = &th->chain;
#endif
    __builtin_memset(chain, 0, sizeof(*chain));
    fillHead(&chain->head, &c, EBPFMON_EV_CHAIN, k->now);
    chain->begin = k->begin;
    chain->wait = k->wait;
    chain->rootSlot = slot;
    chain->total = k->counted;
    chain->flags = k->flags | (st->noted ? EBPFMON_CHAIN_BUSY : 0) | (c.tid == c.tgid ? EBPFMON_CHAIN_MAIN : 0) |
                    (k->left.more ? EBPFMON_CHAIN_MORE : 0);
    chain->cpu = bpf_get_smp_processor_id();
    __builtin_memcpy(chain->async, k->left.async, sizeof(k->left.async));
    n = th->seen.heldCount; /* without this lock set, which the thread is about to release */
    if (n > 0 && n <= EBPFMON_NESTED && findSlot(c.tgid, getHeld(th, n - 1)->root, &outer))
        chain->outer = outer + 1;
    chain->syscall = EBPFMON_NO_SYSCALL;
    if (!n) { /* else these times are since the begin of the outer chain */
        chain->blocked = th->off.blocked;
        chain->cpuWait = th->off.cpuWait;
        chain->queueWait = th->off.queueWait;
        chain->longest = th->off.longest;
        chain->syscall = th->off.longestSyscall;
        chain->flags |= ebpfmon_send_source(k->now);
    }
    if (!(k->flags & EBPFMON_CHAIN_LATE))
        chain->handOvers = getHeld(th, n)->handOvers;
    if (chain->handOvers) {
        struct chainKey key = { k->begin, c.tid };

        bpf_map_update_elem(&kept, &key, &slot, BPF_ANY);
    }
    bpf_get_current_comm(chain->comm, sizeof(chain->comm));
    chain->causeBegin = k->causeBegin;
    chain->causeTid = k->causeTid;
#pragma unroll
    for (int i = 0; i < EBPFMON_ASYNC; i++)
        if (k->left.async[i])
            ebpfmon_mark_kept(k->left.async[i]);
    e->next = e->through = rc->zero;
    e->stamp = k->now;
    e->first = rc->first;
    e->len = rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX;
    e->time = c.conf->time;
    e->sevr = c.conf->sevr;
    e->stat = c.conf->stat;
    e->from = e->sevr < e->stat ? e->sevr : e->stat;
    WALK(sendChainPart, EBPFMON_CLOSURE_MAX / EBPFMON_CHUNK + 1, e);
    return 0;
}

#endif

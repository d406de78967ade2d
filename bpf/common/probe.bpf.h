/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * What every program begins with: does this thread belong to a watched IOC, what do we know about the thread, and the
 * head of an event.
 */
#ifndef EBPFMON_PROBE_BPF_H
#define EBPFMON_PROBE_BPF_H

#include "common/eventsSleep.bpf.h"
#include "common/maps.bpf.h"
#include "common/timing.bpf.h"
#include "common/wake.bpf.h"

/* The thread that hit a probe. */
struct caller {
    __u32 tgid, tid;
    struct ebpfMonTargetConf *conf; /* of the thread's IOC */
};

/* Finds the caller. 0: its process is not watched (any more). */
static __always_inline int findCaller(struct caller *c)
{
    __u64 id = bpf_get_current_pid_tgid();

    c->tgid = id >> 32;
    c->tid = (__u32)id;
    c->conf = bpf_map_lookup_elem(&targets, &c->tgid);
    return c->conf != 0;
}

static __always_inline void countHits(const struct caller *c, __u32 kind, __u64 add)
{
    __u32 at = c->conf->hits;
    struct ebpfMonHits *h = bpf_map_lookup_elem(&hits, &at);

    if (h && kind < EBPFMON_HIT_KINDS)
        ADD_ATOMICALLY(&h->n[kind], add); /* this CPU may run another program in between */
}

static __always_inline void addTime(__u64 ns)
{
    struct caller c;

    if (ns && findCaller(&c))
        countHits(&c, EBPFMON_HIT_NS, ns);
}

/* Adds the time that the program took. The program does nothing after that. */
static __always_inline void endTiming(const struct timing *t)
{
    addTime(takeTiming(t));
}

int ebpfmon_note_pause(__u64 now); /* cold.bpf.c */

/* Nonzero: the user part has taken this probe away. The kernel does that some 10 ms later, on a busy host seconds
 * later; if another probe was set there meanwhile, each trap would be seen twice. Without uprobe_multi a probe is gone
 * when the user part goes on, and has no cookie. */
static __always_inline int isTakenAway(void *ctx)
{
#ifdef EBPFMON_OLD_KERNEL
    return 0;
#else
    __u64 cookie = bpf_get_attach_cookie(ctx);

    return cookie && probeNumbers[cookie % EBPFMON_PROBES] != (__u32)(cookie >> 32);
#endif
}

/* The body of a program that measures its own time. "run" may use "now", the begin of the program. */
#define RUN_TIMED(run)                     \
    __u64 now = bpf_ktime_get_ns();        \
    struct timing timing;                  \
                                           \
    KEEP_THREAD_STACK(ctx);                \
    if (isTakenAway(ctx))                  \
        return 0;                          \
    ebpfmon_note_pause(now);               \
    beginTiming(&timing, now);             \
    run;                                   \
    endTiming(&timing);                    \
    return 0

/* The same for a program that runs seldom and takes long. Each run is timed: at ten runs a second, one in some would
 * tell nothing for seconds. */
#define RUN_ALWAYS_TIMED(run)                                                 \
    __u64 now = bpf_ktime_get_ns();                                           \
    struct timing timing = { .begin = now, .away = readAway() };              \
                                                                              \
    KEEP_THREAD_STACK(ctx);                                                   \
    if (isTakenAway(ctx))                                                     \
        return 0;                                                             \
    ebpfmon_note_pause(now);                                                  \
    run;                                                                      \
    addTime(takeRun(&timing));                                                \
    return 0

/* Finds the caller of a trap, and counts the trap. "kind": EBPFMON_HIT_ENTRY or EBPFMON_HIT_RETURN. */
static __always_inline int enterProbe(struct caller *c, __u32 kind)
{
    if (!findCaller(c))
        return 0;
    countHits(c, kind, 1);
    breakSilence(&ring, &silent);
    return 1;
}

static __always_inline void countLost(__u32 reason)
{
    __u64 *n = bpf_map_lookup_elem(&lost, &reason);

    if (n)
        ADD_ATOMICALLY(n, 1);
}

static __always_inline void fillHead(struct ebpfMonHead *head, const struct caller *c, __u32 kind, __u64 now)
{
    head->kind = kind;
    head->tgid = c->tgid;
    head->tid = c->tid;
    head->iocId = c->conf->iocId;
    head->ktime = now;
}

#define SHARE_SMALL (64 << 10) /* bytes that every IOC may always have: with less we do not ask how full the ring is */

/* Nonzero: this IOC has less in the ring than it may have. "times": EBPFMON_SHARE_TIMES, or EBPFMON_SHARE_CHAINS. */
static __always_inline int hasShare(const struct ebpfMonShare *share, __s64 times)
{
    __s64 used = (__s64)(share->sent - share->read); /* may be below 0: an event can be read before its size is added */

    return used < SHARE_SMALL ||
           used <= times * (__s64)(bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) -
                                   bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
}

/* Reserves room for an event in the ring. NULL: this IOC gets none, and a lost event is counted. "iocId" 0: the event
 * is of no watched IOC. "times" as in hasShare. */
static __always_inline void *reserveShare(__u32 iocId, __u64 size, __s64 times)
{
    struct ebpfMonShare *share = &shares[ebpfMonShareOf(iocId)];
    void *ev = !iocId || hasShare(share, times) ? bpf_ringbuf_reserve(&ring, size, 0) : 0;

    if (!ev)
        countLost(EBPFMON_LOST_RING);
    else if (iocId)
        ADD_ATOMICALLY(&share->sent, ebpfMonShareSize(size));
    return ev;
}

static __always_inline void *reserveEvent(__u32 iocId, __u64 size)
{
    return reserveShare(iocId, size, EBPFMON_SHARE_TIMES);
}

/* Commits an event that was written in the ring. */
static __always_inline void commitEvent(void *ev)
{
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
    wakeReader(&ring, &eventsSleep, NULL);
}

/* Copies an event, which begins with its head, into the ring. "wakeup": BPF_RB_NO_WAKEUP; or BPF_RB_FORCE_WAKEUP, if
 * the event cannot wait until a reader that is awake looks next. "times" as in hasShare. */
static __always_inline void sendShare(void *ev, __u64 size, __u64 wakeup, __s64 times)
{
    struct ebpfMonShare *share = &shares[ebpfMonShareOf(((const struct ebpfMonHead *)ev)->iocId)];

    if (!hasShare(share, times) || bpf_ringbuf_output(&ring, ev, size, wakeup)) {
        countLost(EBPFMON_LOST_RING);
        return;
    }
    ADD_ATOMICALLY(&share->sent, ebpfMonShareSize(size));
    wakeReader(&ring, &eventsSleep, NULL);
}

static __always_inline void sendEvent(void *ev, __u64 size, __u64 wakeup)
{
    sendShare(ev, size, wakeup, EBPFMON_SHARE_TIMES);
}

#define STRETCH_PUT_TRIES 8 /* one fails only if a later put was noted at this moment */

/* Notes a put of which stretchPuts tells. The latest counts: a thread that is preempted here must not write its own
 * time over that of a later put. */
static __always_inline void noteStretchPutAt(__u32 iocId, __u64 now)
{
    volatile __u64 *at = &stretchPuts[ebpfMonShareOf(iocId)];
    __u64 was = *at;

#ifdef EBPFMON_OLD_KERNEL /* without sweeps nobody reads it */
    if (was < now)
        *at = now;
#else
    for (int i = 0; i < STRETCH_PUT_TRIES && was < now; i++) {
        __u64 is = __sync_val_compare_and_swap(at, was, now);

        if (is == was)
            return;
        was = is;
    }
#endif
}

static __always_inline __u64 readPtr(__u64 at)
{
    __u64 p = 0;

    bpf_probe_read_user(&p, sizeof(p), (void *)at);
    return p;
}

/* Finds the slot of a record. 0: it is not watched. */
static __always_inline int findSlot(__u32 tgid, __u64 precord, __u32 *slot)
{
    struct ebpfMonRecKey key = { .tgid = tgid, .precord = precord };
    __u32 *s = bpf_map_lookup_elem(&recIndex, &key);

    if (!s)
        return 0;
    *slot = *s;
    return 1;
}

/* Makes the element of this thread in a map by thread id. NULL: the table is full, and a lost event is counted. */
static __always_inline void *addThread(void *map, __u32 tid)
{
    __u32 zero = 0;
    void *first = bpf_map_lookup_elem(&blank, &zero), *made;

    if (!first)
        return 0;
    bpf_map_update_elem(map, &tid, first, BPF_NOEXIST);
    made = bpf_map_lookup_elem(map, &tid);
    if (!made)
        countLost(EBPFMON_LOST_THREADS);
    return made;
}

/* Gets the element of this thread; the first call makes it. NULL: as addThread. */
static __always_inline struct thread *getThread(__u32 tid)
{
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);

    if (th)
        return th;
    th = addThread(&threads, tid);
    if (th)
        th->seen.tgid = bpf_get_current_pid_tgid() >> 32;
    return th;
}

/* The same for what is known of its groups. */
static __always_inline struct groupThread *getGroupThread(__u32 tid)
{
    struct groupThread *gt = bpf_map_lookup_elem(&groupThreads, &tid);

    return gt ? gt : addThread(&groupThreads, tid);
}

/* The lock set number n of a thread. The mask is for the verifier, which may have lost the bound of n; so the compiler
 * must not remove it. */
static __always_inline struct ebpfMonHeld *getHeld(struct thread *th, __u32 n)
{
    barrier_var(n);
    return &th->seen.held[n & (EBPFMON_NESTED - 1)];
}

/* The lock set that this thread took last. NULL: it holds none, or more than we keep. */
static __always_inline struct ebpfMonHeld *getLastHeld(struct thread *th)
{
    __u32 n = th->seen.heldCount;

    return n && n <= EBPFMON_NESTED ? getHeld(th, n - 1) : 0;
}

/* The CP link that made the only chain of this thread begin; 0: none did. From level chains on. */
static __always_inline __u64 getCpLink(const struct thread *th)
{
    return th->seen.heldCount == 1 ? th->from.cpLink : 0;
}

#endif

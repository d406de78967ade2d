/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Hand-overs: a chain puts something into a queue; another thread takes it out and goes on with it. */
#ifndef EBPFMON_HANDOVER_BPF_H
#define EBPFMON_HANDOVER_BPF_H

#include "common/probe.bpf.h"
#include "ebpfMonBase.h"

/* libCom/ring/epicsRingPointer.h: the members after the spin lock. Before 3.16, highWater is padding */
struct ringHead {
    __s32 nextPush, nextPop, size, highWater;
    __u64 buffer;
};

/* Nonzero: this chain was kept whole. */
static __always_inline int isKept(const struct ebpfMonSourceChain *chain)
{
    struct chainKey key = { chain->begin, chain->tid };

    return chain->begin && bpf_map_lookup_elem(&kept, &key);
}

/* Nonzero: the source chain has not ended yet. */
static __always_inline int isUnderWay(const struct ebpfMonSourceChain *by)
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

/* Tells the user part that a hand-over is done. Nobody waits for that if the source chain is over and was not kept. */
static __always_inline void sendHandOverEnd(const struct caller *c, const struct ebpfMonSourceChain *source,
                                            __u32 chains, __u32 isPartial)
{
    struct ebpfMonHandOverEvent *ev;

    if (!source->begin || (c->conf->level < EBPFMON_TRACE && !isUnderWay(source) && !isKept(source)))
        return;
    ev = reserveShare(c->conf->iocId, sizeof(*ev), EBPFMON_SHARE_CHAINS);
    if (!ev)
        return;
    fillHead(&ev->head, c, EBPFMON_EV_HANDOVER_END, bpf_ktime_get_ns());
    ev->what.source = *source;
    ev->chains = chains;
    ev->isPartial = isPartial;
    commitEvent(ev);
}

/* This thread is done with what it took out of its queue. */
static __always_inline void endHandOver(const struct caller *c, struct thread *th)
{
    sendHandOverEnd(c, &th->from.source, th->fromChains, th->fromUnsent);
    th->from.source.begin = th->from.cpLink = 0;
}

/* Nonzero: "since" was what the caller expected, and is 0 now. Before 5.12 there is no atomic operation for that. */
static __always_inline int clearSince(struct inQueue *in, __u64 expected)
{
#ifdef EBPFMON_OLD_KERNEL
    if (*(volatile __u64 *)&in->since != expected)
        return 0;
    *(volatile __u64 *)&in->since = 0;
    return 1;
#else
    return __sync_bool_compare_and_swap(&in->since, expected, 0);
#endif
}

/* Copies who put the item into the queue. */
static __always_inline void copySource(struct thread *th, const struct inQueue *in)
{
    th->from.source = in->what.source;
    th->from.delay = in->what.delay;
    th->from.cpLink = in->what.cpLink;
    if (in->what.cpLink)
        __builtin_memcpy(th->from.caLink, in->what.caLink, sizeof(th->from.caLink));
    th->fromChains = th->fromUnsent = 0;
}

/* This thread takes "item" out of its queue. Returns the ns that it was in the queue; th->from tells its source
 * chain. */
static __always_inline __u64 takeFromQueue(const struct caller *c, struct thread *th, __u64 item, __u32 queue,
                                           __u64 now)
{
    struct queueKey key = { item, c->tgid };
    struct inQueue *in = bpf_map_lookup_elem(&queued, &key);
    struct ebpfMonQueues *qs;
    __u64 since, wait;

    if (!in || queue >= EBPFMON_QUEUES)
        return 0;
    since = *(volatile __u64 *)&in->since;
    if (!since || in->delayed || since < c->conf->queuesSince)
        return 0;
    copySource(th, in);
    if (!clearSince(in, since)) /* it is put into the queue again at this moment, so what was copied may be of two
                                 * requests */
        th->from.source.begin = th->from.cpLink = 0;
    wait = now > since ? now - since : 0;
    qs = bpf_map_lookup_elem(&queues, &c->tgid);
    if (!qs)
        return wait;
    barrier_var(queue); /* for the verifier, as in getHeld */
    queue &= EBPFMON_QUEUES - 1;
    __sync_fetch_and_add(&qs->q[queue].count, 1);
    __sync_fetch_and_add(&qs->q[queue].sum, wait);
    ebpfMonRecentAdd(&qs->q[queue].wait, now, wait, item);
    return wait;
}

/* This thread has taken the callback out of its queue, at "now". */
static __always_inline void beginCallback(const struct caller *c, struct thread *th, __u64 callback, __u64 now)
{
    __u32 priority = th->callbackQueue - 1;

    if (!th->callbackQueue) { /* each ring has callbacks of one priority (callback.c, callbackRequest) */
        if (bpf_probe_read_user(&priority, sizeof(priority), (void *)(callback + EBPFMON_CALLBACK_PRIORITY)) ||
            priority >= EBPFMON_QUEUE_ONCE)
            return;
        th->callbackQueue = priority + 1;
    }
    th->seen.busySince = now;
    th->queueWait = takeFromQueue(c, th, callback, priority, now);
}

/* Reads the callback at this place of the ring. 0: it cannot be read. */
static __always_inline __u64 readCallback(const struct ringHead *head, __s32 at)
{
    return readPtr(head->buffer + 8 * (__u64)(__u32)at);
}

/* Finds a callback that came late: the ring was empty when this thread began to look into it. If the ring has another
 * head now, the thread found something, because no other thread takes anything out. */
static __always_inline void takeLate(const struct caller *c, struct thread *th)
{
    struct ringHead head = {};
    __u64 callback;

    if (th->popping != POPPING_EMPTY ||
        bpf_probe_read_user(&head, sizeof(head), (void *)(th->callbacks + c->conf->ringHead)) ||
        head.nextPop == th->emptyAt)
        return;
    th->popping = POPPING;
    callback = readCallback(&head, th->emptyAt);
    if (callback)
        beginCallback(c, th, callback, th->popAt);
}

#endif

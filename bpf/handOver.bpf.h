/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Hand-overs: what a chain put into a queue is taken out and done by another thread. */
#ifndef EBPFMON_HANDOVER_BPF_H
#define EBPFMON_HANDOVER_BPF_H

#include "probe.bpf.h"

/* Whether this chain was kept whole. */
static __always_inline int isKept(const struct ebpfMonSourceChain *chain)
{
    struct chainKey key = { chain->begin, chain->tid };

    return chain->begin && bpf_map_lookup_elem(&kept, &key);
}

/* What the source chain handed over is done. Nobody waits for it if that chain is over and was not kept. */
static __always_inline void sendHandOverEnd(const struct caller *c, const struct ebpfMonSourceChain *source)
{
    struct ebpfMonHandOverEvent *ev;

    if (!source->begin || (c->conf->level < EBPFMON_TRACE && !isKept(source)))
        return;
    ev = reserveEvent(sizeof(*ev));
    if (!ev)
        return;
    fillHead(&ev->head, c, EBPFMON_EV_HANDOVER_END, bpf_ktime_get_ns());
    ev->what.source = *source;
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
}

/* This thread takes "item" out of its queue. Returns how long it was there (ns), and in *what who put it there. */
static __always_inline __u64 takeFromQueue(const struct caller *c, __u64 item, __u32 queue, __u64 now,
                                           struct ebpfMonHandOver *what)
{
    struct queueKey key = { item, c->tgid };
    struct inQueue *in = bpf_map_lookup_elem(&queued, &key);
    struct ebpfMonQueues *qs;
    __u64 wait;

    if (!in || in->delayed || in->since < c->conf->queuesSince || queue >= EBPFMON_QUEUES)
        return 0;
    wait = now > in->since ? now - in->since : 0;
    *what = in->what;
    bpf_map_delete_elem(&queued, &key);
    qs = bpf_map_lookup_elem(&queues, &c->tgid);
    if (!qs)
        return wait;
    barrier_var(queue); /* as in heldAt */
    queue &= EBPFMON_QUEUES - 1;
    __sync_fetch_and_add(&qs->q[queue].count, 1);
    __sync_fetch_and_add(&qs->q[queue].sum, wait);
    ebpfMonRecentAdd(&qs->q[queue].wait, now, wait, item);
    return wait;
}

#endif

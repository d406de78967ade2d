// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * How long callbacks and records for scanOnce wait in their queues, and which chain put them there.
 *
 * callbackRequest puts a callback into a ring, and a callback thread takes it out by epicsRingPointerPop (callback.c,
 * callbackTask). At the entry of that function the callback is still at the ring's head: no return probe is needed,
 * unless several threads share a ring (callbackParallelThreads). There two threads can look at the same callback, and
 * which of them gets it is known at the return alone. If the ring was empty at the entry, a callback may come before the
 * function looks: that is found when the thread locks a record, or looks for the next callback (takeLate). scanOnce is
 * the same with a ring of its own, and its thread locks the record next (ebpfmon_lock).
 */
#include "handOver.bpf.h"
#include "passRoot.bpf.h"

/* The chain that this thread is in hands something over: it is the source. */
static __always_inline void fillSource(const struct caller *c, struct ebpfMonSourceChain *source)
{
    struct thread *th = bpf_map_lookup_elem(&threads, &c->tid);
    struct ebpfMonHeld *h = th ? heldLast(th) : 0;

    if (!h)
        return;
    h->handOvers++;
    source->begin = h->begin;
    source->root = rootOf(c, th, h);
    source->tid = c->tid;
    source->isMain = c->tid == c->tgid;
    bpf_get_current_comm(source->comm, sizeof(source->comm));
}

/* callbackRequestDelayed has a timer call callbackRequest (callback.c, notify): then the source is who asked for the
 * delay. A timer may have been cancelled, and the same callback be requested by another thread. */
static __always_inline int isTimer(void)
{
    char comm[EBPFMON_COMM_MAX] = {};

    bpf_get_current_comm(comm, sizeof(comm)); /* timerQueueActive.cpp: "timerQueue" */
    return comm[0] == 't' && comm[1] == 'i' && comm[2] == 'm' && comm[3] == 'e' && comm[4] == 'r' && comm[5] == 'Q';
}

static __always_inline void noteQueued(__u64 item, __u64 caLink, int delayed)
{
    __u64 now = bpf_ktime_get_ns();
    struct inQueue in = {}, *before;
    struct queueKey key = { item, 0 };
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return;
    key.tgid = c.tgid;
    in.since = now;
    in.delayed = delayed;
    fillSource(&c, &in.what.source);
    if (caLink && !bpf_probe_read_user(in.what.link, sizeof(in.what.link), (void *)caLink))
        in.what.isLink = 1;
    before = bpf_map_lookup_elem(&queued, &key);
    if (before && before->since >= c.conf->queuesSince && before->what.source.begin) {
        if (before->delayed && !delayed && !in.what.source.begin && isTimer()) {
            in.what = before->what;
            in.what.delay = now - before->since;
        } else {
            /* If a callback is requested twice, it runs for the last request. A delay that starts again ends once. */
            sendHandOverEnd(&c, &before->what.source, 0, !(before->delayed && delayed));
        }
    }
    bpf_map_update_elem(&queued, &key, &in, BPF_ANY);
}

/* callbackRequest(epicsCallback *) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_callback, __u64 callback)
{
    noteQueued(callback, 0, 0);
    return 0;
}

/* callbackRequestDelayed(epicsCallback *, double) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_delayed, __u64 callback)
{
    noteQueued(callback, 0, 1);
    return 0;
}

/* scanOnceCallback(dbCommon *, once_complete cb, void *usr). Base gives a third argument in dbCa.c (scanLinkOnce) alone:
 * struct caLink *. Before 3.16 it is scanOnce(dbCommon *). */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_once, __u64 precord, __u64 complete, __u64 caLink)
{
    struct caller c;

    noteQueued(precord, findCaller(&c) && c.conf->onceHasLink ? caLink : 0, 0);
    return 0;
}

/* Drivers may have such rings as well. A callback thread has a name (callback.c, callbackInit: "cbLow"), and looks into
 * the callbacks' ring first. */
static __always_inline int isCallbackRing(struct thread *th, __u64 ring)
{
    char comm[EBPFMON_COMM_MAX] = {};

    if (!th->callbacks) {
        bpf_get_current_comm(comm, sizeof(comm));
        th->callbacks = comm[0] == 'c' && comm[1] == 'b' ? ring : NO_CALLBACKS;
    }
    return th->callbacks == ring;
}

/* epicsRingPointerPop(epicsRingPointerId) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_pop, __u64 ring)
{
    struct ringHead head = {};
    __u64 callback = 0;
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = threadOf(c.tid)))
        return 0;
    takeLate(&c, th);
    th->popping = isCallbackRing(th, ring) ? POPPING : POPPING_NOT;
    if (!th->popping)
        return 0;
    endHandOver(&c, th); /* the thread looks for the next one: the last is done */
    th->seen.busySince = 0;
    if (c.conf->parallel || bpf_probe_read_user(&head, sizeof(head), (void *)(ring + c.conf->ringHead)))
        return 0;
    if (head.nextPush == head.nextPop) {
        th->emptyAt = head.nextPop;
        th->popping = POPPING_EMPTY;
    } else if ((callback = callbackAt(&head, head.nextPop))) {
        beginCallback(&c, th, callback);
    }
    return 0;
}

SEC("uprobe")
int BPF_URETPROBE(ebpfmon_popped, __u64 callback)
{
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_RETURN))
        return 0;
    th = bpf_map_lookup_elem(&threads, &c.tid);
    if (th && th->popping == POPPING && callback)
        beginCallback(&c, th, callback);
    return 0;
}

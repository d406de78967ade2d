// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * How long callbacks wait for a thread of their priority. callbackRequest puts a callback into a ring, a callback thread
 * takes it out by epicsRingPointerPop (callback.c, callbackTask). At the entry of that the callback is still at the ring's
 * head: no return probe is needed, unless several threads share a ring (callbackParallelThreads): there two can look at
 * the same one, and which of them gets it is known at the return alone.
 * scanOnce is the same with a ring of its own, and its thread locks the record next (ebpfmon_lock).
 * What is asked for in the course of a chain belongs to it: that chain goes along, until the callback is done.
 */
#include "maps.bpf.h"

/* libCom/ring/epicsRingPointer.h, behind the spin lock */
struct ringHead {
    __s32 nextPush, nextPop, size, highWater;
    __u64 buffer;
};
#define RING_HEAD 8
#define CALLBACK_PRIORITY 8 /* callback.h */

/* The chain that this thread is in hands something over. */
static __always_inline void giveIn(struct ebpfMonSourceChain *by)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = (__u32)id, n;
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);
    struct ebpfMonHeld *h;

    n = th ? th->seen.heldCount : 0;
    if (n == 0 || n > EBPFMON_NESTED)
        return;
    h = heldAt(th, n - 1);
    h->handOvers++;
    by->begin = h->begin;
    by->root = h->root;
    by->tid = tid;
    by->isMain = tid == id >> 32;
    bpf_get_current_comm(by->comm, sizeof(by->comm));
}

/* callbackRequestDelayed has a timer call callbackRequest (callback.c, notify): then the one who asked is who asked for
 * the delay. A timer may have been cancelled, and the same callback be requested by another thread. */
static __always_inline int isTimer(void)
{
    char comm[EBPFMON_COMM_MAX] = {};

    bpf_get_current_comm(comm, sizeof(comm)); /* timerQueueActive.cpp: "timerQueue" */
    return comm[0] == 't' && comm[1] == 'i' && comm[2] == 'm' && comm[3] == 'e' && comm[4] == 'r' && comm[5] == 'Q';
}

static __always_inline void note(__u64 item, __u64 caLink, int delayed)
{
    __u64 now = bpf_ktime_get_ns();
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct queueKey key = { item, tgid };
    struct inQueue in = {}, *before;

    if (!conf)
        return;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    in.since = now;
    in.delayed = delayed;
    giveIn(&in.what.by);
    if (caLink && !bpf_probe_read_user(in.what.link, sizeof(in.what.link), (void *)caLink))
        in.what.isLink = 1;
    before = bpf_map_lookup_elem(&queued, &key);
    if (before && before->since >= conf->queuesSince && before->what.by.begin) {
        if (before->delayed && !delayed && !in.what.by.begin && isTimer()) {
            in.what = before->what;
            in.what.delay = now - before->since;
        } else {
            tellDone(conf, &before->what.by); /* asked for twice: it is taken out for the one who asked last */
        }
    }
    bpf_map_update_elem(&queued, &key, &in, BPF_ANY);
}

SEC("uprobe")
int ebpfmon_callback(struct pt_regs *ctx)
{
    note(PT_REGS_PARM1(ctx), 0, 0);
    return 0;
}

SEC("uprobe")
int ebpfmon_delayed(struct pt_regs *ctx)
{
    note(PT_REGS_PARM1(ctx), 0, 1);
    return 0;
}

/* Base calls it with a third argument in dbCa.c (scanLinkOnce) alone: struct caLink *. */
SEC("uprobe")
int ebpfmon_once(struct pt_regs *ctx)
{
    note(PT_REGS_PARM1(ctx), PT_REGS_PARM3(ctx), 0);
    return 0;
}

/* Drivers may have such rings as well. A callbacks' thread has a name (callback.c, callbackInit: "cbLow"), and looks into
 * the callbacks' ring first. */
static __always_inline int isCallbacksRing(struct thread *th, __u64 ring)
{
    char comm[EBPFMON_COMM_MAX] = {};

    if (!th->callbacks) {
        bpf_get_current_comm(comm, sizeof(comm));
        th->callbacks = comm[0] == 'c' && comm[1] == 'b' ? ring : NO_CALLBACKS;
    }
    return th->callbacks == ring;
}

static __always_inline void takes(const struct ebpfMonTargetConf *conf, struct thread *th, __u32 tgid, __u64 item)
{
    __u32 priority;

    if (bpf_probe_read_user(&priority, sizeof(priority), (void *)(item + CALLBACK_PRIORITY)) ||
        priority >= EBPFMON_QUEUE_ONCE)
        return;
    th->seen.busySince = bpf_ktime_get_ns();
    th->handed = takenOut(conf, tgid, item, priority, th->seen.busySince, &th->from);
}

SEC("uprobe")
int ebpfmon_pop(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), item = 0;
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ringHead ring = {};
    struct thread *th;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    th = threadOf(tid);
    if (!th)
        return 0;
    th->popping = isCallbacksRing(th, PT_REGS_PARM1(ctx));
    if (!th->popping)
        return 0;
    tellDone(conf, &th->from.by); /* it looks for the next one: the last is done */
    th->from.by.begin = 0;
    th->seen.busySince = 0;
    if (conf->parallel ||
        bpf_probe_read_user(&ring, sizeof(ring), (void *)(PT_REGS_PARM1(ctx) + RING_HEAD)) ||
        ring.nextPush == ring.nextPop ||
        bpf_probe_read_user(&item, sizeof(item), (void *)(ring.buffer + 8 * (__u64)(__u32)ring.nextPop)))
        return 0;
    takes(conf, th, tgid, item);
    return 0;
}

SEC("uprobe")
int ebpfmon_popped(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_RETURN, 1);
    if (th && th->popping && PT_REGS_RC(ctx))
        takes(conf, th, tgid, PT_REGS_RC(ctx));
    return 0;
}

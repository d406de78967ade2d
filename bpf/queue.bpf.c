// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * How long callbacks wait for a thread of their priority. callbackRequest puts a callback into a ring, a callback thread
 * takes it out by epicsRingPointerPop (callback.c, callbackTask). At the entry of that the callback is still at the ring's
 * head: no return probe is needed. Should two threads of one priority look at the same one, the first has it.
 * scanOnce is the same with a ring of its own, and its thread locks the record next (ebpfmon_lock).
 */
#include "maps.bpf.h"

/* libCom/ring/epicsRingPointer.h, behind the spin lock */
struct ringHead {
    __s32 nextPush, nextPop, size, highWater;
    __u64 buffer;
};
#define RING_HEAD 8
#define CALLBACK_PRIORITY 8 /* callback.h */

static __always_inline void note(__u32 tgid, __u64 item)
{
    struct queueKey key = { item, tgid };
    __u64 now = bpf_ktime_get_ns();

    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    bpf_map_update_elem(&queued, &key, &now, BPF_ANY);
}

SEC("uprobe")
int ebpfmon_callback(struct pt_regs *ctx)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;

    if (bpf_map_lookup_elem(&targets, &tgid))
        note(tgid, PT_REGS_PARM1(ctx));
    return 0;
}

SEC("uprobe")
int ebpfmon_once(struct pt_regs *ctx)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;

    if (bpf_map_lookup_elem(&targets, &tgid))
        note(tgid, PT_REGS_PARM1(ctx));
    return 0;
}

SEC("uprobe")
int ebpfmon_pop(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), item = 0, wait;
    __u32 tgid = id >> 32, tid = (__u32)id, priority = 0;
    struct ringHead ring = {};
    struct thread *th;

    if (!bpf_map_lookup_elem(&targets, &tgid))
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    if (bpf_probe_read_user(&ring, sizeof(ring), (void *)(PT_REGS_PARM1(ctx) + RING_HEAD)) ||
        ring.nextPush == ring.nextPop ||
        bpf_probe_read_user(&item, sizeof(item), (void *)(ring.buffer + 8 * (__u64)(__u32)ring.nextPop)) ||
        bpf_probe_read_user(&priority, sizeof(priority), (void *)(item + CALLBACK_PRIORITY)))
        return 0;
    if (priority >= EBPFMON_QUEUE_ONCE)
        return 0;
    wait = takenOut(tgid, item, priority, bpf_ktime_get_ns());
    th = bpf_map_lookup_elem(&threads, &tid);
    if (th)
        th->handed = wait;
    return 0;
}

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The calls that are being measured, and the threads that wait for a CPU.
 *
 * Each thread has places of its own for its nested calls, and only that thread writes them. So at the begin and at the
 * end of a call we look up the thread, and neither add nor delete an element: that would cost as much as everything
 * else.
 */
#ifndef EBPFMON_QUERYCALLS_BPF_H
#define EBPFMON_QUERYCALLS_BPF_H

#include "query/queryLook.bpf.h"

#define UNREADABLE (1u << 31) /* a bit of struct ebpfMonQueryCall.met: a part of the key, or the value, could not be
                               * read */

#define DROP_MAX 4 /* calls that can end at a time. More than one ends only if we missed returns: longjmp() */

/* By thread id. The user part sets the size of values: the head, and plan.depth places of plan.stride bytes. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ebpfMonQueryInCalls) + sizeof(struct ebpfMonQueryCall));
} inCalls SEC(".maps");

/* The first state of a thread, which is too large for the stack. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ebpfMonQueryInCalls) + sizeof(struct ebpfMonQueryCall));
} inNoCall SEC(".maps");

/* Threads that wait for a CPU, or have waited, by thread id. An element stays until its thread ends, because to add and
 * to delete one each time would cost as much as everything else. */
TABLE(waits, HASH, EBPFMON_QUERY_WAITS, __u32, struct ebpfMonQueryWait);

static __always_inline struct ebpfMonQueryInCalls *getCalls(const struct queryEvent *e)
{
    struct ebpfMonQueryInCalls *in = bpf_map_lookup_elem(&inCalls, &e->tid);
    __u32 zero = 0;
    void *none;

    if (!in) {
        none = bpf_map_lookup_elem(&inNoCall, &zero);
        if (!none)
            return 0;
        bpf_map_update_elem(&inCalls, &e->tid, none, BPF_NOEXIST);
        in = bpf_map_lookup_elem(&inCalls, &e->tid);
    }
    if (in && in->tgid != e->tgid) {
        in->tgid = e->tgid;
        in->depth = 0;
    }
    return in;
}

/* The place number n. The mask is for the verifier. */
static __always_inline struct ebpfMonQueryCall *getCallPlace(struct ebpfMonQueryInCalls *in, __u32 n)
{
    barrier_var(n);
    n &= plan.depth - 1;
    return (void *)(in + 1) + (__u64)n * plan.stride;
}

/* Nonzero: the kernel will not show the end of the call that begins now. It keeps a limited number of calls of each
 * thread that have a return probe, ours or others, and have not returned (prepare_uretprobe in
 * kernel/events/uprobes.c). */
static __always_inline int isEndUnseen(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();

    return BPF_CORE_READ(task, utask, depth) >= EBPFMON_QUERY_DEPTH;
}

/* Forgets calls that returned unseen: their frame is below "sp". Returns the number of calls that are left. */
static __always_inline __u32 dropEnded(struct ebpfMonQueryInCalls *in, __u64 sp)
{
    __u32 depth = in->depth;

    for (int i = 0; i < DROP_MAX; i++) {
        if (!depth || depth > plan.depth || getCallPlace(in, depth - 1)->sp >= sp)
            break;
        depth--;
    }
    return depth;
}

/* Takes the next place of this thread. NULL: there is none, or the call would keep it for ever. sp 0: a system call. */
static __always_inline struct ebpfMonQueryCall *enterCall(const struct queryEvent *e, __u64 sp)
{
    struct ebpfMonQueryInCalls *in = getCalls(e);
    __u32 depth = in ? dropEnded(in, sp + 1) : plan.depth;
    struct ebpfMonQueryCall *call;

    if (depth >= plan.depth || (sp && isEndUnseen())) {
        __sync_fetch_and_add(&e->counts->lost, 1);
        return 0;
    }
    call = getCallPlace(in, depth);
    call->sp = sp;
    in->depth = depth + 1;
    return call;
}

/* Forgets the last system call, because another one begins that the query does not want. If we missed the end of the
 * last one, it must not end with this one: system calls have no stack pointer that tells them apart. */
static __always_inline void forgetSyscall(const struct queryEvent *e)
{
    struct ebpfMonQueryInCalls *in = plan.depth == 1 ? bpf_map_lookup_elem(&inCalls, &e->tid) : 0;

    if (in)
        in->depth = 0;
}

/* A call begins. Some conditions may be known only at its end. So if its key cannot be read, that is only noted
 * (UNREADABLE), because the query may not want this call. */
static __always_inline void noteCall(const struct queryEvent *e, __u64 sp)
{
    enum verdict verdict = IS_NOT_MEANT;
    struct ebpfMonQueryCall *call;
    __u32 met = 0;

    if (isSampled())
        verdict = testConditions(e, BEGIN, &met);
    if (verdict == IS_UNREADABLE)
        __sync_fetch_and_add(&e->counts->faults, 1);
    if (verdict != GOES_ON) {
        forgetSyscall(e);
        return;
    }
    call = enterCall(e, sp);
    if (!call)
        return;
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_QUERY_KEY_SIZE / 8; i++)
        if (8 * i < plan.keySize)
            call->key[i] = 0;
    call->value = 0;
    if (takeKey(e, BEGIN, call->key) != GOES_ON || takeValue(e, BEGIN, &call->value) != GOES_ON)
        met |= UNREADABLE;
    call->met = met;
    call->begin = bpf_ktime_get_ns();
}

/* Finds the place of the call that ends. NULL: its begin was not noted, because the query did not want it or it began
 * before the probes. A return probe that is a perf event may come twice for one return (put.bpf.c); the second time
 * there is no call. */
static __always_inline struct ebpfMonQueryCall *leaveCall(const struct queryEvent *e, __u64 sp)
{
    struct ebpfMonQueryInCalls *in = bpf_map_lookup_elem(&inCalls, &e->tid);
    struct ebpfMonQueryCall *call;
    __u32 depth;

    if (!in || in->tgid != e->tgid)
        return 0;
    in->depth = dropEnded(in, sp);
    depth = in->depth - 1;
    if (depth >= plan.depth)
        return 0;
    call = getCallPlace(in, depth);
    if (call->sp != sp)
        return 0;
    in->depth = depth;
    return call;
}

static __always_inline void endCall(struct queryEvent *e, __u64 sp)
{
    struct ebpfMonQueryCall *call = leaveCall(e, sp);
    enum verdict verdict;
    __u32 met;

    if (!call)
        return;
    e->now = bpf_ktime_get_ns();
    e->duration = e->now - call->begin;
    met = call->met;
    verdict = testConditions(e, END, &met);
    if (verdict == GOES_ON && (met & UNREADABLE))
        verdict = IS_UNREADABLE;
    if (verdict == GOES_ON)
        verdict = takeKey(e, END, call->key);
    if (verdict == GOES_ON)
        verdict = takeValue(e, END, &call->value);
    if (verdict == GOES_ON)
        countEvent(e, call->key, call->value);
    else if (verdict == IS_UNREADABLE)
        __sync_fetch_and_add(&e->counts->faults, 1);
}

#endif

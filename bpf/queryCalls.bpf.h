/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Calls under way, and threads that wait for a CPU.
 *
 * Each thread has places of its own for the calls that it is in, one for each level of nesting, and only it writes them. So
 * the begin and the end of a call look up the thread, and neither makes nor deletes anything: that would cost as much as all
 * the rest.
 */
#ifndef EBPFMON_QUERYCALLS_BPF_H
#define EBPFMON_QUERYCALLS_BPF_H

#include "queryLook.bpf.h"

#define UNREADABLE (1u << 31) /* in struct ebpfMonQueryCall.met: a part of its key, or its value */

#define DROP_MAX 4 /* calls that end at once. More than one has ended only if returns were not seen: longjmp */

/* By thread id. The user part says how large values are: the head, and plan.depth places of plan.stride bytes. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ebpfMonQueryInCalls) + sizeof(struct ebpfMonQueryCall));
} inCalls SEC(".maps");

/* A thread's first state: too large for the stack. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ebpfMonQueryInCalls) + sizeof(struct ebpfMonQueryCall));
} inNoCall SEC(".maps");

/* Threads that wait, by thread id. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_QUERY_WAITS);
    __type(key, __u32);
    __type(value, struct ebpfMonQueryWait);
} waits SEC(".maps");

static __always_inline struct ebpfMonQueryInCalls *callsOf(const struct event *e)
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

/* Place number n. The mask is for the verifier. */
static __always_inline struct ebpfMonQueryCall *placeOf(struct ebpfMonQueryInCalls *in, __u32 n)
{
    barrier_var(n);
    n &= plan.depth - 1;
    return (void *)(in + 1) + (__u64)n * plan.stride;
}

/* Forgets calls that ended unseen: those whose frame is below "sp". Returns how many are left. */
static __always_inline __u32 dropEnded(struct ebpfMonQueryInCalls *in, __u64 sp)
{
    __u32 depth = in->depth;

    for (int i = 0; i < DROP_MAX; i++) {
        if (!depth || depth > plan.depth || placeOf(in, depth - 1)->sp >= sp)
            break;
        depth--;
    }
    return depth;
}

/* The next place of this thread; NULL: there is none. */
static __always_inline struct ebpfMonQueryCall *enterCall(const struct event *e, __u64 sp)
{
    struct ebpfMonQueryInCalls *in = callsOf(e);
    __u32 depth = in ? dropEnded(in, sp + 1) : plan.depth;
    struct ebpfMonQueryCall *call;

    if (depth >= plan.depth) {
        __sync_fetch_and_add(&e->counts->lost, 1);
        return 0;
    }
    call = placeOf(in, depth);
    call->sp = sp;
    in->depth = depth + 1;
    return call;
}

/* A system call that is not meant begins. One that was noted before it, and whose end was not seen, is not to end with it: it
 * has no stack pointer to tell them apart. */
static __always_inline void forgetSyscall(const struct event *e)
{
    struct ebpfMonQueryInCalls *in = plan.depth == 1 ? bpf_map_lookup_elem(&inCalls, &e->tid) : 0;

    if (in)
        in->depth = 0;
}

/* A call begins. Its conditions may need what is known at its end only: then it is only noted that its key is
 * UNREADABLE, since it may not be meant. */
static __always_inline void noteCall(const struct event *e, __u64 sp)
{
    enum verdict verdict = IS_NOT_MEANT;
    struct ebpfMonQueryCall *call;
    __u32 met = 0;

    if (isSampled())
        verdict = test(e, BEGIN, &met);
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

/* The place of the call that ends; NULL: its begin was not noted, so it was not asked for, or began before the probes. A return
 * probe that is a perf event may come twice for one return (put.bpf.c): the second one finds no call. */
static __always_inline struct ebpfMonQueryCall *leaveCall(const struct event *e, __u64 sp)
{
    struct ebpfMonQueryInCalls *in = bpf_map_lookup_elem(&inCalls, &e->tid);
    struct ebpfMonQueryCall *call;
    __u32 depth;

    if (!in || in->tgid != e->tgid)
        return 0;
    depth = dropEnded(in, sp) - 1;
    if (depth >= plan.depth)
        return 0;
    call = placeOf(in, depth);
    if (call->sp != sp)
        return 0;
    in->depth = depth;
    return call;
}

static __always_inline void endCall(struct event *e, __u64 sp)
{
    struct ebpfMonQueryCall *call = leaveCall(e, sp);
    enum verdict verdict;
    __u32 met;

    if (!call)
        return;
    e->now = bpf_ktime_get_ns();
    e->duration = e->now - call->begin;
    met = call->met;
    verdict = test(e, END, &met);
    if (verdict == GOES_ON && (met & UNREADABLE))
        verdict = IS_UNREADABLE;
    if (verdict == GOES_ON)
        verdict = takeKey(e, END, call->key);
    if (verdict == GOES_ON)
        verdict = takeValue(e, END, &call->value);
    if (verdict == GOES_ON)
        count(e, call->key, call->value);
    else if (verdict == IS_UNREADABLE)
        __sync_fetch_and_add(&e->counts->faults, 1);
}

#endif

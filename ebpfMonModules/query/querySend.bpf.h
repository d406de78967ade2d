/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Sends single events, with the stack of the thread if the query wants it. The user part finds the functions of the
 * stack (code/stack.c), because libraries are built without frame pointers and the kernel could not find them. */
#ifndef EBPFMON_QUERYSEND_BPF_H
#define EBPFMON_QUERYSEND_BPF_H

#include "query/queryWho.bpf.h"

const volatile struct ebpfMonQueryPlan plan;

/* The user part sets its size. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} sent SEC(".maps");

static __always_inline void readThreadName(struct task_struct *task, __u64 *to)
{
    if (task)
        bpf_probe_read_kernel(to, EBPFMON_COMM_MAX, &task->comm);
    else
        bpf_get_current_comm(to, EBPFMON_COMM_MAX);
}

/* The registers with which the current thread entered the kernel. */
static __always_inline __u64 findRegs(void)
{
    return plan.sends == EBPFMON_QUERY_SENDS_STACKS ? (__u64)bpf_task_pt_regs(bpf_get_current_task_btf()) : 0;
}

/* Copies the stack up to the first part that cannot be read: there it ends. */
static __always_inline void readUserStack(struct ebpfMonQueryEvent *ev)
{
    __u64 sp = ev->regs[19]; /* struct pt_regs */

    ev->stackBytes = 0;
#pragma unroll
    for (__u32 at = 0; at < EBPFMON_QUERY_STACK; at += EBPFMON_QUERY_CHUNK) {
        if (bpf_probe_read_user(&ev->stack[at], EBPFMON_QUERY_CHUNK, (void *)(sp + at)))
            return;
        ev->stackBytes = at + EBPFMON_QUERY_CHUNK;
    }
}

/* Copies the return addresses that return probes have replaced. Otherwise the stack would not show these callers. */
static __always_inline void readReturns(struct ebpfMonQueryEvent *ev)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct return_instance *ri = BPF_CORE_READ(task, utask, return_instances);
    __u32 n;

    for (n = 0; n < EBPFMON_QUERY_RETURNS && ri; n++) {
        ev->ret[n].slot = BPF_CORE_READ(ri, stack);
        ev->ret[n].to = BPF_CORE_READ(ri, orig_ret_vaddr);
        ri = BPF_CORE_READ(ri, next);
    }
    ev->returns = n;
}

static __always_inline void sendEvent(const struct queryEvent *e, const __u64 *key, __s64 value)
{
    int hasStack = plan.sends == EBPFMON_QUERY_SENDS_STACKS;
    struct ebpfMonQueryEvent *ev;
    long n;

    if (hasStack)
        ev = bpf_ringbuf_reserve(&sent, sizeof(*ev), 0);
    else
        ev = bpf_ringbuf_reserve(&sent, __builtin_offsetof(struct ebpfMonQueryEvent, regs), 0);
    if (!ev) {
        __sync_fetch_and_add(&e->counts->unsent, 1);
        return;
    }
    ev->at = e->now ? e->now : bpf_ktime_get_ns();
    ev->value = value;
    ev->tgid = e->tgid;
    ev->tid = e->tid;
    ev->cpu = bpf_get_smp_processor_id();
    ev->iocId = e->iocId;
    readThreadName(e->task, (__u64 *)ev->comm);
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_QUERY_KEY_SIZE / 8; i++)
        ev->key[i] = 8 * i < plan.keySize ? key[i] : 0;
    if (hasStack) {
        bpf_probe_read_kernel(ev->regs, sizeof(ev->regs), (void *)e->regs);
        n = plan.kernelStacks ? bpf_get_stack(e->ctx, ev->kernel, sizeof(ev->kernel), 0) : 0;
        ev->kernelCount = n > 0 ? (__u32)n / 8 : 0;
        readReturns(ev);
        readUserStack(ev);
    }
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
}

#endif

// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Reads the user registers of one thread, as the kernel saved them when the thread last entered the kernel. If the
 * thread waits, it goes on with these registers; if it runs, they are those of its last interrupt. The thread is not
 * stopped, as ptrace would do. The program runs only when the user part reads the iterator. Then come the return
 * addresses that return probes have replaced, ours and those of others. Without them no caller of such a function would
 * be found.
 */
#include "common/maps.bpf.h"

struct seq_file;

struct bpf_iter_meta { struct seq_file *seq; } CORE;

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
} CORE;

TABLE(regsOf, ARRAY, 1, __u32, __u32);

/* The registers that are needed to find callers, on x86-64. */
struct pt_regs___x86 { unsigned long r15, r14, r13, r12, bp, bx, ip, sp; } CORE;

static __always_inline void writeReturns(struct seq_file *seq, struct task_struct *task)
{
    struct return_instance *ri = BPF_CORE_READ(task, utask, return_instances);
    struct ebpfMonTaskReturn r;

    for (int i = 0; i < EBPFMON_TASK_RETURNS && ri; i++) {
        r.slot = BPF_CORE_READ(ri, stack);
        r.to = BPF_CORE_READ(ri, orig_ret_vaddr);
        bpf_seq_write(seq, &r, sizeof(r));
        ri = BPF_CORE_READ(ri, next);
    }
}

SEC("iter/task")
int ebpfmon_regs(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct pt_regs___x86 *regs = 0;
    struct ebpfMonTaskRegs r;
    __u32 zero = 0, *wanted = bpf_map_lookup_elem(&regsOf, &zero);

    if (!task || !wanted || task->pid != (int)*wanted || !bpf_core_field_exists(regs->ip))
        return 0;
    regs = (void *)findTaskRegs(task);
    if (!regs)
        return 0;
    r.ip = BPF_CORE_READ(regs, ip);
    r.sp = BPF_CORE_READ(regs, sp);
    r.bp = BPF_CORE_READ(regs, bp);
    r.bx = BPF_CORE_READ(regs, bx);
    r.r12 = BPF_CORE_READ(regs, r12);
    r.r13 = BPF_CORE_READ(regs, r13);
    r.r14 = BPF_CORE_READ(regs, r14);
    r.r15 = BPF_CORE_READ(regs, r15);
    bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
    writeReturns(ctx->meta->seq, task);
    return 0;
}

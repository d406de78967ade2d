// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * How a thread spent its time while it held a lock set or waited for one: it slept, in which system call, or it was
 * ready to run and had no CPU. Attached only while an IOC is at level trace, because these programs run at each switch
 * of every CPU.
 */
#include "common/probe.bpf.h"

static __always_inline __s32 readSyscallNumber(void)
{
#ifdef EBPFMON_OLD_KERNEL
    struct task_struct *task = (void *)bpf_get_current_task();
#else
    struct task_struct *task = bpf_get_current_task_btf();
#endif
    struct pt_regs___kernel *regs = findTaskRegs(task);

    return SYSCALL_NUMBER(regs);
}

static __always_inline struct thread *findHolder(struct task_struct *task)
{
    __u32 tid = (__u32)BPF_CORE_READ(task, pid);
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);

    return th && th->seen.heldCount ? th : 0;
}

/* sched_switch(preempt, prev, next): "prev" is still the current thread. */
SEC("raw_tp/sched_switch")
int ebpfmon_switch(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *prev = (void *)ctx->args[1], *next = (void *)ctx->args[2];
    struct thread *th = findHolder(prev);
    __u64 now, slept, ran;

    KEEP_THREAD_STACK(ctx);
    if (th) {
        th->off.slept = !ctx->args[0] && isAsleep(prev);
        th->off.syscall = th->off.slept ? readSyscallNumber() : EBPFMON_NO_SYSCALL;
        th->off.woken = 0;
        th->off.left = bpf_ktime_get_ns();
    }
    th = findHolder(next);
    if (!th || !th->off.left)
        return 0;
    now = bpf_ktime_get_ns();
    ran = th->off.left; /* when it was ready to run again */
    if (th->off.slept) {
        ran = th->off.woken > th->off.left ? th->off.woken : now;
        slept = ran - th->off.left;
        th->off.blocked += slept;
        if (slept > th->off.longest) {
            th->off.longest = slept;
            th->off.longestSyscall = th->off.syscall;
        }
    }
    th->off.cpuWait += now - ran;
    th->off.left = 0;
    return 0;
}

/* sched_wakeup(task) */
SEC("raw_tp/sched_wakeup")
int ebpfmon_wakeup(struct bpf_raw_tracepoint_args *ctx)
{
    struct thread *th = findHolder((struct task_struct *)ctx->args[0]);

    KEEP_THREAD_STACK(ctx);
    if (th && th->off.left)
        th->off.woken = bpf_ktime_get_ns();
    return 0;
}

// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Queries: one program for each kind of source, and what happens with its events (queryLook.bpf.h).
 *
 * This is a separate object file. Each running query has its own copy, with only the programs of its source. The copies
 * share some tables of the kernel part (queryWho.bpf.h).
 */
#include <linux/errno.h>
#include "common/timing.bpf.h"
#include "query/queryCalls.bpf.h"
#include "query/queryUsdt.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Begins an event of the current thread, or of "task". 0: nobody asks about its process. */
static __always_inline int beginEvent(struct queryEvent *e, struct task_struct *task)
{
    struct ebpfMonQueryChosen *ioc;
    __u32 payer;
    __u64 id;

    e->task = task;
    if (task) {
        e->tgid = (__u32)BPF_CORE_READ(task, tgid);
        e->tid = (__u32)BPF_CORE_READ(task, pid);
    } else {
        id = bpf_get_current_pid_tgid();
        e->tgid = id >> 32;
        e->tid = (__u32)id;
    }
    ioc = bpf_map_lookup_elem(&chosen, &e->tgid);
    if (!ioc && (!plan.hostWide || (!e->tgid && !plan.withIdle)))
        return 0;
    e->iocId = ioc ? ioc->iocId : 0;
    payer = ioc ? ioc->payer : 0;
    e->counts = bpf_map_lookup_elem(&counts, &payer);
    return e->counts != 0;
}

/* Counts an event that is complete, if it meets the conditions. It was not left out by chance. */
static __always_inline void countIfMeant(const struct queryEvent *e)
{
    __u64 key[EBPFMON_QUERY_KEY_SIZE / 8] = {};
    enum verdict verdict;
    __s64 value = 0;
    __u32 met = 0;

    verdict = testConditions(e, AT_ONCE, &met);
    if (verdict == GOES_ON)
        verdict = takeKey(e, AT_ONCE, key);
    if (verdict == GOES_ON)
        verdict = takeValue(e, AT_ONCE, &value);
    if (verdict == GOES_ON)
        countEvent(e, key, value);
    else if (verdict == IS_UNREADABLE)
        __sync_fetch_and_add(&e->counts->faults, 1);
}

static __always_inline void seeEvent(const struct queryEvent *e)
{
    if (isSampled())
        countIfMeant(e);
}

/* The body of a program that counts its runs. "run" may use the event "e". */
#define RUN(task, run)                                        \
    struct queryEvent e = { .ctx = ctx };                          \
    struct timing timing;                                     \
                                                              \
    KEEP_THREAD_STACK(ctx);                                   \
    beginTimingOnly(&timing);                                 \
    if (!beginEvent(&e, task))                                \
        return 0;                                             \
    __sync_fetch_and_add(&e.counts->runs, 1);                 \
    run;                                                      \
    __sync_fetch_and_add(&e.counts->ns, takeTiming(&timing)); \
    return 0

static __always_inline void readCallArgs(struct queryEvent *e, struct pt_regs *ctx)
{
    e->regs = (__u64)ctx;
    e->ip = PT_REGS_IP(ctx);
    e->arg[0] = PT_REGS_PARM1(ctx);
    e->arg[1] = PT_REGS_PARM2(ctx);
    e->arg[2] = PT_REGS_PARM3(ctx);
    e->arg[3] = PT_REGS_PARM4(ctx);
    e->arg[4] = PT_REGS_PARM5(ctx);
    e->arg[5] = ARG6(ctx);
}

/* At the entry of a function, or at an offset in it. */
SEC("uprobe")
int ebpfmon_query_entry(struct pt_regs *ctx)
{
    RUN(0, {
        readCallArgs(&e, ctx);
        seeEvent(&e);
    });
}

/* At a USDT probe. Each of its places has the arguments somewhere else. */
SEC("uprobe")
int ebpfmon_query_usdt(struct pt_regs *ctx)
{
    RUN(0, {
        readOperands(&e, ctx);
        seeEvent(&e);
    });
}

SEC("uprobe")
int ebpfmon_query_return(struct pt_regs *ctx)
{
    RUN(0, {
        e.regs = (__u64)ctx;
        e.returned = PT_REGS_RC(ctx);
        seeEvent(&e);
    });
}

SEC("uprobe")
int ebpfmon_query_begin(struct pt_regs *ctx)
{
    RUN(0, {
        readCallArgs(&e, ctx);
        noteCall(&e, PT_REGS_SP(ctx));
    });
}

SEC("uprobe")
int ebpfmon_query_end(struct pt_regs *ctx)
{
    RUN(0, {
        e.regs = (__u64)ctx;
        e.returned = PT_REGS_RC(ctx);
        endCall(&e, PT_REGS_SP(ctx) - RETURN_BYTES);
    });
}

/* Forgets the calls that have returned: their frame is not below "sp". */
static __always_inline void dropReturned(struct ebpfMonQueryInHand *in, __u64 sp)
{
    if (in->below && in->below <= sp)
        in->below = 0;
#pragma unroll
    for (int i = 0; i < DROP_MAX; i++) {
        __u32 n = in->depth - 1;

        if (n >= EBPFMON_QUERY_DEPTH)
            return;
        barrier_var(n);
        if (in->at[n & (EBPFMON_QUERY_DEPTH - 1)].sp > sp)
            return;
        in->depth = n;
    }
    in->depth = 0; /* too many: forget all instead of guessing */
}

static __always_inline struct ebpfMonQueryInHand *findCalls(const struct queryEvent *e)
{
    struct ebpfMonQueryInHand *in = bpf_map_lookup_elem(&inHand, &e->tid);
    __u32 zero = 0;
    void *none;

    if (in)
        return in;
    none = bpf_map_lookup_elem(&nothingInHand, &zero);
    if (!none)
        return 0;
    bpf_map_update_elem(&inHand, &e->tid, none, BPF_NOEXIST);
    in = bpf_map_lookup_elem(&inHand, &e->tid);
    if (in)
        in->tgid = e->tgid;
    else
        __sync_fetch_and_add(&e->counts->lost, 1);
    return in;
}

/* The body of a program at dbProcess(), which is counted by itself. */
#define RUN_RECORD(run)                                       \
    struct queryEvent e = {};                                      \
    struct timing timing;                                     \
                                                              \
    KEEP_THREAD_STACK(ctx);                                   \
    beginTimingOnly(&timing);                                 \
    if (!beginEvent(&e, 0))                                   \
        return 0;                                             \
    __sync_fetch_and_add(&e.counts->records, 1);              \
    run;                                                      \
    __sync_fetch_and_add(&e.counts->ns, takeTiming(&timing)); \
    return 0

static __always_inline void beginRecord(const struct queryEvent *e, __u64 record, __u64 sp)
{
    struct ebpfMonQueryInHand *in = findCalls(e);
    __u32 n;

    if (!in)
        return;
    dropReturned(in, sp);
    n = in->depth;
    if (n >= EBPFMON_QUERY_DEPTH || isEndUnseen()) {
        if (!in->below)
            in->below = sp;
        return;
    }
    barrier_var(n);
    n &= EBPFMON_QUERY_DEPTH - 1;
    in->at[n].sp = sp;
    in->at[n].record = record;
    in->depth = n + 1;
}

static __always_inline void endRecord(const struct queryEvent *e, __u64 sp)
{
    struct ebpfMonQueryInHand *in = bpf_map_lookup_elem(&inHand, &e->tid);

    if (!in)
        return;
    dropReturned(in, sp);
    if (!in->depth)
        bpf_map_delete_elem(&inHand, &e->tid);
}

/* long dbProcess(dbCommon *) */
SEC("uprobe")
int ebpfmon_query_record_begin(struct pt_regs *ctx)
{
    RUN_RECORD(beginRecord(&e, PT_REGS_PARM1(ctx), PT_REGS_SP(ctx)));
}

SEC("uprobe")
int ebpfmon_query_record_end(struct pt_regs *ctx)
{
    RUN_RECORD(endRecord(&e, PT_REGS_SP(ctx) - RETURN_BYTES));
}

/* sys_enter(regs, number). What probes make, ours or those of another tracer, are no system calls of the IOC: it would
 * not make them if nobody looked. */
static __always_inline void readSyscall(struct queryEvent *e, const struct bpf_raw_tracepoint_args *ctx)
{
    struct pt_regs___kernel *regs = (void *)ctx->args[0];

    e->syscall = ctx->args[1];
    if (!plan.args)
        return;
    e->arg[0] = SYSCALL_ARG0(regs);
    e->arg[1] = SYSCALL_ARG1(regs);
    e->arg[2] = SYSCALL_ARG2(regs);
    e->arg[3] = SYSCALL_ARG3(regs);
    e->arg[4] = SYSCALL_ARG4(regs);
    e->arg[5] = SYSCALL_ARG5(regs);
}

SEC("raw_tp/sys_enter")
int ebpfmon_query_syscall(struct bpf_raw_tracepoint_args *ctx)
{
    RUN(0, {
        e.regs = findRegs();
        readSyscall(&e, ctx);
        if (!IS_SYSCALL_OF_PROBE(e.syscall))
            seeEvent(&e);
    });
}

SEC("raw_tp/sys_enter")
int ebpfmon_query_syscall_begin(struct bpf_raw_tracepoint_args *ctx)
{
    RUN(0, {
        readSyscall(&e, ctx);
        if (IS_SYSCALL_OF_PROBE(e.syscall))
            forgetSyscall(&e);
        else
            noteCall(&e, 0);
    });
}

/* sys_exit(regs, returned) */
SEC("raw_tp/sys_exit")
int ebpfmon_query_syscall_end(struct bpf_raw_tracepoint_args *ctx)
{
    RUN(0, {
        e.regs = findRegs();
        e.returned = ctx->args[1];
        endCall(&e, 0);
    });
}

SEC("perf_event")
int ebpfmon_query_profile(void *ctx)
{
    RUN(0, {
        e.regs = findRegs();
        seeEvent(&e);
    });
}

/* An event that the kernel, or the CPU, counts. The perf event has the period plan.sample, so it comes once in so
 * many. */
SEC("perf_event")
int ebpfmon_query_event(void *ctx)
{
    RUN(0, {
        e.regs = findRegs();
        countIfMeant(&e);
    });
}

/* At any tracepoint. If a program reads an argument that the tracepoint does not have, the kernel does not attach it
 * (max_ctx_offset, bpf_raw_tp_link_attach). tcp_retransmit_skb has two arguments, and three in newer kernels; so we
 * read only those that the query needs. */
SEC("raw_tp")
int ebpfmon_query_tracepoint(struct bpf_raw_tracepoint_args *ctx)
{
    RUN(0, {
        e.regs = findRegs();
        if (plan.args & 1)
            e.arg[0] = ctx->args[0];
        if (plan.args & 2)
            e.arg[1] = ctx->args[1];
        if (plan.args & 4)
            e.arg[2] = ctx->args[2];
        seeEvent(&e);
    });
}

/* Waits for a CPU. These programs are called at each switch and each wake-up of the host, so they read the kernel's
 * structs directly (tp_btf), and look for a thread that nobody asks about in one table only. */

static __always_inline struct ebpfMonQueryWait *addWait(__u32 tid, struct ebpfMonQueryCounts *c)
{
    struct ebpfMonQueryWait none = {};

    if (bpf_map_update_elem(&waits, &tid, &none, BPF_NOEXIST) == -E2BIG)
        __sync_fetch_and_add(&c->lost, 1);
    return bpf_map_lookup_elem(&waits, &tid);
}

/* The thread leaves its CPU. Some switches have no event (on 6.18 the kernel's own tracer lacks them, too). But each
 * thread has counters, so it shows how often it got a CPU without our seeing it: these waits are lost. */
static __always_inline void countMissed(const struct task_struct *task, struct ebpfMonQueryWait *wait)
{
    __u32 left = (__u32)(task->nvcsw + task->nivcsw), payer = wait->payer, got = left - wait->left;
    struct ebpfMonQueryCounts *c;

    if (wait->left && (__s32)(got - wait->got) > 0) {
        c = bpf_map_lookup_elem(&counts, &payer);
        if (c)
            __sync_fetch_and_add(&c->lost, got - wait->got);
    }
    wait->left = left;
    wait->got = 0;
}

/* Notes that the thread is ready to run, and has no CPU. If it is woken while it is ready already, its wait goes on: it
 * was preempted on its way to sleep. */
static __always_inline void noteReady(const struct task_struct *task, __u32 preempted)
{
    __u32 tgid = task->tgid, tid = task->pid, payer;
    struct ebpfMonQueryChosen *ioc = bpf_map_lookup_elem(&chosen, &tgid);
    struct ebpfMonQueryCounts *c;
    struct ebpfMonQueryWait *wait;
    struct timing timing;

    if (!tid || (!ioc && !plan.hostWide))
        return;
    beginTimingOnly(&timing);
    payer = ioc ? ioc->payer : 0;
    c = bpf_map_lookup_elem(&counts, &payer);
    if (!c)
        return;
    wait = bpf_map_lookup_elem(&waits, &tid);
    if (!wait)
        wait = addWait(tid, c);
    if (wait && preempted)
        countMissed(task, wait);
    if (wait && (preempted || !wait->begin)) {
        wait->iocId = ioc ? ioc->iocId : 0;
        wait->payer = (__u16)payer;
        wait->isPreempted = preempted;
        wait->begin = bpf_ktime_get_ns();
    }
    c->runs++;
    c->ns += takeTiming(&timing);
}

/* sched_wakeup(task). A thread may be woken while it still has its CPU, on its way to sleep. The kernel only lets it go
 * on (ttwu_runnable, and try_to_wake_up of the current thread), so what is noted here is no wait. It ends when the
 * thread leaves the CPU (forgetReady, noteReady). */
SEC("tp_btf/sched_wakeup")
int ebpfmon_query_wakeup(__u64 *ctx)
{
    KEEP_THREAD_STACK(ctx);
    noteReady((struct task_struct *)ctx[0], 0);
    return 0;
}

SEC("tp_btf/sched_wakeup_new")
int ebpfmon_query_wakeup_new(__u64 *ctx)
{
    KEEP_THREAD_STACK(ctx);
    noteReady((struct task_struct *)ctx[0], 0);
    return 0;
}

/* A thread has a CPU, and when it began to wait is not known. The begin was missed; or nobody asks about this process
 * any more, so its begins are not noted. */
static __always_inline void endUnknownWait(const struct task_struct *task, struct ebpfMonQueryCounts *c)
{
    __u32 tgid = task->tgid, tid = task->pid;

    if (plan.hostWide || bpf_map_lookup_elem(&chosen, &tgid))
        __sync_fetch_and_add(&c->lost, 1);
    else
        bpf_map_delete_elem(&waits, &tid);
}

/* The thread has a CPU now: measures how long it had waited. */
static __always_inline void endWait(void *ctx, struct task_struct *before, struct task_struct *task)
{
    struct queryEvent e = { .ctx = ctx, .task = task, .before = before, .tid = task->pid };
    struct ebpfMonQueryWait *wait = bpf_map_lookup_elem(&waits, &e.tid);
    struct timing timing;
    __u32 payer;

    if (!wait)
        return;
    beginTimingOnly(&timing);
    wait->got++;
    payer = wait->payer;
    e.counts = bpf_map_lookup_elem(&counts, &payer);
    if (!e.counts)
        return;
    if (!wait->begin) {
        endUnknownWait(task, e.counts);
        return;
    }
    e.counts->runs++;
    e.tgid = task->tgid;
    e.iocId = wait->iocId;
    e.preempted = wait->isPreempted;
    e.now = bpf_ktime_get_ns();
    e.duration = e.now - wait->begin;
    wait->begin = 0;
    seeEvent(&e);
    e.counts->ns += takeTiming(&timing);
}

/* The thread goes to sleep, or ends. */
static __always_inline void forgetReady(const struct task_struct *task, __u32 state)
{
    __u32 tid = task->pid;
    struct ebpfMonQueryWait *wait;

    if (state & TASK_DEAD) {
        bpf_map_delete_elem(&waits, &tid);
        return;
    }
    wait = bpf_map_lookup_elem(&waits, &tid);
    if (!wait)
        return;
    countMissed(task, wait);
    wait->begin = 0;
}

static __always_inline __u32 readState(const struct task_struct *task)
{
    return bpf_core_field_exists(task->__state) ? task->__state :
                                                  (__u32)((const struct task_struct___old *)task)->state;
}

/* sched_switch(preempt, prev, next): "prev" is ready to run if it was preempted, or did not go to sleep. */
SEC("tp_btf/sched_switch")
int ebpfmon_query_switch(__u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
    __u32 state = readState(prev);

    KEEP_THREAD_STACK(ctx);
    if (ctx[0] || !state)
        noteReady(prev, 1);
    else
        forgetReady(prev, state);
    endWait(ctx, prev, next);
    return 0;
}

/* A thread ends: forget what we know of it. */
SEC("raw_tp/sched_process_exit")
int ebpfmon_query_exit(void *ctx)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();

    KEEP_THREAD_STACK(ctx);
    bpf_map_delete_elem(&inCalls, &tid);
    bpf_map_delete_elem(&inHand, &tid);
    return 0;
}

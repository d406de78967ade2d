/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Measures how long a program takes. One run in some is timed. */
#ifndef EBPFMON_TIMING_BPF_H
#define EBPFMON_TIMING_BPF_H

#include "common/core.bpf.h"

#define TIMED 16 /* one run in so many is timed; a power of two */

/* The timing of one run of a program. */
struct timing {
    __u64 begin; /* 0: this run is not timed; to time each run would cost as much as a map lookup */
    __u64 away;  /* readAway() at the begin: a program can be preempted */
};

/* The ns that this thread has waited for a CPU since it began. 0: this kernel does not count that. */
static __always_inline __u64 readCpuWait(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();

    return bpf_core_field_exists(task->sched_info) ? BPF_CORE_READ(task, sched_info.run_delay) : 0;
}

/* The ns that this thread was runnable and did not run. If the kernel does not count that: how often it was
 * preempted. */
static __always_inline __u64 readAway(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();

    return bpf_core_field_exists(task->sched_info) ? readCpuWait() : BPF_CORE_READ(task, nivcsw);
}

/* Chooses if this run is timed. The verifier must not see which runs are: it would check the rest of the program once
 * for those that are timed, and once for the others. So there is no branch, which "!" would be in BPF, and both fields
 * get numbers of which the verifier knows nothing. */
static __always_inline void beginTiming(struct timing *t, __u64 now)
{
    __s64 isTimed = (__s64)(bpf_get_prandom_u32() & (TIMED - 1)) - 1; /* below 0: timed */
    __u64 begin;

    __asm__ volatile("%0 s>>= 63" : "+r"(isTimed)); /* the compiler would make a branch of it */
    begin = now & (__u64)isTimed;
    t->begin = begin;
    FORGET_ORIGIN(begin);
    t->away = begin ? readAway() : now;
}

/* The same for a program that does not need "now": it reads the clock only if this run is timed. */
static __always_inline void beginTimingOnly(struct timing *t)
{
    t->begin = bpf_get_prandom_u32() & (TIMED - 1) ? 0 : bpf_ktime_get_ns();
    t->away = t->begin ? readAway() : 0;
}

/* The ns that this run took. An IOC that wakes our reader is often preempted by it at once, so such runs are the long
 * ones: they count, without the time away. 0: this run was not timed; or the kernel does not count the time away, and
 * there was some. Call it last. */
static __always_inline __u64 takeRun(const struct timing *t)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    __u64 took, away;

    if (!t->begin)
        return 0;
    took = bpf_ktime_get_ns() - t->begin;
    away = readAway() - t->away;
    if (!bpf_core_field_exists(task->sched_info))
        return away ? 0 : took;
    return took > away ? took - away : 0;
}

/* The same, and an estimate for the runs that were not timed. */
static __always_inline __u64 takeTiming(const struct timing *t)
{
    return TIMED * takeRun(t);
}

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* How long a program takes: one run in some is timed. */
#ifndef EBPFMON_TIMING_BPF_H
#define EBPFMON_TIMING_BPF_H

#include "core.bpf.h"

#define TIMED 16 /* of so many runs of a program, one is timed; a power of two */

/* A run of a program that is timed. */
struct timing {
    __u64 begin;    /* 0: it is not timed: to time each run would cost as much as a map lookup */
    __u64 preempted; /* how often this thread was preempted before: a program can be preempted, too */
};

static __always_inline __u64 countPreemptions(void)
{
    return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), nivcsw);
}

/* ns that this thread has waited for a CPU since it began; 0: the kernel does not count that. */
static __always_inline __u64 readCpuWait(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();

    return bpf_core_field_exists(task->sched_info) ? BPF_CORE_READ(task, sched_info.run_delay) : 0;
}

static __always_inline void beginTiming(struct timing *t, __u64 now)
{
    t->begin = bpf_get_prandom_u32() & (TIMED - 1) ? 0 : now;
    t->preempted = t->begin ? countPreemptions() : 0;
}

/* The same for a program that needs the time for nothing else: it reads the clock only if this run is timed. */
static __always_inline void beginTimingOnly(struct timing *t)
{
    t->begin = bpf_get_prandom_u32() & (TIMED - 1) ? 0 : bpf_ktime_get_ns();
    t->preempted = t->begin ? countPreemptions() : 0;
}

/* ns that this run took; 0: it was not timed, or this thread had to leave the CPU meanwhile. The last that a program asks. */
static __always_inline __u64 takeRun(const struct timing *t)
{
    return t->begin && countPreemptions() == t->preempted ? bpf_ktime_get_ns() - t->begin : 0;
}

/* … with those that were not timed. */
static __always_inline __u64 takeTiming(const struct timing *t)
{
    return TIMED * takeRun(t);
}

#endif

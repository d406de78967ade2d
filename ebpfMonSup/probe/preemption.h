/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the kernel may take the CPU from a thread while this runs one of our programs. Where it may, another thread
 * of the same CPU can run the same program before the first one goes on. No interface of the kernel tells this to
 * everybody, so it is concluded from several, and what is not known is taken as "may".
 */
#ifndef EBPFMON_PREEMPTION_H
#define EBPFMON_PREEMPTION_H

/* Nonzero: this kernel may preempt a thread that runs a program. Reads two small files; any thread. */
int ebpfMonKernelMayPreempt(void);

/* Nonzero: this kernel is a real-time one (PREEMPT_RT): interrupts and what they leave for later run in threads. */
int ebpfMonKernelIsRealTime(void);

/* What ebpfMonKernelMayPreempt finds, from texts: release and version of uname(2), /proc/cmdline,
 * /sys/kernel/debug/sched/preempt. The last two are "" if they cannot be read. */
int ebpfMonPreemptionFind(const char *release, const char *version, const char *cmdline, const char *mode);

/* Nonzero: it may preempt a thread that runs a program at a tracepoint. And the same from release and version. */
int ebpfMonKernelMayPreemptTracepoints(void);
int ebpfMonPreemptionAtTracepoints(const char *release, const char *version);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the kernel may take the CPU from a thread while this runs one of our programs. Where it may, another thread
 * of the same CPU can run the same program before the first one goes on. No interface of the kernel tells this to
 * everybody, so it is concluded from several, and what is not known is taken as "may".
 */
#ifndef EBPFMON_PREEMPTION_H
#define EBPFMON_PREEMPTION_H

#include <bpf/libbpf.h>

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

/* --- stacks of programs ---
 *
 * Makes sure that no probe is set whose program could crash the host: one that the kernel runs on a stack which all
 * threads of a CPU share (a private stack, since 6.13), on a kernel that preempts it. Our programs are built so that
 * the kernel does not do that (KEEP_THREAD_STACK, bpf/common/core.bpf.h); here we do not rely on it. Any thread.
 */

/* What an object is refused with; ebpfMonKernelExplainRefusal knows it. */
#define EBPFMON_STACK_REFUSED ENOTRECOVERABLE

/* Looks at the machine code of all programs for uprobes of a loaded object. 0; or -EBPFMON_STACK_REFUSED: one of them
 * uses a private stack, and this kernel can preempt it. The kernel shows the code only to those with CAP_SYSLOG and to
 * root, and not where kptr_restrict is 2; then 0. */
int ebpfMonThreadStackCheck(const struct bpf_object *object);

/* Runs the program ebpfmon_stack_trial ("trial": its file descriptor) in this thread. 0; or -EBPFMON_STACK_REFUSED: it
 * ran on another stack than that of this thread, or could not be run on a kernel that has private stacks, and this
 * kernel can preempt programs. Needs no right besides those to load programs. */
int ebpfMonThreadStackTry(int trial);

#endif

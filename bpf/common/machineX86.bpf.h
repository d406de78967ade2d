/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* See machine.bpf.h. */
#ifndef EBPFMON_MACHINEX86_BPF_H
#define EBPFMON_MACHINEX86_BPF_H

/* The registers with which a thread entered the kernel. */
struct pt_regs___kernel {
    unsigned long di, si, dx, r10, r8, r9;
    unsigned long orig_ax; /* while the thread is in the kernel: the number of its system call, or -1 */
} CORE;

/* Bytes that a return takes off the stack: the return address. */
#define RETURN_BYTES 8

/* The sixth argument of a function. */
#define ARG6(ctx) ((ctx)->r9)

/* The arguments of a system call, and its number. */
#define SYSCALL_ARG0(regs)   BPF_CORE_READ(regs, di)
#define SYSCALL_ARG1(regs)   BPF_CORE_READ(regs, si)
#define SYSCALL_ARG2(regs)   BPF_CORE_READ(regs, dx)
#define SYSCALL_ARG3(regs)   BPF_CORE_READ(regs, r10)
#define SYSCALL_ARG4(regs)   BPF_CORE_READ(regs, r8)
#define SYSCALL_ARG5(regs)   BPF_CORE_READ(regs, r9)
#define SYSCALL_NUMBER(regs) ((__s32)BPF_CORE_READ(regs, orig_ax))

/* A system call that no program makes: the kernel's own code makes it in a process that has a probe (uretprobe and
 * uprobe, arch/x86/entry/syscalls/syscall_64.tbl). */
#define IS_SYSCALL_OF_PROBE(number) ((number) == 335 || (number) == 336)

#endif

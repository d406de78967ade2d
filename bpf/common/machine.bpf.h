/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The registers, which differ from machine to machine. core.bpf.h includes this header. */
#ifndef EBPFMON_MACHINE_BPF_H
#define EBPFMON_MACHINE_BPF_H

#if defined(__TARGET_ARCH_x86)

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

#elif defined(__TARGET_ARCH_arm64)

struct pt_regs___kernel {
    __u64 regs[31];
    __u64 orig_x0; /* the first argument, which the result replaces (arch/arm64/include/asm/ptrace.h) */
    __s32 syscallno;
} CORE;

#define RETURN_BYTES 0 /* the return address is in a register */

#define ARG6(ctx) (((struct user_pt_regs *)(ctx))->regs[5])

#define SYSCALL_ARG0(regs)   BPF_CORE_READ(regs, orig_x0)
#define SYSCALL_ARG1(regs)   BPF_CORE_READ(regs, regs[1])
#define SYSCALL_ARG2(regs)   BPF_CORE_READ(regs, regs[2])
#define SYSCALL_ARG3(regs)   BPF_CORE_READ(regs, regs[3])
#define SYSCALL_ARG4(regs)   BPF_CORE_READ(regs, regs[4])
#define SYSCALL_ARG5(regs)   BPF_CORE_READ(regs, regs[5])
#define SYSCALL_NUMBER(regs) BPF_CORE_READ(regs, syscallno)

#define IS_SYSCALL_OF_PROBE(number) 0

#else
#error "the registers of this machine are not known"
#endif

#endif

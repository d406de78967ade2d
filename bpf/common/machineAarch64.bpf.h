/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* See machine.bpf.h and machineX86.bpf.h. */
#ifndef EBPFMON_MACHINEAARCH64_BPF_H
#define EBPFMON_MACHINEAARCH64_BPF_H

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

#endif

// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Tells on which stack our programs run. The user part runs it once, when the programs are loaded, before any probe is
 * set (probe/preemption.c). Like all of them it begins with KEEP_THREAD_STACK, and like most it calls a function that
 * needs more than 64 bytes of stack: from this size on the kernel gives a function a private stack
 * (BPF_PRIV_STACK_MIN_SIZE, kernel/bpf/verifier.c).
 */
#include "common/core.bpf.h"
#include "ebpfMonTable.h"

#define THREAD_STACK_MOST (64ull << 10) /* bytes: x86-64 has 16 KiB, or 32 with KASAN; aarch64 up to 64 */

/* Where the function's variables were. Written and read back, because only so a program gets an address as a number. */
volatile __u64 stackAt;

__attribute__((noinline)) int ebpfmon_note_stack(void)
{
    volatile __u64 room[16];

    room[0] = 0;
    stackAt = (__u64)&room[0];
    return (int)room[0];
}

SEC("raw_tp")
int ebpfmon_stack_trial(struct bpf_raw_tracepoint_args *ctx)
{
    __u64 bottom, at;

    KEEP_THREAD_STACK(ctx);
    ebpfmon_note_stack();
    at = stackAt;
    stackAt = 0;
    bottom = (__u64)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), stack);
    return at - bottom < THREAD_STACK_MOST ? EBPFMON_STACK_THREAD : EBPFMON_STACK_OTHER;
}

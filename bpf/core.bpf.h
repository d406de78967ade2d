/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The few kernel structs that are read, by name through CO-RE: only members that we use are declared, and
 * the loader relocates them to the running kernel.
 */
#ifndef EBPFMON_CORE_BPF_H
#define EBPFMON_CORE_BPF_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* libbpf has these names since 1.2, Debian 12 has 1.1. */
#ifndef BPF_UPROBE
#define BPF_UPROBE(name, args...) BPF_KPROBE(name, ##args)
#define BPF_URETPROBE(name, args...) BPF_KRETPROBE(name, ##args)
#endif

#define CORE __attribute__((preserve_access_index))

#include "machine.bpf.h"

struct ns_common { unsigned int inum; } CORE;
struct net { struct ns_common ns; } CORE;
typedef struct { struct net *net; } possible_net_t;

struct sock_common {
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    possible_net_t skc_net;
} CORE;

struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol;
} CORE;

struct tcp_sock {
    __u32 copied_seq;
} CORE;

struct sched_info {
    unsigned long long run_delay; /* ns that it waited for a CPU */
} CORE;

/* kernel/events/uprobes.c: a function that a return probe waits for */
struct return_instance {
    unsigned long stack; /* where its return address was */
    unsigned long orig_ret_vaddr;
    struct return_instance *next;
} CORE;

struct uprobe_task { struct return_instance *return_instances; } CORE;

struct task_struct {
    struct uprobe_task *utask;
    int pid; /* of the thread */
    int tgid;
    unsigned long nivcsw; /* it was preempted so often */
    unsigned int __state; /* kernel 5.14 (2f064a59a11f); before: "state" */
    void *stack;
    struct task_struct *group_leader;
    char comm[16];
    struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
    __u64 start_time; /* monotonic ns, of the fork */
} CORE;

struct task_struct___old { long state; } CORE;

struct super_block { unsigned int s_dev; } CORE;

struct inode {
    unsigned short i_mode;
    unsigned long i_ino;
    struct super_block *i_sb;
} CORE;

struct qstr { const unsigned char *name; } CORE;
struct dentry { struct qstr d_name; } CORE;
struct path { struct dentry *dentry; } CORE;

struct file {
    struct path f_path;
    struct inode *f_inode;
    void *private_data; /* of a socket: struct socket */
} CORE;

struct linux_binprm { struct file *file; } CORE;

/* A thread that leaves the CPU: not because another one should run. */
static __always_inline int isAsleep(struct task_struct *task)
{
    return bpf_core_field_exists(task->__state) ? BPF_CORE_READ(task, __state) != 0
                                                : BPF_CORE_READ((struct task_struct___old *)task, state) != 0;
}

/* The registers with which a thread entered the kernel, as the kernel keeps them. bpf_task_pt_regs is of kernel 5.15.
 * Before, as task_pt_regs of arch/x86 and arch/arm64 (asm/processor.h) has it: at the end of the stack, which has 16 KiB
 * (page_64_types.h; asm/memory.h with pages of 4 KiB; both without KASAN). */
static __always_inline struct pt_regs___kernel *findTaskRegs(struct task_struct *task)
{
#ifdef EBPFMON_OLD_KERNEL
    return BPF_CORE_READ(task, stack) + 4 * 4096 - bpf_core_type_size(struct pt_regs___kernel);
#else
    return (struct pt_regs___kernel *)bpf_task_pt_regs(task);
#endif
}

#endif

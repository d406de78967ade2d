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
    unsigned int __state; /* kernel 5.14 (2f064a59a11f) */
    struct task_struct *group_leader;
    char comm[16];
} CORE;

#endif

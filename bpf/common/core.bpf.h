/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The few structs of the kernel that the programs read, with the members that they use only. By CO-RE, libbpf finds the
 * places of these members in the running kernel by their names.
 */
#ifndef EBPFMON_CORE_BPF_H
#define EBPFMON_CORE_BPF_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* libbpf has these macros since 1.2; Debian 12 has 1.1. */
#ifndef BPF_UPROBE
#define BPF_UPROBE(name, args...) BPF_KPROBE(name, ##args)
#define BPF_URETPROBE(name, args...) BPF_KRETPROBE(name, ##args)
#endif

#define CORE __attribute__((preserve_access_index))

#include "common/machine.bpf.h"
#include "common/table.bpf.h"

/*
 * Every program that can be preempted begins with this: it keeps the program on the stack of its thread.
 *
 * From kernel 6.13 on the compiler of the kernel (JIT) may give a program, and each function that it calls, a stack of
 * its own for each CPU: a "private stack" (bpf_enable_priv_stack(), kernel/bpf/verifier.c). Programs of uprobes can be
 * preempted since 6.0 (8c7dcb84e3b7), and nothing forbids that the next thread of this CPU runs the same program. It
 * would write over the variables of the first one: wrong counts, or a kernel that crashes. The kernel gives no private
 * stack to a program that has a tail call in any of its functions (check_max_stack_depth()), and looks for tail calls
 * before it removes code that cannot be reached. So this tail call, which is never made, costs no instruction.
 *
 * Programs at tracepoints, raw tracepoints and perf events do not run twice at a time on one CPU: the kernel skips the
 * second run. They have it all the same, so that nothing depends on that.
 */
static const volatile __u32 never;
#define KEEP_THREAD_STACK(ctx)            \
    do {                                  \
        if (never)                        \
            bpf_tail_call((ctx), 0, 0);   \
    } while (0)

/* Changes nothing, but the verifier forgets where this number was read from. Otherwise a comparison of the number tells
 * the verifier the same about that place, and it checks the next round of a loop once for each result
 * (sync_linked_regs() of the kernel). This costs one instruction, and halves the work of the verifier for a sweep. */
#define FORGET_ORIGIN(x) __asm__ volatile("%0 |= 0" : "+r"(x))

/* Adds atomically; nobody asks for the number that was there. With -mcpu=v3 clang makes of __sync_fetch_and_add() an
 * instruction that returns it all the same (from 20 on), and kernels before 5.12 refuse a program that has one. */
#define ADD_ATOMICALLY(at, n) ((void)__atomic_fetch_add((at), (n), __ATOMIC_RELAXED))

#define AF_INET  2 /* linux/socket.h */
#define AF_INET6 10

struct ns_common { unsigned int inum; } CORE;
struct net { struct ns_common ns; } CORE;
struct nsproxy { struct net *net_ns; } CORE;
typedef struct { struct net *net; } possible_net_t;

struct sock_common {
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    possible_net_t skc_net;
    unsigned long skc_flags; /* a bit for each of enum sock_flags */
} CORE;

struct in6_addr { __u8 bytes[16]; };

/* a kernel without IPv6 does not have these */
struct sock_common___v6 {
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
} CORE;

struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol;
} CORE;

struct inet_sock {
    __u16 inet_sport; /* network byte order */
} CORE;

struct tcp_sock {
    __u32 copied_seq; /* the number of the next byte that the process has not read … */
    __u32 rcv_nxt;    /* … and that has not come */
    __u32 snd_una;
    __u32 write_seq;  /* of the next byte that the process sends; 0: none is chosen yet */
    __u64 bytes_received, bytes_acked;
} CORE;

struct sched_info {
    unsigned long long run_delay; /* ns that the thread has waited for a CPU */
} CORE;

/* kernel/events/uprobes.c: a function that is running and has a return probe */
struct return_instance {
    unsigned long stack; /* the place on the stack of its return address */
    unsigned long orig_ret_vaddr;
    struct return_instance *next;
} CORE;

struct uprobe_task {
    unsigned int depth; /* number of return_instances */
    struct return_instance *return_instances;
} CORE;

typedef struct { int counter; } atomic_t;

struct signal_struct {
    atomic_t live; /* threads of the process that have not begun to end */
    struct mm_struct *oom_mm; /* not NULL: the kernel was out of memory, and chose this process to end */
} CORE;

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
} CORE;

struct files_struct { struct fdtable *fdt; } CORE; /* the open files of a process */

struct socket { struct sock *sk; } CORE;

struct task_struct {
    struct signal_struct *signal;
    struct files_struct *files;
    struct uprobe_task *utask;
    int pid; /* the thread's id */
    int tgid;
    int exit_code; /* as for wait(2) */
    unsigned long nvcsw;  /* how often the thread left its CPU by itself */
    unsigned long nivcsw; /* how often the thread was preempted */
    unsigned int __state; /* kernel 5.14 (2f064a59a11f); before: "state" */
    void *stack;
    struct task_struct *group_leader;
    struct nsproxy *nsproxy;
    char comm[16];
    struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
    __u64 start_time; /* monotonic ns, of the fork */
    __u64 start_boottime; /* the same with the time that the host slept */
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

#define S_IFMT   0170000 /* linux/stat.h */
#define S_IFSOCK 0140000

#define TASK_DEAD 0x80 /* linux/sched.h: the thread leaves the CPU for the last time */

/* Nonzero: a thread that leaves the CPU goes to sleep; 0: it leaves because another thread shall run. */
static __always_inline int isAsleep(struct task_struct *task)
{
    return bpf_core_field_exists(task->__state) ? BPF_CORE_READ(task, __state) != 0
                                                : BPF_CORE_READ((struct task_struct___old *)task, state) != 0;
}

/* Finds the registers with which a thread entered the kernel. bpf_task_pt_regs() came with kernel 5.15. Before, we do
 * what task_pt_regs() does in arch/x86 and arch/arm64 (asm/processor.h): the registers are at the end of the stack,
 * which has 16 KiB (page_64_types.h; asm/memory.h with pages of 4 KiB; both without KASAN). */
static __always_inline struct pt_regs___kernel *findTaskRegs(struct task_struct *task)
{
#ifdef EBPFMON_OLD_KERNEL
    return BPF_CORE_READ(task, stack) + 4 * 4096 - bpf_core_type_size(struct pt_regs___kernel);
#else
    return (struct pt_regs___kernel *)bpf_task_pt_regs(task);
#endif
}

/* The open file of this process with the number "fd". NULL: none. */
static __always_inline struct file *findOpenFile(__u32 fd)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
    struct file *file = 0, **table = BPF_CORE_READ(fdt, fd);

    if (fd >= BPF_CORE_READ(fdt, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), &table[fd]))
        return 0;
    return file;
}

/* The socket that this file is. NULL: it is something else. */
static __always_inline struct sock *findFileSocket(struct file *file)
{
    struct socket *socket;

    if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
        return 0;
    socket = BPF_CORE_READ(file, private_data);
    return BPF_CORE_READ(socket, sk);
}

#endif

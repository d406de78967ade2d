/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Finds what a file descriptor of the current thread, or a socket of the kernel, is. */
#ifndef EBPFMON_QUERYFILE_BPF_H
#define EBPFMON_QUERYFILE_BPF_H

#include "query/querySend.bpf.h"

/* "withOwn": also the own port of a connected socket. */
static __always_inline void readSocket(struct sock *sk, struct ebpfMonQueryFile *to, int withOwn)
{
    struct sock_common___v6 *six = (void *)&sk->__sk_common;
    __u32 family = BPF_CORE_READ(sk, __sk_common.skc_family);

    to->kind = EBPFMON_QUERY_IS_SOCKET;
    if (family != AF_INET && family != AF_INET6)
        return;
    to->kind = EBPFMON_QUERY_IS_INET;
    to->peer.family = family;
    to->peer.port = BPF_CORE_READ(sk, __sk_common.skc_dport);
    if (withOwn || !to->peer.port)
        to->peer.ownPort = BPF_CORE_READ(sk, __sk_common.skc_num);
    if (family == AF_INET)
        to->peer.addr[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
    else if (bpf_core_field_exists(six->skc_v6_daddr))
        bpf_core_read(to->peer.addr, sizeof(to->peer.addr), &six->skc_v6_daddr);
}

/* Finds the file or socket of a system call's first argument. It stays EBPFMON_QUERY_IS_NOTHING if that is no
 * descriptor. */
static __always_inline void readSyscallFile(const struct queryEvent *e, struct ebpfMonQueryFile *to)
{
    __u32 number = (__u32)e->syscall;
    struct file *file;
    struct sock *sk;

    if (e->syscall >= EBPFMON_QUERY_SYSCALLS)
        return;
    barrier_var(number);
    number &= EBPFMON_QUERY_SYSCALLS - 1;
    if (!(plan.takesFile[number / 64] >> (number % 64) & 1))
        return;
    file = findOpenFile((__u32)e->arg[0]);
    if (!file)
        return;
    sk = findFileSocket(file);
    if (sk) {
        readSocket(sk, to, 0);
        return;
    }
    to->kind = EBPFMON_QUERY_IS_FILE;
    to->tgid = e->tgid;
    to->file.inode = BPF_CORE_READ(file, f_inode, i_ino);
    bpf_probe_read_kernel_str(to->file.name, sizeof(to->file.name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What the programs at tracepoints of the host share: heads of events, and the namespace of a socket. */
#ifndef EBPFMON_HOST_BPF_H
#define EBPFMON_HOST_BPF_H

#include "common/probe.bpf.h"

#define IPPROTO_TCP 6

static __always_inline void fillHostHead(struct ebpfMonHead *h, __u32 kind, __u64 id, __u32 iocId)
{
    h->kind = kind;
    h->tgid = id >> 32;
    h->tid = (__u32)id;
    h->iocId = iocId;
    h->ktime = bpf_ktime_get_ns();
}

/* Sends an event that is only a head. "iocId" 0: it is of no watched IOC. */
static __always_inline void sendHead(__u32 kind, __u64 id, __u32 iocId)
{
    struct ebpfMonHead *h = reserveEvent(0, sizeof(*h));

    if (!h)
        return;
    fillHostHead(h, kind, id, iocId);
    commitEvent(h);
}

/* The inode of the network namespace of a socket. */
static __always_inline __u32 readOwnNetns(struct sock *sk)
{
    return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* Reads the addresses of an IPv6 socket, of its peer and its own. 0: both ends are IPv4, mapped into IPv6. Of another
 * connection skc_daddr and skc_rcv_saddr have no address (LOOPBACK4_IPV6, net/ipv6.h). */
static __always_inline int readIPv6(struct sock *sk, __u32 there[4], __u32 here[4])
{
    struct sock_common___v6 *six = (void *)&sk->__sk_common;

    if (!bpf_core_field_exists(six->skc_v6_daddr))
        return 0;
    bpf_core_read(there, 16, &six->skc_v6_daddr);
    bpf_core_read(here, 16, &six->skc_v6_rcv_saddr);
    if (!ebpfMonIsMapped(there))
        return 1;
    __builtin_memset(there, 0, 16);
    __builtin_memset(here, 0, 16);
    return 0;
}

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What the programs at tracepoints of the host share: heads of events, and what a socket tells. */
#ifndef EBPFMON_HOST_BPF_H
#define EBPFMON_HOST_BPF_H

#include "common/probe.bpf.h"

#define IPPROTO_TCP 6
#define SOCK_DONE 1 /* enum sock_flags, net/sock.h */

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

/* Reads both ends of a TCP connection. "peer" is zeros before. 0: it is none. */
static __always_inline int readPeer(struct sock *sk, struct ebpfMonPeer *peer)
{
    __u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

    if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
        return 0;
    if (family == AF_INET6 && readIPv6(sk, peer->addr6, peer->saddr6)) {
        peer->addr = ebpfMonShortAddress(peer->addr6);
        peer->saddr = ebpfMonShortAddress(peer->saddr6);
    } else {
        peer->addr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
        peer->saddr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    }
    peer->port = BPF_CORE_READ(sk, __sk_common.skc_dport);
    peer->sport = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_num));
    if (!peer->sport) /* the client has reset the connection, and the thread reads what came before (tcp_set_state) */
        peer->sport = BPF_CORE_READ((struct inet_sock *)sk, inet_sport);
    peer->netns = readOwnNetns(sk);
    return 1;
}

/* The sequence number behind the last byte that was read from this socket. A receive that has room for more bytes than
 * there are also takes the FIN, which has a number, too, and is no byte (tcp_recvmsg_locked(), net/ipv4/tcp.c). */
static __always_inline __u32 readCopied(struct tcp_sock *tp)
{
    unsigned long flags = BPF_CORE_READ((struct sock *)tp, __sk_common.skc_flags);
    __u32 copied = BPF_CORE_READ(tp, copied_seq);

    /* only a FIN sets SOCK_DONE (tcp_fin()), and nothing comes behind it */
    if (flags >> SOCK_DONE & 1 && copied == BPF_CORE_READ(tp, rcv_nxt))
        copied--;
    return copied;
}

/* The kernel counts what came since the first sequence numbers (tcp_rcv_nxt_update(), tcp_snd_una_update()). */
static __always_inline void readFirst(struct sock *sk, struct ebpfMonFirst *first)
{
    struct tcp_sock *tcp = (struct tcp_sock *)sk;

    first->seq[0] = BPF_CORE_READ(tcp, rcv_nxt) - (__u32)BPF_CORE_READ(tcp, bytes_received);
    first->seq[1] = BPF_CORE_READ(tcp, snd_una) - (__u32)BPF_CORE_READ(tcp, bytes_acked);
}

#define FIRST_TRIES 4

/* Nonzero: it is the connection with "known", and *first is that. The kernel changes the two numbers of readFirst one
 * after the other, on another CPU. */
static __always_inline int isFirst(struct sock *sk, const struct ebpfMonFirst *known, struct ebpfMonFirst *first)
{
    for (int i = 0; i < FIRST_TRIES; i++) {
        readFirst(sk, first);
        if (ebpfMonFirstIsSame(known, first))
            return 1;
    }
    return 0;
}

#endif

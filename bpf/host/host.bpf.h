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

#endif

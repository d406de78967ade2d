/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Which packets can wait in the ring. To wake the reader costs the thread that sends the packet, and the reader as much
 * again. Only a put has to reach its PVs at once; all else is counted or remembered, and is read a second later at the
 * latest, in order.
 *
 * So these wait: datagrams (searches and beacons); connections that begin or end; what servers send (updates and
 * replies; a reader that waits for the reply to a put is awake, or lets all packets wake it); a packet to a server with
 * one message that is no put. A packet with several messages does not wait: nobody looks through them here.
 */
#ifndef EBPFMON_WIREWAITS_BPF_H
#define EBPFMON_WIREWAITS_BPF_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "wire/wireLooks.bpf.h"
#include "wire/wirePorts.bpf.h"

#define CA_HEADER    16
#define CA_PUTS      (1u << 4 | 1u << 19) /* caProto.h: CA_PROTO_WRITE, CA_PROTO_WRITE_NOTIFY */
#define PVA_HEADER   8
#define PVA_BIG      0x80                 /* bit of the flags: numbers are big-endian */
#define PVA_SEGMENT  0x30                 /* bits of the flags: the message has several segments */
#define PVA_PUTS     (1u << 11 | 1u << 12 | 1u << 16 | 1u << 20) /* specification of pvAccess: put, put-get, process,
                                                                  * RPC */

/* Nonzero: a packet to a server with "size" bytes of data at "at" is one message, which is no put. A global function,
 * as ebpfmon_look_at_data. */
__attribute__((noinline)) int ebpfmon_is_no_put(struct __sk_buff *skb, __u32 at, __u32 size)
{
    __u8 p[PVA_HEADER] = {};
    __u32 body;

    if (size < sizeof(p) || bpf_skb_load_bytes(skb, at, p, sizeof(p)))
        return 0;
    switch (lookAtHead(p)) {
    case PVA:
        body = (__u32)p[4] << 24 | (__u32)p[5] << 16 | (__u32)p[6] << 8 | p[7];
        if (!(p[2] & PVA_BIG))
            body = __builtin_bswap32(body);
        return !(p[2] & PVA_SEGMENT) && !(PVA_PUTS >> (p[3] & 31) & 1) && body == size - PVA_HEADER;
    case CA:
    case CA_HELLO:
        return !(CA_PUTS >> (p[1] & 31) & 1) && (((__u32)p[2] << 8 | p[3]) + CA_HEADER) == size;
    default:
        return 0;
    }
}

/* Nonzero: this packet can wait. "l4": where its TCP header begins; "end": where the packet ends. */
static __always_inline int canTcpWait(struct __sk_buff *skb, __u32 l4, __u32 end, const struct tcphdr *tcp)
{
    __u32 at = l4 + tcp->doff * 4u;

    if (at >= end || (isExpected(tcp->source) && !isExpected(tcp->dest)))
        return 1;
    return ebpfmon_is_no_put(skb, at, end - at);
}

#endif

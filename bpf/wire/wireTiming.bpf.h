/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* How long the program takes for a packet that a server of this host sends: its thread pays for that. */
#ifndef EBPFMON_WIRETIMING_BPF_H
#define EBPFMON_WIRETIMING_BPF_H

#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/tcp.h>
#include <bpf/bpf_helpers.h>
#include "ebpfMonPacket.h"
#include "wire/wirePorts.bpf.h"

#define LOOPBACK_IFINDEX 1 /* of lo in every namespace: loopback_net_init() of the kernel checks it */

/* Chooses the packets that are timed, in no rhythm that packets of a dialogue could have: by the golden ratio (Knuth),
 * so the next one is 8, 13 or 21 packets away. In a table, because the verifier would check the rest of the program
 * once for those that are timed, and once for the others. */
static __always_inline void beginPacketTiming(struct ebpfMonPacketCounts *count)
{
    count->begin = (__u32)count->seen * 0x9e3779b1u < ~0u / EBPFMON_PACKET_TIMED ? bpf_ktime_get_ns() : 0;
}

/* When the program began, if a server of this host sends this TCP packet, and it is timed; else 0: who receives a
 * packet from another host does not pay for it. */
static __always_inline __u64 getBegin(const struct __sk_buff *skb, const struct tcphdr *tcp,
    const struct ebpfMonPacketCounts *count)
{
    if (skb->ifindex != LOOPBACK_IFINDEX && skb->pkt_type != PACKET_OUTGOING)
        return 0;
    return isExpected(tcp->source) && !isExpected(tcp->dest) ? count->begin : 0;
}

#endif

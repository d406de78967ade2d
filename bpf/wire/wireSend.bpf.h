/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Sends packets to the user part. */
#ifndef EBPFMON_WIRESEND_BPF_H
#define EBPFMON_WIRESEND_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "common/eventsSleep.bpf.h"
#include "common/wake.bpf.h"
#include "ebpfMonPacket.h"
#include "wire/wireTiming.bpf.h"

#define MANY_WAIT 64 /* if such a part of the ring is full, many packets wait: to read them takes 1 or 2 ms, if the ring
                      * has its usual size */
#define UDP_MIN 28 /* bytes of the IP and the UDP header: a short datagram has no more */

/* The packets that passed: a struct ebpfMonPacketHead, then the packet from its IP header on. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20);
} packets SEC(".maps");

/* enum ebpfMonPacketsSleep. Nonzero: the reader sleeps (wake.bpf.h). The user part sets it. */
volatile __u32 packetsSleep;

DEFINE_EVENTS_SLEEP;

/* Copies "n" bytes of the packet, at least its headers, into an entry with "room" bytes, which is a constant. Nonzero:
 * not possible. */
static __always_inline int copyPacket(struct __sk_buff *skb, __u32 ip, __u32 room, __u64 n, __u64 now, int canWait,
    __u64 begin)
{
    struct ebpfMonPacketHead *entry = bpf_ringbuf_reserve(&packets, sizeof(*entry) + room, 0);

    if (!entry)
        return -1;
    /* n is within both limits, but the verifier has lost that. Verifiers up to 6.12 know only the bound of a number
     * that was compared, so there is one comparison at a time. Verifiers before 6.8 learn nothing from a comparison
     * with 0. */
    barrier_var(n);
    if (n < UDP_MIN)
        n = UDP_MIN;
    barrier_var(n);
    if (n > room)
        n = room;
    barrier_var(n);
    if (bpf_skb_load_bytes(skb, ip, entry + 1, n)) {
        bpf_ringbuf_discard(entry, BPF_RB_NO_WAKEUP);
        return -1;
    }
    entry->ktime = now;
    entry->len = n;
    entry->wireLen = skb->len - ip;
    entry->canWait = (__u16)canWait;
    entry->isOutside = skb->pkt_type != PACKET_OUTGOING && skb->ifindex != LOOPBACK_IFINDEX;
    entry->took = begin ? bpf_ktime_get_ns() - begin : 0;
    bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
    return 0;
}

/* The size of an entry must be a constant, so there are some sizes, each of them twice the one before. */
static __always_inline int copyToEntry(struct __sk_buff *skb, __u32 ip, int canWait, __u64 begin)
{
    __u64 n = skb->len - ip < EBPFMON_PACKET_MAX ? skb->len - ip : EBPFMON_PACKET_MAX;
    __u64 now = bpf_ktime_get_ns();

#pragma unroll
    for (__u32 room = EBPFMON_PACKET_MIN; room < EBPFMON_PACKET_MAX; room *= 2)
        if (n <= room)
            return copyPacket(skb, ip, room, n, now, canWait, begin);
    return copyPacket(skb, ip, EBPFMON_PACKET_MAX, n, now, canWait, begin);
}

static __always_inline int doManyWait(void)
{
    return bpf_ringbuf_query(&packets, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&packets, BPF_RB_RING_SIZE) / MANY_WAIT;
}

/* A packet that can wait tells nothing of an event that will come, so it leaves the flag of the other ring alone. */
static __always_inline void wakePacketReader(int canWait)
{
    if (!canWait)
        wakeReader(&packets, &packetsSleep, &eventsSleep);
    else if (packetsSleep == EBPFMON_PACKETS_ALL || (packetsSleep == EBPFMON_PACKETS_URGENT && doManyWait()))
        wakeReader(&packets, &packetsSleep, NULL);
}

/* Sends the packet to the user part. "canWait": nonzero if it can wait there (wireWaits.bpf.h). "begin": see struct
 * ebpfMonPacketCounts. Nonzero: not possible. */
static __always_inline int sendPacket(struct __sk_buff *skb, __u32 ip, int canWait, __u64 begin)
{
    if (copyToEntry(skb, ip, canWait, begin))
        return -1;
    wakePacketReader(canWait);
    return 0;
}

#endif

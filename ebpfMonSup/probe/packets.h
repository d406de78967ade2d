/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of one network namespace that may be Channel Access or pvAccess. Programs of ours in the kernel
 * (packets.h) select them, and learn which connections are neither. They change, delay and send nothing. A packet
 * that crosses several devices of a namespace (a bridge and its port) comes once from each; a packet on lo comes once.
 * One thread at a time may use a source.
 */
#ifndef EBPFMON_PACKETS_H
#define EBPFMON_PACKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonEvent.h"
#include "ebpfMonPacket.h"
#include "probe/ring.h"

/* --- taps ---
 *
 * The places at which the programs of bpf/wire/wire.bpf.c see the packets of a network namespace. Most packets of a
 * host are on lo. A packet socket takes time from each of them, wanted or not. So lo has a tcx program, which takes a
 * tenth of that (kernel 6.6, CAP_NET_ADMIN), and each other device has a packet socket of its own. Without tcx, and in
 * a namespace with very many devices, one packet socket sees all devices. The programs change, delay and send nothing;
 * the kernel removes them when their files are closed. One thread at a time. */

#define EBPFMON_TAP_DEVICES_MAX 64 /* network devices besides lo */

/* Nonzero: this kernel has tcx, and we may use it. Each call tries it. */
int ebpfMonPacketTapsHaveTcx(void);

/* --- the packet filter --- */

typedef struct ebpfMonPackets ebpfMonPackets;

typedef struct {
    uint64_t seen;       /* packets that the filter looked at */
    uint64_t passed;     /* of these, packets that it passed to us */
    uint64_t dropped;    /* of those that passed, packets that were lost because the ring was full */
    uint64_t foreign;    /* connections that are neither CA nor PVA */
    uint64_t ns;         /* ns that the filter ran, if the kernel counts it (kernel.bpf_stats_enabled); else 0 */
    uint64_t runs;       /* number of runs in "ns". The filter of a packet socket runs twice for each packet on lo,
                          * but looks at it once */
} ebpfMonPacketsStats;

#define EBPFMON_PACKETS_RING (8u << 20)

/* Opens a source for the network namespace of process "pid"; 0: for our own. The calling thread enters the other
 * namespace for a moment and comes back. "ringBytes" is rounded up to a power of two; 0: EBPFMON_PACKETS_RING. NULL:
 * "why" gets what is wrong and what to do. */
ebpfMonPackets *ebpfMonPacketsOpen(pid_t pid, unsigned ringBytes, char *why, size_t size);
void ebpfMonPacketsClose(ebpfMonPackets *packets);

/* Ends the reception. The packets that have come can still be read. */
void ebpfMonPacketsEnd(ebpfMonPackets *packets);

/* Adapts the source to the network devices that exist now. "pid": a process of the namespace; 0: our own. Call it every
 * few seconds. */
void ebpfMonPacketsFollow(ebpfMonPackets *packets, pid_t pid);

int ebpfMonPacketsUseTcx(const ebpfMonPackets *packets); /* nonzero: a tcx program sees the packets on lo, which
                                                          * takes little time */

uint32_t ebpfMonPacketsGetNetns(const ebpfMonPackets *packets); /* inode of the namespace */

/* From then on packets are seen, or up to a millisecond later; monotonic ns. */
uint64_t ebpfMonPacketsGetSince(const ebpfMonPackets *packets);

/* What a look found. */
typedef struct {
    unsigned packets;
    unsigned urgent;  /* of these: they could not wait (bpf/wire/wireWaits.bpf.h) */
    int      isWhole; /* see ebpfMonRingRead */
} ebpfMonPacketsLook;

typedef struct {
    uint64_t       time;     /* ns since 1970 */
    const uint8_t *ip;       /* the packet from its IPv4 header on: "len" of its "wireLen" bytes. Valid during the call
                              * only */
    size_t         len, wireLen;
    int            isOutside;/* it came in by another device than lo */
    uint64_t       took;     /* ns: what our program took from the server on this host that sent this packet and
                              * similar ones; 0: no such server, or another packet stands for this one */
} ebpfMonPacket;

/* Calls "packet" for each packet that has come. */
typedef void (*ebpfMonPacketFn)(void *arg, const ebpfMonPacket *packet);
void ebpfMonPacketsRead(ebpfMonPackets *packets, ebpfMonPacketFn packet, void *arg, ebpfMonPacketsLook *look);

/* How to sleep until packets come (ring.h; which of them: enum ebpfMonPacketsSleep). It stays the source's. */
ebpfMonRing *ebpfMonPacketsGetRing(ebpfMonPackets *packets);

/* Expects CA or PVA at a port (host byte order, UDP and TCP), or no more: all datagrams of the port pass, and the
 * filter looks at its connections for longer before it drops them as foreign. At first the ports are 5064, 5065, 5075
 * and 5076. */
void ebpfMonPacketsExpectPort(ebpfMonPackets *packets, uint16_t port, int expected);

/* Tells the filter what the user part found out about a connection (either end may be first): its packets are wanted,
 * or they are not. */
void ebpfMonPacketsSetVerdict(ebpfMonPackets *packets, const struct ebpfMonPeer *connection, int wanted);

/* The counts since the source was opened. */
void ebpfMonPacketsGetStats(ebpfMonPackets *packets, ebpfMonPacketsStats *stats);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of one network namespace that may be Channel Access or pvAccess, from programs of ours in the kernel
 * (probe/packetTaps.h). They pass only those packets, and learn which connections are neither. Nothing is
 * changed, delayed or sent. A packet that crosses several interfaces of a namespace (a bridge and its port) comes once
 * from each; one on lo comes once. One thread at a time may use a source.
 */
#ifndef EBPFMON_PACKETS_H
#define EBPFMON_PACKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonEvent.h"
#include "probe/ring.h"

typedef struct ebpfMonPackets ebpfMonPackets;

typedef struct {
    uint64_t seen;       /* packets that the filter looked at */
    uint64_t passed;     /* … and passed to us */
    uint64_t dropped;    /* of those, lost because the ring was full */
    uint64_t foreign;    /* connections found to be neither CA nor PVA */
    uint64_t ns;         /* time spent in the filter, if the kernel counts it (kernel.bpf_stats_enabled), else 0 */
    uint64_t runs;       /* … in so many calls: a packet socket's filter runs twice a packet on lo, though it has one look */
} ebpfMonPacketsStats;

#define EBPFMON_PACKETS_RING (8u << 20)

/* The network namespace of process "pid", 0: our own. "ringBytes" is rounded up to a power of two; 0:
 * EBPFMON_PACKETS_RING. NULL with what is wrong and what to do in "why". The calling thread visits the other namespace
 * and comes back. */
ebpfMonPackets *ebpfMonPacketsOpen(pid_t pid, unsigned ringBytes, char *why, size_t size);
void ebpfMonPacketsClose(ebpfMonPackets *packets);

/* No more packets come. Those that came can still be read. */
void ebpfMonPacketsEnd(ebpfMonPackets *packets);

/* Network devices may have come or gone; "pid": a process of the namespace, 0: our own. Every few seconds. */
void ebpfMonPacketsFollow(ebpfMonPackets *packets, pid_t pid);

int ebpfMonPacketsUseTcx(const ebpfMonPackets *packets); /* nonzero: at lo, which costs each packet little */

uint32_t ebpfMonPacketsNetns(const ebpfMonPackets *packets); /* inode of the namespace */

/* Calls "packet" for each that came: "ip" is the packet from its IPv4 header on, "len" of "wireLen" bytes; "time" ns since
 * 1970. Returns the number; *isWhole: as ebpfMonRingRead has it. */
typedef void (*ebpfMonPacketFn)(void *arg, uint64_t time, const uint8_t *ip, size_t len, size_t wireLen);
unsigned ebpfMonPacketsRead(ebpfMonPackets *packets, ebpfMonPacketFn packet, void *arg, int *isWhole);
ebpfMonRing *ebpfMonPacketsRing(ebpfMonPackets *packets); /* to sleep until packets come */

/* A port of CA or PVA, host byte order, UDP or TCP: all its datagrams pass, and its connections are
 * looked at for longer before they are taken to be foreign. At first those are 5064, 5065, 5075 and 5076. */
void ebpfMonPacketsPort(ebpfMonPackets *packets, uint16_t port, int expected);

/* What the user part found out about a connection (either end first): whether its packets are wanted. */
void ebpfMonPacketsVerdict(ebpfMonPackets *packets, const struct ebpfMonPeer *connection, int wanted);

void ebpfMonPacketsStat(ebpfMonPackets *packets, ebpfMonPacketsStats *stats);

#endif

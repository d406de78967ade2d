/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to messages of Channel Access and pvAccess, of any server. Packets go in, in any order, some
 * perhaps twice; decoded events come out to a sink, in the order of each connection's bytes. Knows neither BPF
 * nor records nor the monitor.
 *
 * One thread at a time may use a wire. Memory is bounded per connection and in total (ebpfMonWireLimits).
 * Addresses and ports are in network byte order, as in struct ebpfMonPeer; times are CLOCK_REALTIME
 * nanoseconds as the packets carry them.
 */
#ifndef EBPFMON_WIRE_H
#define EBPFMON_WIRE_H

#include "wire/wireEvent.h"

/* NULL without memory. A NULL limit or zero member takes the default. */
ebpfMonWire *ebpfMonWireNew(const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg);
void ebpfMonWireFree(ebpfMonWire *wire);

/* One IPv4 packet from its IP header on; "len" bytes of "wireLen" (a snapped packet is a gap behind "len").
 * "netns": inode of its network namespace: loopback connections of two namespaces may have equal addresses. */
void ebpfMonWirePacket(ebpfMonWire *wire, uint64_t time, uint32_t netns, const uint8_t *ip, size_t len, size_t wireLen);

/* Ends connections that are silent, and gives up gaps that nothing has filled. To be called about once a second; with
 * time UINT64_MAX all of them end. */
void ebpfMonWireTick(ebpfMonWire *wire, uint64_t time);

/* When a packet was lost last between the network and here; 0: never. As long as nothing says that (UINT64_MAX), any may have
 * been lost. What is missing although none was lost, the network has lost: then its sender will send it again. */
void ebpfMonWireSetLossAt(ebpfMonWire *wire, uint64_t time);

/* Names channel "sid" of a circuit; the name comes from elsewhere. Later events carry it. 0, or -1: no such circuit. */
int ebpfMonWireName(ebpfMonWire *wire, uint64_t circuit, uint32_t sid, const char *name);

const ebpfMonWireStats *ebpfMonWireStat(const ebpfMonWire *wire);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to what was said: Channel Access and pvAccess as they are spoken on the wire, whoever the
 * server is. Packets go in, in any order and twice if need be; decoded events come out to a sink, in the
 * order of each connection's bytes. Knows neither BPF nor records nor the monitor.
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
 * "netns": inode of its network namespace, which tells equal loopback connections apart. */
void ebpfMonWirePacket(ebpfMonWire *wire, uint64_t time, uint32_t netns, const uint8_t *ip, size_t len, size_t wireLen);

/* Which connections have ended or are silent, which gaps will not be filled any more: once in a second or so,
 * and with time UINT64_MAX for all. */
void ebpfMonWireTick(ebpfMonWire *wire, uint64_t time);

/* A name that something else knows: for channel "sid" of a circuit. Later events carry it. 0, or -1: no such circuit. */
int ebpfMonWireName(ebpfMonWire *wire, uint64_t circuit, uint32_t sid, const char *name);

const ebpfMonWireStats *ebpfMonWireStat(const ebpfMonWire *wire);

#endif

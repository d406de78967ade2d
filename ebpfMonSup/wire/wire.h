/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes events of Channel Access and pvAccess from packets, of any server. Packets may come in any order, and some of
 * them twice. The events go to a sink, in the order of each connection's bytes. This room knows neither BPF nor records
 * nor the monitor.
 *
 * One thread at a time may use a wire. Its memory is limited, for each connection and in total (ebpfMonWireLimits).
 * Addresses and ports are in network byte order, as in struct ebpfMonPeer. Times are those of the packets: ns of
 * CLOCK_REALTIME.
 */
#ifndef EBPFMON_WIRE_H
#define EBPFMON_WIRE_H

#include "wire/wireEvent.h"

/* Makes a wire. If "limits" is NULL or a member 0, the default applies. NULL: no memory. */
ebpfMonWire *ebpfMonWireNew(const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg);
void ebpfMonWireFree(ebpfMonWire *wire);

/* Who pays for a connection, if there are too many: each has a share. Without it all are one's. */
void ebpfMonWireSetPayer(ebpfMonWire *wire, ebpfMonWireFindPayer find, void *arg);

/* Takes one IP packet from its IP header on: "len" of its "wireLen" bytes. If it was cut, the missing bytes are a
 * gap. "netns": inode of the network namespace in which it was seen. A packet between two namespaces is seen in both:
 * these are two circuits. Connections of two namespaces may also have the same addresses. */
void ebpfMonWirePacket(ebpfMonWire *wire, uint64_t time, uint32_t netns, const uint8_t *ip, size_t len, size_t wireLen);

/* Ends connections that are silent, and gives up gaps that nothing has filled. Call it about once a second. UINT64_MAX:
 * ends all connections. */
void ebpfMonWireTick(ebpfMonWire *wire, uint64_t time);

/* Emits ebpfMonWireStill for each channel of pvAccess that is open, and of which the name is known. */
void ebpfMonWireRemind(ebpfMonWire *wire, uint64_t time);

/* Tells when a packet was last lost between the network and this function; 0: never. Before the first call, or with
 * UINT64_MAX, any packet may have been lost. If bytes are missing although no packet was lost, the network has lost
 * them; then their sender will send them again. */
void ebpfMonWireSetLossAt(ebpfMonWire *wire, uint64_t time);

/* The counts since the wire was made; valid as long as the wire. */
const ebpfMonWireStats *ebpfMonWireStat(const ebpfMonWire *wire);

#endif

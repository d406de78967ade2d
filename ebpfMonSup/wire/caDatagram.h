/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel Access without a connection: searches, their answers, and beacons. */
#ifndef EBPFMON_CADATAGRAM_H
#define EBPFMON_CADATAGRAM_H

#include "wire/protocol.h"

/* The server that a search reply names: an address of all ones is the one that it came from. */
void ebpfMonCaServer(struct ebpfMonPeer *peer, uint32_t addr, unsigned port);
void ebpfMonCaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p,
    size_t len);

#endif

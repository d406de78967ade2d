/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel Access in datagrams: searches, their answers, and beacons. */
#ifndef EBPFMON_CADATAGRAM_H
#define EBPFMON_CADATAGRAM_H

#include "wire/protocol.h"

/* Sets the server in "peer" from a search reply. An address of all ones means the sender of the reply; then the address
 * in "peer" stays. */
void ebpfMonCaServer(struct ebpfMonPeer *peer, uint32_t addr, unsigned port);
/* Emits the searches, answers and beacons of a datagram. "from_to": see ebpfMonProtocol.datagram. */
void ebpfMonCaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to, const uint8_t *p,
    size_t len);

#endif

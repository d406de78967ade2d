/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches, answers and beacons of pvAccess, in datagrams and in messages of a connection. */
#ifndef EBPFMON_PVADATAGRAM_H
#define EBPFMON_PVADATAGRAM_H

#include "wire/protocol.h"
#include "wire/pvaBuf.h"

/* Emits the searches, answers and beacons of a datagram. "from_to": see ebpfMonProtocol.datagram. */
void ebpfMonPvaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to,
    const uint8_t *p, size_t len);

/* Searches and answers, which also come over TCP. "buf" is the message after its header; "emit" gets an event for each
 * name or number. */
typedef void (*pvaEmitter)(void *arg, ebpfMonWireEvent *event);
void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);
void ebpfMonPvaFoundMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);

#endif

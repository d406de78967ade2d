/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches, answers and beacons of PVA: in datagrams, and as messages of a connection. */
#ifndef EBPFMON_PVADATAGRAM_H
#define EBPFMON_PVADATAGRAM_H

#include "wire/protocol.h"
#include "wire/pvaBuf.h"

void ebpfMonPvaDatagram(ebpfMonWire *wire, uint64_t time, const struct ebpfMonPeer *from_to,
    const uint8_t *p, size_t len);

/* Search and answer; they go by TCP too. "emit" gets each name or number. */
typedef void (*pvaEmitter)(void *arg, ebpfMonWireEvent *event);
void ebpfMonPvaSearchMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);
void ebpfMonPvaFoundMessage(pvaBuf *buf, const struct ebpfMonPeer *from_to, pvaEmitter emit, void *arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that the wire alone told of, as people want to read them. Wire thread only. */
#ifndef EBPFMON_PACKETPUTS_H
#define EBPFMON_PACKETPUTS_H

#include "model/put.h"
#include "put/putJoin.h"

/* What stands in a PV of a server that is no watched IOC, as far as somebody read it. */
void ebpfMonPacketPutsNoteValue(const ebpfMonWireEvent *event);

/* What it was before this put, which takes its place. */
void ebpfMonPacketPutsTakeOld(const ebpfMonWireEvent *event, ebpfMonOldValue *old);

/* The put that this replies to did not take its place after all. */
void ebpfMonPacketPutsRestore(const ebpfMonWireEvent *reply, const ebpfMonOldValue *old);

/* A put to a server that is no watched IOC: a CA link of one that is may have sent it. "at": monotonic ns. */
void ebpfMonPacketPutsNoteSent(const ebpfMonWireEvent *event, uint64_t at);

/* "server": what to call it. "missed": the inside may have made it unseen. */
void ebpfMonPacketPutsPublish(const ebpfMonPacketPut *entry, const char *server, int missed);

#endif

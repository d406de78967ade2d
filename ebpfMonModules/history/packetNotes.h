/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of a packet, as lines of text: the IOC and the client of its connection, and each message that ends in
 * it, with its PV. No values. Packet thread only; the caller holds no lock, because /proc is read.
 */
#ifndef EBPFMON_PACKETNOTES_H
#define EBPFMON_PACKETNOTES_H

#include "put/putRoom.h"
#include "wire/wireEvent.h"

/* Begins the line with the trace of a put (historyStore.h), which follows that of the put. No other line does. */
#define EBPFMON_PACKET_TRACE "trace "

typedef struct ebpfMonPacketNotes ebpfMonPacketNotes;

/* The room stays the caller's; it may be filled later. NULL without memory. Never freed. */
ebpfMonPacketNotes *ebpfMonPacketNotesNew(const ebpfMonPutRoom *put);

void ebpfMonPacketNotesAdd(ebpfMonPacketNotes *notes, const ebpfMonWireEvent *event);

/* The lines of all events since the last call; valid until the next Add. */
const char *ebpfMonPacketNotesTake(ebpfMonPacketNotes *notes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes notes of uses from the places where they are seen: puts, packets, and the lists of clients. No state; any
 * thread, without a lock. If notes are not wanted, these functions do nothing. */
#ifndef EBPFMON_USES_H
#define EBPFMON_USES_H

#include "clients/clients.h"
#include "uses/useNotes.h"

/* Notes a finished put, if it was made or may have been made. */
void ebpfMonUseSourcesAddPut(ebpfMonUseNotes *notes, const ebpfMonPut *put);

/* Notes a read or a subscription that was seen in a packet. "server": the name of the server. If the channel was
 * opened before the monitor read packets, the event has no name; then the name is looked up in the table, by "iocId"
 * (0: not possible). A gateway's uses are those of its clients ("packetClients"; NULL: there are none). */
void ebpfMonUseSourcesAddPacket(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPutClients *clients,
                                ebpfMonPacketClients *packetClients, const ebpfMonWireEvent *ev, uint32_t iocId,
                                const char *server);

/* Notes all channels and subscriptions of the last look. Takes the lock of the table. */
void ebpfMonUseSourcesAddLook(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPacketClients *packetClients);

#endif

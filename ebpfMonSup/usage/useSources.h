/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses from where they are seen: puts, packets, and the lists of clients. No state; any thread. */
#ifndef EBPFMON_USESOURCES_H
#define EBPFMON_USESOURCES_H

#include "model/put.h"
#include "usage/clientTable.h"
#include "usage/useNotes.h"
#include "wire/wireEvent.h"

/* A put that is finished. */
void ebpfMonUseSourcesAddPut(ebpfMonUseNotes *notes, const ebpfMonPut *put);

/* A read or a subscription in packets, of a server with this name. A channel that was opened before packets were read has
 * no name there: the table may have it ("iocId" not 0). */
void ebpfMonUseSourcesAddPacket(ebpfMonUseNotes *notes, ebpfMonClientTable *table, ebpfMonPutClients *clients,
                                const ebpfMonWireEvent *ev, uint32_t iocId, const char *server);

/* All channels that were seen at the last look. It takes the table's lock. */
void ebpfMonUseSourcesAddLook(ebpfMonUseNotes *notes, ebpfMonClientTable *table);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps who used which PV last in a file, if one is configured (ebpfMonUsage). Any thread may call these functions,
 * except New, Start and Stop, which belong to the thread that starts the monitor.
 */
#ifndef EBPFMON_USES_H
#define EBPFMON_USES_H

#include "clients/clients.h"
#include "common/textReport.h"
#include "uses/useKeeper.h"
#include "uses/useNotes.h"

/* --- where uses are seen ---
 *
 * Makes notes of uses from the places where they are seen: puts, packets, and the lists of clients. No state; any
 * thread, without a lock. If notes are not wanted, these functions do nothing.
 */

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

/* --- the room --- */

/* --- the module --- */

typedef struct ebpfMonUses ebpfMonUses;

ebpfMonUses *ebpfMonUsesNew(const ebpfMonModule *module); /* NULL without memory */

/* Read them under ebpfMonModuleLock. */
const ebpfMonUsageValues *ebpfMonUsesGetValues(const ebpfMonUses *uses);

/* As ebpfMonUsageConfSet. Only before the start. */
int ebpfMonUsesConfigure(ebpfMonUses *uses, const char *file, int megabytes, char *why, size_t size);

/* As start, stop and finished of ebpfMonModule. */
int ebpfMonUsesStart(void *uses, const ebpfMonModuleCore *core);
int ebpfMonUsesStop(void *uses, double seconds); /* the time is that of the keeper */
void ebpfMonUsesAddPut(void *uses, const struct ebpfMonPut *put);

/* Adds to the report the records that match and that nobody used for so many days. 0, or -1: "why" says what is
 * wrong. It may take some seconds. Only after the start. */
int ebpfMonUsesAddUnused(ebpfMonUses *uses, ebpfMonTextReport *report, double days, const char *recordPattern,
                         char *why, size_t size);

#endif

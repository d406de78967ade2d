/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The newest rows in a ring in memory, each put by itself, and the newest packets in another one. When the rules do
 * not expect a put, when an IOC ends or stands still, when a thread hangs, when a scan takes more than twice its
 * period, or when somebody requests it (also by SIGUSR1), they are written to a file, a tar: a history of its own,
 * with the IOCs of that moment and their inventories, pages about it, and the packets. Some seconds are waited for
 * what follows. Files are made once a minute at most, unless requested. The newest 20 are kept, and on the disk no
 * more than 16 times the memory. The thread that writes the history; Request: any thread.
 */
#ifndef EBPFMON_HISTORYFREEZER_H
#define EBPFMON_HISTORYFREEZER_H

#include "common/worker.h"
#include "history/historyPackets.h"
#include "history/historyStore.h"

#define EBPFMON_HISTORY_RING_MEGABYTES 64

typedef struct ebpfMonHistoryFreezer ebpfMonHistoryFreezer;

/* megabytes: 0 for the default. NULL: "why" says what is wrong. Never freed. */
ebpfMonHistoryFreezer *ebpfMonHistoryFreezerNew(const char *folder, int megabytes, char *why, size_t size);

/* Keeps the newest packets, too, in a quarter of the memory; before the thread runs. "payload": bytes of each. NULL
 * without memory. */
ebpfMonHistoryPackets *ebpfMonHistoryFreezerKeepPackets(ebpfMonHistoryFreezer *freezer, size_t payload);

/* Writes also the inventory of the IOCs; before the thread runs. */
void ebpfMonHistoryFreezerKeepInventory(ebpfMonHistoryFreezer *freezer, struct ebpfMonTargets *targets);

/* Adds a row, as it lay in the queue, and as it is. */
void ebpfMonHistoryFreezerAdd(ebpfMonHistoryFreezer *freezer, const uint8_t *queued, size_t length,
                              const ebpfMonHistoryRow *row);

void ebpfMonHistoryFreezerRequest(ebpfMonHistoryFreezer *freezer, const char *note);

/* Writes a file if it is due. Nonzero: "said" gets which, or why it could not be written. */
int ebpfMonHistoryFreezerWork(ebpfMonHistoryFreezer *freezer, ebpfMonWorker *worker, char *said, size_t size);

#endif

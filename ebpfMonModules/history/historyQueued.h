/* SPDX-License-Identifier: BSD-3-Clause */
/* A row as it lies in the queue, and in the ring of the newest rows: a head, and its texts. Any thread. */
#ifndef EBPFMON_HISTORYQUEUED_H
#define EBPFMON_HISTORYQUEUED_H

#include "history/historyStore.h"

#define EBPFMON_HISTORY_QUEUED 8192 /* bytes of a row; texts for which there is no room are cut */

/* "text": kind, and the texts of a row (ebpfMonHistoryRowList); NULL: none. Returns the length. */
size_t ebpfMonHistoryQueuedPack(uint64_t time, int automatic, const char *const text[1 + EBPFMON_HISTORY_TEXTS],
                                uint8_t buf[EBPFMON_HISTORY_QUEUED]);

/* The texts of "row" lie in "at". */
void ebpfMonHistoryQueuedUnpack(const uint8_t *at, ebpfMonHistoryRow *row);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the inventory as a file of JSON lines: for each IOC one line with its environment, then one line for each
 * record. No state. */
#ifndef EBPFMON_INVENTORYFILE_H
#define EBPFMON_INVENTORYFILE_H

#include "common/worker.h"
#include "watch/target.h"

typedef struct {
    unsigned iocs, records; /* written */
    unsigned failed;        /* IOCs that are not in the file, because they could not be read */
} ebpfMonInventoryCount;

/* Writes the IOCs with names that match "pattern" (epicsStrGlobMatch). The file "path" is replaced when the new one is
 * complete. 0, or -1: the old file is still there, and "why" says what is wrong. "why" also names an IOC that could
 * not be read, and the reason. Takes some seconds for 100,000 records; any thread, without a lock. "worker": the
 * calling thread, for signs of progress; may be NULL. */
int ebpfMonInventoryFileWrite(ebpfMonTargets *targets, const char *path, const char *pattern, ebpfMonWorker *worker,
                              ebpfMonInventoryCount *count, char *why, size_t size);

#endif

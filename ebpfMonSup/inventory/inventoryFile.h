/* SPDX-License-Identifier: BSD-3-Clause */
/* The inventory as a file of JSON lines: for each IOC a line with its environment, then a line for each record. No state. */
#ifndef EBPFMON_INVENTORYFILE_H
#define EBPFMON_INVENTORYFILE_H

#include "common/worker.h"
#include "watch/target.h"

typedef struct {
    unsigned iocs, records; /* that were written */
    unsigned failed;        /* IOCs that could not be read; they are not in the file */
} ebpfMonInventoryCount;

/* Writes those IOCs whose name matches "pattern" (epicsStrGlobMatch), beside "path" at first: nobody sees half a file. 0; or
 * -1 with "why": then the file before is still there. If an IOC could not be read, "why" says which and why, too. Takes some
 * seconds for 100,000 records. "worker": the thread that calls; NULL: it is none. */
int ebpfMonInventoryFileWrite(ebpfMonTargets *targets, const char *path, const char *pattern, ebpfMonWorker *worker,
                              ebpfMonInventoryCount *count, char *why, size_t size);

#endif

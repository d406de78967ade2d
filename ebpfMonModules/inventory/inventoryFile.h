/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the inventory as a file of JSON lines: for each IOC one line with its environment, then one line for each
 * record. No state. */
#ifndef EBPFMON_INVENTORYFILE_H
#define EBPFMON_INVENTORYFILE_H

#include "common/textReport.h"
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

/* --- keeping a file ---
 *
 * Keeps the inventory of all watched IOCs in a file. The file is written again when an IOC starts, ends or has another
 * database, but not more often than configured. The older files stay as FILE.1, FILE.2 and so on, so an operator can
 * compare them.
 *
 * The file has what the IOCs have at the moment of writing. A put to a field (a limit, a link) does not cause a new
 * file.
 *
 * The keeper has a thread of low priority, which reads the memory of IOCs for seconds, and may wait for a disk. The
 * thread sleeps until IOCs change. There is no thread before the first configuration with a file.
 */

typedef struct {
    char     file[256];  /* empty: no file is kept */
    unsigned seconds;    /* s; the shortest time between two writes */
    unsigned keep;       /* number of older files that stay; FILE.1 is the newest of them */
} ebpfMonInventoryConf;

typedef struct ebpfMonInventoryKeeper ebpfMonInventoryKeeper;

/* The keeper is never freed. NULL without memory. */
ebpfMonInventoryKeeper *ebpfMonInventoryKeeperNew(void);

/* Call this when the monitor runs: starts the thread. 0, or -1: the thread cannot be started. "targets" must stay as
 * long as the process. */
int ebpfMonInventoryKeeperBegin(ebpfMonInventoryKeeper *keeper, ebpfMonTargets *targets);

/* Sets the configuration, which is copied. Any thread, at any time. */
void ebpfMonInventoryKeeperConfigure(ebpfMonInventoryKeeper *keeper, const ebpfMonInventoryConf *conf);

/* Call this when IOCs started or ended, or their level was changed. Any thread. */
void ebpfMonInventoryKeeperWake(ebpfMonInventoryKeeper *keeper);

/* Adds the name of the file and the result of the last writing. Any thread. */
void ebpfMonInventoryKeeperReport(ebpfMonInventoryKeeper *keeper, ebpfMonTextReport *report);

/* Ends the thread, after "seconds" at the latest. 0, or -1: it still runs. */
int ebpfMonInventoryKeeperStop(ebpfMonInventoryKeeper *keeper, double seconds);

#endif

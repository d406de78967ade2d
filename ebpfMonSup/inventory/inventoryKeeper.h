/* SPDX-License-Identifier: BSD-3-Clause */
/*
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
#ifndef EBPFMON_INVENTORYKEEPER_H
#define EBPFMON_INVENTORYKEEPER_H

#include "common/textReport.h"
#include "model/ops.h"
#include "watch/target.h"

typedef struct ebpfMonInventoryKeeper ebpfMonInventoryKeeper;

/* The keeper is never freed, and "targets" must stay as long. NULL without memory. */
ebpfMonInventoryKeeper *ebpfMonInventoryKeeperNew(ebpfMonTargets *targets);

/* Call this when the monitor runs: starts the thread if a file is configured. 0, or -1: the thread cannot be
 * started. */
int ebpfMonInventoryKeeperBegin(ebpfMonInventoryKeeper *keeper);

/* Sets the configuration, which is copied. Starts the thread if it is needed. 0, or -1: the thread cannot be
 * started. Any thread, at any time. */
int ebpfMonInventoryKeeperConfigure(ebpfMonInventoryKeeper *keeper, const ebpfMonInventoryConf *conf);

/* Call this when IOCs started or ended, or their level was changed. Any thread. */
void ebpfMonInventoryKeeperWake(ebpfMonInventoryKeeper *keeper);

/* Adds the name of the file and the result of the last writing. Any thread. */
void ebpfMonInventoryKeeperReport(ebpfMonInventoryKeeper *keeper, ebpfMonTextReport *report);

/* Ends the thread. 0, or -1: it still runs. */
int ebpfMonInventoryKeeperStop(ebpfMonInventoryKeeper *keeper);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps the inventory of all watched IOCs in a file: written anew when an IOC appears, has another database or goes, but no
 * more often than configured. The files before it stay as FILE.1, FILE.2 and so on, so that two can be compared.
 *
 * What is written is what the IOCs have at that moment. A put to a field (a limit, a link) is no reason to write.
 *
 * A thread of its own, at low priority: it reads the memory of IOCs for seconds, and may wait for a disk. It sleeps until
 * IOCs change. Off until Configure says otherwise.
 */
#ifndef EBPFMON_INVENTORYKEEPER_H
#define EBPFMON_INVENTORYKEEPER_H

#include "common/textReport.h"
#include "model/inventoryConf.h"
#include "watch/target.h"

typedef struct ebpfMonInventoryKeeper ebpfMonInventoryKeeper;

/* It stays for the life of the process, as "targets". NULL without memory. */
ebpfMonInventoryKeeper *ebpfMonInventoryKeeperNew(ebpfMonTargets *targets);

/* The monitor runs: what was configured before begins. 0, or -1 without memory. */
int ebpfMonInventoryKeeperBegin(ebpfMonInventoryKeeper *keeper);

/* Any thread, at any time. The thread starts with the first configuration that has a file. 0, or -1 without memory. */
int ebpfMonInventoryKeeperConfigure(ebpfMonInventoryKeeper *keeper, const ebpfMonInventoryConf *conf);

/* IOCs came, went, or are watched otherwise. Any thread. */
void ebpfMonInventoryKeeperWake(ebpfMonInventoryKeeper *keeper);

/* Adds where it is kept, and what became of the last writing. Any thread. */
void ebpfMonInventoryKeeperReport(ebpfMonInventoryKeeper *keeper, ebpfMonTextReport *report);

/* Ends the thread. 0, or -1: it still runs. */
int ebpfMonInventoryKeeperStop(ebpfMonInventoryKeeper *keeper);

#endif

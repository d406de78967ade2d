/* SPDX-License-Identifier: BSD-3-Clause */
/* What the monitor does with inventories: it announces them, and keeps them in a file. Any thread. */
#ifndef EBPFMON_INVENTORIES_H
#define EBPFMON_INVENTORIES_H

#include "inventory/inventoryKeeper.h"
#include "inventory/recSync.h"
#include "model/opStatus.h"

typedef struct {
    ebpfMonTargets         *targets;
    ebpfMonRecSync         *recSync;
    ebpfMonInventoryKeeper *keeper;
    ebpfMonOpStatus (*getStatus)(void *arg); /* done while the monitor runs; set by the root, as the next */
    void                   *statusArg;
} ebpfMonInventories;

/* It stays for the life of the process. 0, or -1 without memory. */
int ebpfMonInventoriesMake(ebpfMonInventories *inventories, ebpfMonTargets *targets);

/* The monitor runs: what was configured before begins. */
void ebpfMonInventoriesBegin(ebpfMonInventories *inventories);
void ebpfMonInventoriesWake(ebpfMonInventories *inventories); /* IOCs came, went, or are watched otherwise */
void ebpfMonInventoriesStop(ebpfMonInventories *inventories); /* its threads use no table of the kernel part */

#endif

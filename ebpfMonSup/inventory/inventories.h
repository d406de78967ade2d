/* SPDX-License-Identifier: BSD-3-Clause */
/* The two users of inventories: one sends them to a RecSync server, the other keeps them in a file. Any thread. */
#ifndef EBPFMON_INVENTORIES_H
#define EBPFMON_INVENTORIES_H

#include "common/textReport.h"
#include "inventory/inventoryFile.h"
#include "inventory/recSync.h"
#include "model/ops.h"
#include "watch/target.h"

typedef struct {
    ebpfMonTargets         *targets;
    ebpfMonRecSync         *recSync;
    ebpfMonInventoryKeeper *keeper;
    ebpfMonOpStatus (*getStatus)(void *arg); /* ebpfMonOpDone while the monitor runs; the root sets this member */
    void                   *statusArg;       /* argument of getStatus; the root sets it */
} ebpfMonInventories;

/* Makes both; they are never freed. 0, or -1 without memory. */
int ebpfMonInventoriesMake(ebpfMonInventories *inventories, ebpfMonTargets *targets,
                           ebpfMonPacketServers *packetServers);

/* Call this when the monitor runs: starts the threads that are configured. If it cannot, the error log says so. */
void ebpfMonInventoriesBegin(ebpfMonInventories *inventories);
/* Call this when IOCs started or ended, or their level was changed. */
void ebpfMonInventoriesWake(ebpfMonInventories *inventories);
/* Ends the threads. They use no table of the kernel part, so a thread that does not end does no harm. */
void ebpfMonInventoriesStop(ebpfMonInventories *inventories);

/* --- operations ---
 *
 * The operations of model/ops.h, which the shell commands call.
 */

/* Sets *ops. It keeps the pointer "inventories". */
void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops);

#endif

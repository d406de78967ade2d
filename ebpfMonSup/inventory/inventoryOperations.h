/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the operations of model/inventoryOps.h, which the shell commands call. */
#ifndef EBPFMON_INVENTORYOPERATIONS_H
#define EBPFMON_INVENTORYOPERATIONS_H

#include "inventory/inventories.h"
#include "model/opStatus.h"

/* Call this once, when the monitor registers itself. getStatus() returns ebpfMonOpDone while the monitor runs. */
void ebpfMonInventoryOperationsRegister(ebpfMonInventories *inventories, ebpfMonOpStatus (*getStatus)(void));

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the operations of model/inventoryOps.h, which the shell commands call. */
#ifndef EBPFMON_INVENTORYOPERATIONS_H
#define EBPFMON_INVENTORYOPERATIONS_H

#include "inventory/inventories.h"
#include "model/inventoryOps.h"

void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in model/inventoryOps.h. */
#ifndef EBPFMON_INVENTORYOPERATIONS_H
#define EBPFMON_INVENTORYOPERATIONS_H

#include "inventory/inventories.h"
#include "model/inventoryOps.h"

void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops);

#endif

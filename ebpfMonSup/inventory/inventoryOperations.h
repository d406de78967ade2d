/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of model/inventoryOps.h, which the shell commands call. */
#ifndef EBPFMON_INVENTORYOPERATIONS_H
#define EBPFMON_INVENTORYOPERATIONS_H

#include "inventory/inventories.h"
#include "model/inventoryOps.h"

/* Sets *ops. It keeps the pointer "inventories". */
void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops);

#endif

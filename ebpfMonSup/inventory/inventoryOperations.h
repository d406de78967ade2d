/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of model/ops.h, which the shell commands call. */
#ifndef EBPFMON_INVENTORYOPERATIONS_H
#define EBPFMON_INVENTORYOPERATIONS_H

#include "inventory/inventories.h"
#include "model/ops.h"

/* Sets *ops. It keeps the pointer "inventories". */
void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops);

#endif

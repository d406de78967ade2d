/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in model/inventoryOps.h. */
#ifndef EBPFMON_INVENTORYOPERATIONS_H
#define EBPFMON_INVENTORYOPERATIONS_H

#include "inventory/inventories.h"
#include "model/opStatus.h"

/* Once, when the monitor registers itself. "getStatus": done while the monitor runs. */
void ebpfMonInventoryOperationsRegister(ebpfMonInventories *inventories, ebpfMonOpStatus (*getStatus)(void));

#endif

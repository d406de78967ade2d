/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists the IOCs that have an inventory to read now. No state. */
#ifndef EBPFMON_IOCLIST_H
#define EBPFMON_IOCLIST_H

#include "inventory/iocInventory.h"
#include "watch/target.h"

/* Lists the IOCs that the filter selects and that have completed iocInit. The caller releases each catalogue and
 * frees the list. NULL: there is none, or no memory. Any thread; takes the targets lock. */
ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, unsigned *count);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The IOCs whose inventory can be read now. No state. */
#ifndef EBPFMON_IOCLIST_H
#define EBPFMON_IOCLIST_H

#include "inventory/iocInventory.h"
#include "watch/target.h"

/* Those that the filter selects and that are through iocInit: malloc'ed for the caller, who releases each catalogue; NULL: none.
 * Any thread; it takes the lock of the targets. */
ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, unsigned *count);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists the IOCs that have an inventory to read now. No state. */
#ifndef EBPFMON_IOCLIST_H
#define EBPFMON_IOCLIST_H

#include "inventory/iocInventory.h"
#include "model/packetServers.h"
#include "watch/target.h"

/* Lists the IOCs that the filter selects and that have completed iocInit, and behind them the servers that are not
 * EPICS Base; "packetServers" NULL: without these. The caller releases each catalogue and frees the list. NULL: there
 * is none, or no memory. Any thread; takes the targets lock. */
ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, ebpfMonPacketServers *packetServers, unsigned *count);

#endif

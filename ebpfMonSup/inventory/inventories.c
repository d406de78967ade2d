/* SPDX-License-Identifier: BSD-3-Clause */
#include <errlog.h>

#include "inventory/inventories.h"

int ebpfMonInventoriesMake(ebpfMonInventories *i, ebpfMonTargets *targets, ebpfMonPacketServers *packetServers)
{
    i->targets = targets;
    i->recSync = ebpfMonRecSyncNew(targets, packetServers);
    i->keeper = ebpfMonInventoryKeeperNew(targets);
    return i->recSync && i->keeper ? 0 : -1;
}

void ebpfMonInventoriesBegin(ebpfMonInventories *i)
{
    if (ebpfMonRecSyncBegin(i->recSync) | ebpfMonInventoryKeeperBegin(i->keeper))
        errlogSevPrintf(errlogMajor, "ebpfMon: cannot start a thread for inventories: raise the limits of this process "
                        "(ulimit -u, TasksMax), then call ebpfMonRecSync or ebpfMonInventoryKeep again\n");
}

void ebpfMonInventoriesWake(ebpfMonInventories *i)
{
    ebpfMonRecSyncWake(i->recSync);
    ebpfMonInventoryKeeperWake(i->keeper);
}

void ebpfMonInventoriesStop(ebpfMonInventories *i)
{
    ebpfMonRecSyncStop(i->recSync);
    ebpfMonInventoryKeeperStop(i->keeper);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "inventory/inventoryOperations.h"
#include "inventory/inventoryReport.h"

static ebpfMonOpStatus setRecSync(void *arg, const ebpfMonRecSyncConf *conf)
{
    ebpfMonInventories *inventories = arg;

    return ebpfMonRecSyncConfigure(inventories->recSync, conf) ? ebpfMonOpStartFailed : ebpfMonOpDone;
}

static ebpfMonOpStatus keepInventory(void *arg, const ebpfMonInventoryConf *conf)
{
    ebpfMonInventories *inventories = arg;

    return ebpfMonInventoryKeeperConfigure(inventories->keeper, conf) ? ebpfMonOpStartFailed : ebpfMonOpDone;
}

static ebpfMonOpStatus addKept(void *arg, ebpfMonTextReport *report)
{
    ebpfMonInventories *inventories = arg;
    ebpfMonOpStatus status = inventories->getStatus(inventories->statusArg);

    if (status == ebpfMonOpDone)
        ebpfMonInventoryKeeperReport(inventories->keeper, report);
    return status;
}

static ebpfMonOpStatus writeInventory(void *arg, ebpfMonTextReport *report, const char *path, const char *iocPattern,
                                 char *why, size_t size)
{
    ebpfMonInventories *inventories = arg;
    ebpfMonOpStatus status = inventories->getStatus(inventories->statusArg);

    if (status == ebpfMonOpDone &&
        ebpfMonInventoryReportWrite(report, inventories->targets, path, iocPattern, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus compareFiles(void *arg, ebpfMonTextReport *report, const char *before, const char *after,
                                    const char *iocPattern, char *why, size_t size)
{
    (void)arg;
    if (ebpfMonInventoryReportCompare(report, before, after, iocPattern, why, size))
        return ebpfMonOpRefused;
    return ebpfMonOpDone;
}

void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops)
{
    *ops = (ebpfMonInventoryOps){ inventories, setRecSync, keepInventory, addKept, writeInventory, compareFiles };
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "inventory/inventoryOperations.h"
#include "inventory/inventoryReport.h"
#include "model/inventoryOps.h"

/* The inventories of the one monitor of this process. They are static because iocsh passes no context. */
static ebpfMonInventories *inventories;
static ebpfMonOpStatus (*getStatus)(void);

static ebpfMonOpStatus setRecSync(const ebpfMonRecSyncConf *conf)
{
    return ebpfMonRecSyncConfigure(inventories->recSync, conf) ? ebpfMonOpStartFailed : ebpfMonOpDone;
}

static ebpfMonOpStatus setKeeper(const ebpfMonInventoryConf *conf)
{
    return ebpfMonInventoryKeeperConfigure(inventories->keeper, conf) ? ebpfMonOpStartFailed : ebpfMonOpDone;
}

static ebpfMonOpStatus reportKeeper(ebpfMonTextReport *report)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone)
        ebpfMonInventoryKeeperReport(inventories->keeper, report);
    return status;
}

static ebpfMonOpStatus writeFile(ebpfMonTextReport *report, const char *path, const char *iocPattern, char *why,
                                 size_t size)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone &&
        ebpfMonInventoryReportWrite(report, inventories->targets, path, iocPattern, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus compareFiles(ebpfMonTextReport *report, const char *before, const char *after, char *why,
                                    size_t size)
{
    return ebpfMonInventoryReportCompare(report, before, after, why, size) ? ebpfMonOpRefused : ebpfMonOpDone;
}

void ebpfMonInventoryOperationsRegister(ebpfMonInventories *i, ebpfMonOpStatus (*status)(void))
{
    static const ebpfMonInventoryOps ops = { setRecSync, setKeeper, reportKeeper, writeFile, compareFiles };

    inventories = i;
    getStatus = status;
    ebpfMonInventoryOpsRegister(&ops);
}

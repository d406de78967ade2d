/* SPDX-License-Identifier: BSD-3-Clause */
#include <errlog.h>
#include <stdio.h>
#include "inventory/inventories.h"
#include "inventory/inventoryDiff.h"
#include "inventory/inventoryFile.h"

/* --- reports --- */

/* Does what the commands about inventories say, and writes their reports. No state; any thread, without a lock. */

/* Writes the inventory of the IOCs that match to a file, and adds the numbers of IOCs and records. 0, or -1: "why"
 * says what is wrong. */
static int reportInventoryWrite(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *path,
                                const char *iocPattern, char *why, size_t size)
{
    ebpfMonInventoryCount count;
    char reason[240];

    if (ebpfMonInventoryFileWrite(targets, path, iocPattern, NULL, &count, reason, sizeof(reason))) {
        snprintf(why, size, "%s is not written: %s. Give a file in a folder that exists and that the monitor may write",
                 path, reason);
        return -1;
    }
    ebpfMonTextReportAdd(report, "%s: %u IOCs, %u records\n", path, count.iocs, count.records);
    if (count.failed)
        ebpfMonTextReportAdd(report, "%u IOCs could not be read. %s\n", count.failed, reason);
    return 0;
}

/* Adds the differences between two such files, of the IOCs that match. 0, or -1: "why" says what is wrong. */
static int reportInventoryCompare(ebpfMonTextReport *report, const char *before, const char *after,
                                  const char *iocPattern, char *why, size_t size)
{
    ebpfMonInventoryDifference d;

    if (ebpfMonInventoryDiffFiles(before, after, iocPattern, report, &d, why, size))
        return -1;
    if (d.iocs.added || d.iocs.removed || d.iocs.changed)
        ebpfMonTextReportAdd(report, "%u IOCs added, %u removed, %u changed, %u the same\n", d.iocs.added,
                             d.iocs.removed, d.iocs.changed, d.iocs.same);
    ebpfMonTextReportAdd(report, "%u records added, %u removed, %u changed, %u the same\n", d.records.added,
                         d.records.removed, d.records.changed, d.records.same);
    if (d.odd)
        ebpfMonTextReportAdd(report, "%u lines do not belong to an inventory: are these the right files?\n", d.odd);
    return 0;
}

/* --- both users --- */

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

/* --- operations --- */

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
        reportInventoryWrite(report, inventories->targets, path, iocPattern, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus compareFiles(void *arg, ebpfMonTextReport *report, const char *before, const char *after,
                                    const char *iocPattern, char *why, size_t size)
{
    (void)arg;
    if (reportInventoryCompare(report, before, after, iocPattern, why, size))
        return ebpfMonOpRefused;
    return ebpfMonOpDone;
}

void ebpfMonInventoryOperationsFill(ebpfMonInventories *inventories, ebpfMonInventoryOps *ops)
{
    *ops = (ebpfMonInventoryOps){ inventories, setRecSync, keepInventory, addKept, writeInventory, compareFiles };
}

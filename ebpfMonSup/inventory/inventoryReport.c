/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "inventory/inventoryDiff.h"
#include "inventory/inventoryFile.h"
#include "inventory/inventoryReport.h"

int ebpfMonInventoryReportWrite(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *path,
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

int ebpfMonInventoryReportCompare(ebpfMonTextReport *report, const char *before, const char *after,
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

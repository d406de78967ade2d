/* SPDX-License-Identifier: BSD-3-Clause */
#include "inventory/inventoryDiff.h"
#include "inventory/inventoryFile.h"
#include "inventory/inventoryReport.h"

int ebpfMonInventoryReportWrite(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *path,
                                const char *iocPattern, char *why, size_t size)
{
    ebpfMonInventoryCount count;

    if (ebpfMonInventoryFileWrite(targets, path, iocPattern, NULL, &count, why, size))
        return -1;
    ebpfMonTextReportAdd(report, "%s: %u IOCs, %u records\n", path, count.iocs, count.records);
    if (count.failed)
        ebpfMonTextReportAdd(report, "%u IOCs could not be read. %s\n", count.failed, why);
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

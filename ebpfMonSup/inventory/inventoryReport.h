/* SPDX-License-Identifier: BSD-3-Clause */
/* Does what the commands about inventories say, and writes their reports. No state; any thread, without a lock. */
#ifndef EBPFMON_INVENTORYREPORT_H
#define EBPFMON_INVENTORYREPORT_H

#include "common/textReport.h"
#include "watch/target.h"

/* Writes the inventory of the IOCs that match to a file, and adds the numbers of IOCs and records. 0, or -1: "why"
 * says what is wrong. */
int ebpfMonInventoryReportWrite(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *path,
                                const char *iocPattern, char *why, size_t size);

/* Adds the differences between two such files, of the IOCs that match. 0, or -1: "why" says what is wrong. */
int ebpfMonInventoryReportCompare(ebpfMonTextReport *report, const char *before, const char *after,
                                  const char *iocPattern, char *why, size_t size);

#endif

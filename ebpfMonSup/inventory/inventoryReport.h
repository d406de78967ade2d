/* SPDX-License-Identifier: BSD-3-Clause */
/* What the commands about inventories say. No state; any thread. */
#ifndef EBPFMON_INVENTORYREPORT_H
#define EBPFMON_INVENTORYREPORT_H

#include "common/textReport.h"
#include "watch/target.h"

/* Writes the inventory of the IOCs that match to a file, and adds what is in it. 0, or -1: "why". */
int ebpfMonInventoryReportWrite(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *path, const char *iocPattern,
                                char *why, size_t size);

/* Adds what differs between two such files. 0, or -1: "why". */
int ebpfMonInventoryReportCompare(ebpfMonTextReport *report, const char *before, const char *after, char *why, size_t size);

#endif

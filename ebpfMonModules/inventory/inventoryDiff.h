/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares two inventories that inventoryFile.h wrote: which IOCs and records are new, are gone, or have changed. No
 * state; any thread. The texts come from a user and may have any content. */
#ifndef EBPFMON_INVENTORYDIFF_H
#define EBPFMON_INVENTORYDIFF_H

#include <stddef.h>
#include "common/textReport.h"

typedef struct {
    unsigned added, removed, changed, same;
} ebpfMonInventoryDifferenceCount;

typedef struct {
    ebpfMonInventoryDifferenceCount records;
    ebpfMonInventoryDifferenceCount iocs; /* changed: its version, its variables, or it was restarted */
    unsigned odd;  /* lines that belong neither to a record nor to an IOC */
} ebpfMonInventoryDifference;

/* Compares two texts. Only the IOCs whose names match the pattern count. Adds a line for each IOC and record that is
 * new (+) or gone (-), and lines for each that has changed (~). 0, or -1 without memory. */
int ebpfMonInventoryDiffTexts(const char *before, size_t beforeLength, const char *after, size_t afterLength,
                              const char *iocPattern, ebpfMonTextReport *report,
                              ebpfMonInventoryDifference *difference);

/* Compares two files in the same way. 0, or -1: "why" says what is wrong. */
int ebpfMonInventoryDiffFiles(const char *before, const char *after, const char *iocPattern,
                              ebpfMonTextReport *report, ebpfMonInventoryDifference *difference, char *why,
                              size_t size);

#endif

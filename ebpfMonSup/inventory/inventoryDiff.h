/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs between two inventories, as inventoryFile.h writes them: records that came, went, or have other fields. No
 * state. The texts are what a user handed over; nothing of them is believed. */
#ifndef EBPFMON_INVENTORYDIFF_H
#define EBPFMON_INVENTORYDIFF_H

#include <stddef.h>

#include "common/textReport.h"

#define EBPFMON_INVENTORY_BYTES (512u << 20) /* of a file */

typedef struct {
    unsigned added, removed, changed, same;
    unsigned odd;  /* lines that are no record; those of IOCs are not counted */
} ebpfMonInventoryDifference;

/* Compares two texts, and adds a line for each record that came (+) or went (-), and one for each thing that changed. 0, or -1
 * without memory. */
int ebpfMonInventoryDiffTexts(const char *before, size_t beforeLength, const char *after, size_t afterLength,
                              ebpfMonTextReport *report, ebpfMonInventoryDifference *difference);

/* The same with two files. 0, or -1 with "why". */
int ebpfMonInventoryDiffFiles(const char *before, const char *after, ebpfMonTextReport *report,
                              ebpfMonInventoryDifference *difference, char *why, size_t size);

#endif

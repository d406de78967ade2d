/* SPDX-License-Identifier: BSD-3-Clause */
/* The scan lists of an IOC (dbScan.c): which record comes after which. */
#ifndef EBPFMON_SCANLISTS_H
#define EBPFMON_SCANLISTS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* Nonzero: scan lists have the layout that the kernel part expects. Checks some of the records that are in a list. 0
 * also if no record is in a list. */
int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

/* Reads which place each record of a scan list has in it: place[i] of record i, from 0; of other records it stays as it
 * is. "list": address of the scan_list. 0, or -1: the list is changing, or cannot be read. */
int ebpfMonScanListsReadPlaces(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t list, uint32_t *place);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The scan lists of an IOC (dbScan.c). */
#ifndef EBPFMON_SCANLISTS_H
#define EBPFMON_SCANLISTS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* Nonzero: scan lists have the layout that the kernel part expects. Checks some of the records that are in a list. 0
 * also if no record is in a list. */
int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

#endif

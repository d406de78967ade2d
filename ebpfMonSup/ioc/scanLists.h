/* SPDX-License-Identifier: BSD-3-Clause */
/* The scan lists of an IOC (dbScan.c). Any thread. */
#ifndef EBPFMON_SCANLISTS_H
#define EBPFMON_SCANLISTS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* Nonzero: scan lists have the layout that the kernel part expects. Checks some of the records that are in a list. 0
 * also if no record is in a list. */
int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

/* The address of the periodic scan list of this period (s) that has this record; an IOC keeps it until it ends. "spvt":
 * the offset of that field. 0: the record is in no such list now, or the layout is another one. */
uint64_t ebpfMonScanListFind(pid_t pid, uint64_t precord, uint16_t spvt, double period);

/* How many records such a list has to scan now; 0 while the IOC is paused (iocPause). -1: it cannot be read. */
int ebpfMonScanListCount(pid_t pid, uint64_t list);

#endif

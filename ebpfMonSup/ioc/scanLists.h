/* SPDX-License-Identifier: BSD-3-Clause */
/* The scan lists of an IOC (dbScan.c): which record comes after which. */
#ifndef EBPFMON_SCANLISTS_H
#define EBPFMON_SCANLISTS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* Nonzero: the lists lie in memory as the kernel part takes them to lie. Found out at some of the records that are in a
 * list; if none is, it is not known (0). */
int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

#endif

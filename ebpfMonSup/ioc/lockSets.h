/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock sets of an IOC (dbLock.c): which records are locked together. */
#ifndef EBPFMON_LOCKSETS_H
#define EBPFMON_LOCKSETS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* Nonzero: lock records have the layout that the kernel part expects. Checks some of the records; call it when iocInit
 * is done. Nonzero also for an IOC without records. */
int ebpfMonLockSetsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

/* Nonzero: both records are in one lock set now. */
int ebpfMonLockSetsHasBoth(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t a, uint32_t b);

#endif

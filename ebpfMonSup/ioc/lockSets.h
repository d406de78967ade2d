/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock sets of an IOC (dbLock.c): which records are locked together. */
#ifndef EBPFMON_LOCKSETS_H
#define EBPFMON_LOCKSETS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* Nonzero: the lock record of each record lies in memory as the kernel part takes it to lie. Found out at some of the
 * records, once iocInit is done; without records it is taken to be so. */
int ebpfMonLockSetsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* From a record's address to its name. */
#ifndef EBPFMON_RECORDNAME_H
#define EBPFMON_RECORDNAME_H

#include <stddef.h>
#include <stdint.h>
#include "watch/target.h"

/* The name of the record at this address of an IOC's memory. Nonzero: it is known; else "name" is empty. "target" may
 * be NULL. Under the targets lock. */
int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the name of a record by its address. */
#ifndef EBPFMON_RECORDNAME_H
#define EBPFMON_RECORDNAME_H

#include <stddef.h>
#include <stdint.h>
#include "watch/target.h"

/* "precord": the record's address in the memory of the IOC. Nonzero: "name" is set. 0: the catalogue has no such
 * record, or "target" is NULL; "name" is empty. The caller holds the targets lock. */
int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size);

#endif

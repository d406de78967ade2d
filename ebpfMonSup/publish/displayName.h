/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of records in lists. */
#ifndef EBPFMON_DISPLAYNAME_H
#define EBPFMON_DISPLAYNAME_H

#include <stddef.h>
#include <stdint.h>

#include "watch/target.h"

/* Writes the name of a record to "name". If another watched IOC has a record of this name, the name of the IOC follows:
 * RECORD@IOC. A part for which there is no room is cut, and ends with "...". "size": EBPFMON_NAME_SIZE or more. Under
 * the targets lock. */
void ebpfMonDisplayName(ebpfMonTargets *targets, const ebpfMonTarget *t, uint32_t index, char *name, size_t size);

/* Finds the IOC that has the record of this slot; *index gets the place of the record in its catalogue. NULL: there is
 * none. Under the targets lock. */
ebpfMonTarget *ebpfMonDisplayFindSlot(ebpfMonTargets *targets, uint32_t slot, uint32_t *index);

#endif

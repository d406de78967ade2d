/* SPDX-License-Identifier: BSD-3-Clause */
/* How lists name a record. */
#ifndef EBPFMON_DISPLAYNAME_H
#define EBPFMON_DISPLAYNAME_H

#include <stddef.h>
#include <stdint.h>

#include "watch/target.h"

/* Its name; with its IOC where another watched IOC has one of the same name. Under the targets lock. */
void ebpfMonDisplayName(ebpfMonTargets *targets, const ebpfMonTarget *t, uint32_t index, char *name, size_t size);

/* The IOC whose record has this slot, and the record's index; NULL: there is none. Under the targets lock. */
ebpfMonTarget *ebpfMonDisplayFindSlot(ebpfMonTargets *targets, uint32_t slot, uint32_t *index);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* From a number that the other side chose to what we know of it. Memory by ebpfMonCircuitAlloc. */
#ifndef EBPFMON_IDTABLE_H
#define EBPFMON_IDTABLE_H

#include "wire/protocol.h"

typedef struct {
    uint64_t value; /* never 0 */
    uint32_t key;
    uint32_t extra;
} ebpfMonIdEntry;

typedef struct {
    ebpfMonIdEntry *slot;
    unsigned room, used; /* room: a power of two, or 0 */
} ebpfMonIdTable;

/* The entry is valid until the table changes. NULL: none. */
ebpfMonIdEntry *ebpfMonIdFind(const ebpfMonIdTable *table, uint32_t key);
/* Adds or replaces. 0: there are "max" already, or no memory. */
int  ebpfMonIdSet(ebpfMonCircuit *circuit, ebpfMonIdTable *table, unsigned max, uint32_t key, uint64_t value,
    uint32_t extra);
void ebpfMonIdRemove(ebpfMonIdTable *table, uint32_t key);
void ebpfMonIdClear(ebpfMonCircuit *circuit, ebpfMonIdTable *table);

#endif

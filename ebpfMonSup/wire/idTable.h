/* SPDX-License-Identifier: BSD-3-Clause */
/* A table from numbers that a peer chose to what we know of them. Its memory comes from ebpfMonCircuitAlloc. */
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

/* Finds an entry, which is valid until the table changes. NULL: there is none. */
ebpfMonIdEntry *ebpfMonIdFind(const ebpfMonIdTable *table, uint32_t key);
/* Adds or replaces an entry. 0: there are "max" entries, or no memory. */
int  ebpfMonIdSet(ebpfMonCircuit *circuit, ebpfMonIdTable *table, unsigned max, uint32_t key, uint64_t value,
    uint32_t extra);
void ebpfMonIdRemove(ebpfMonIdTable *table, uint32_t key);
void ebpfMonIdClear(ebpfMonCircuit *circuit, ebpfMonIdTable *table);

#endif

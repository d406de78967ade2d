/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of the kernel part that grows by blocks (BLOCKS_OF in bpf/common/readMaps.bpf.h), in our memory. Threads as
 * in mappedTable.h. Private to probe/. */
#ifndef EBPFMON_BLOCKTABLE_H
#define EBPFMON_BLOCKTABLE_H

#include <bpf/libbpf.h>

#include "probe/mappedTable.h"

typedef struct {
    ebpfMonMappedTable mapped;
    struct bpf_map *map;      /* the table of its blocks; the skeleton's */
    unsigned        element;  /* bytes */
    unsigned        elements; /* of a block */
} ebpfMonBlockTable;

/* How many blocks a table of so many elements may have. Before the table is loaded. */
void ebpfMonBlockTableSetMost(struct bpf_map *map, unsigned most, unsigned elements);

/* Reserves addresses for "most" elements of "element" bytes. Returns the address of the first one; NULL with errno. The
 * caller closes "mapped". */
void *ebpfMonBlockTableOpen(ebpfMonBlockTable *table, struct bpf_map *map, unsigned element, unsigned elements,
                            unsigned most);

/* Makes and maps the first "count" elements. 0, or -1 with errno. */
int ebpfMonBlockTableUse(ebpfMonBlockTable *table, size_t count);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of the kernel part in our memory. It grows by blocks: each is a BPF array of its own, which is made when it
 * is needed, so that the kernel has no memory for records that are not there. Within a block, only the part that is
 * used is mapped, because the kernel gives us all pages that we map at once (array_map_mmap of the kernel). The
 * addresses for the whole table are reserved, so an element never moves.
 *
 * One thread opens, extends and closes a table. Other threads may use the part that was mapped before.
 */
#ifndef EBPFMON_MAPPEDTABLE_H
#define EBPFMON_MAPPEDTABLE_H

#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdint.h>

#include "ebpfMonTable.h"

/* Makes block number "block". Returns a file that can be mapped, which the table closes; -1 with errno: there is
 * none. */
typedef int (*ebpfMonBlockMake)(void *arg, unsigned block);

typedef struct {
    char  *base;   /* NULL: not open */
    size_t size;   /* bytes that are reserved; whole blocks */
    size_t mapped; /* bytes that are mapped, from the beginning */
    size_t block;  /* bytes of a block; whole pages */
    size_t made;   /* bytes of all blocks that were made; atomic, because others count memory */
    int    fd;     /* of the last block; -1: none was made */
    ebpfMonBlockMake make;
    void  *arg;    /* for it */
} ebpfMonMappedTable;

/* Reserves addresses for "size" bytes, in blocks of "block" bytes. 0, or -1 with errno. */
int ebpfMonMappedTableOpen(ebpfMonMappedTable *table, size_t block, size_t size, ebpfMonBlockMake make, void *arg);

/* Makes and maps the first "bytes", as far as they are not mapped yet. 0, or -1 with errno. */
int ebpfMonMappedTableUse(ebpfMonMappedTable *table, size_t bytes);

/* Bytes of all blocks that were made. Any thread. */
size_t ebpfMonMappedTableGetMade(const ebpfMonMappedTable *table);

void ebpfMonMappedTableClose(ebpfMonMappedTable *table); /* a table that is not open does no harm */

/* --- elements ---
 *
 * A table of the kernel part that grows by blocks (BLOCKS_OF in bpf/common/readMaps.bpf.h), in our memory. Private to
 * probe/.
 */

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

/* --- tables with an element for each slot ---
 *
 * The mapped tables of the kernel part that have an element for each slot, and their sizes. kernelLoad.h maps them. */

typedef struct {
    unsigned maxRecords, maxRoots; /* 0: the default of this kernel */
    unsigned ringBytes;            /* power of two */
    unsigned maxClosure;           /* places of the closure table; follows from maxRecords */
} ebpfMonLoadSizes;

/* The tables that have an element for each slot. They are mapped, so the monitor reads a count as it reads memory. The
 * kernel part writes them at any time. Only the part that ebpfMonTablesUse requested is mapped. */
typedef struct {
    volatile struct ebpfMonRecConf  *conf;  /* [maxRecords] */
    volatile struct ebpfMonRecState *state; /* [maxRecords] */
    volatile uint32_t *closure;             /* [maxClosure] */
    ebpfMonLoadSizes size;
    size_t bytes;                           /* memory of the tables that do not grow; of all tables:
                                             * ebpfMonKernelCountMemory */
    int (*use)(uint32_t slots, uint32_t places); /* makes and maps this much; NULL: all of it is there */
} ebpfMonTables;

/* Makes the first "slots" slots, and the first "places" of the closure table usable. 0, or -1 with errno. Follower
 * only. */
static inline int ebpfMonTablesUse(const ebpfMonTables *tables, uint32_t slots, uint32_t places)
{
    return tables->use ? tables->use(slots, places) : 0;
}

#endif

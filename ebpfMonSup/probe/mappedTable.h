/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A BPF array in our memory. Only the part that is used is mapped, because the kernel gives us all pages that we map at
 * once (array_map_mmap of the kernel): 25 MB for all the records that a host may have, and most hosts have few. The
 * addresses for the whole array are reserved, so an element never moves.
 *
 * One thread opens, extends and closes a table. Other threads may use the part that was mapped before.
 */
#ifndef EBPFMON_MAPPEDTABLE_H
#define EBPFMON_MAPPEDTABLE_H

#include <stddef.h>

typedef struct {
    char  *base;   /* NULL: not open */
    size_t size;   /* bytes that are reserved; whole pages */
    size_t mapped; /* bytes that are mapped, from the beginning */
    int    fd;     /* of the BPF map; stays the caller's */
} ebpfMonMappedTable;

/* Reserves addresses for "size" bytes. 0, or -1 with errno. */
int ebpfMonMappedTableOpen(ebpfMonMappedTable *table, int fd, size_t size);

/* Maps the first "bytes", if they are not mapped yet. 0, or -1 with errno. */
int ebpfMonMappedTableUse(ebpfMonMappedTable *table, size_t bytes);

void ebpfMonMappedTableClose(ebpfMonMappedTable *table); /* a table that is not open does no harm */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A BPF array as it lies in memory, mapped as far as it is used. To map all of it would make all of its pages ours
 * (array_map_mmap of the kernel maps them at once): 25 MB for the records that a host may have, and most have few. The
 * addresses of the whole array are reserved, so that an element stays where it is.
 *
 * Thread: one extends it. Others may use what was mapped before.
 */
#ifndef EBPFMON_MAPPEDTABLE_H
#define EBPFMON_MAPPEDTABLE_H

#include <stddef.h>

typedef struct {
    char  *base;   /* NULL: not open */
    size_t size;   /* reserved, bytes; whole pages */
    size_t mapped; /* of these */
    int    fd;     /* of the BPF map; the caller's */
} ebpfMonMappedTable;

/* Reserves addresses for "size" bytes. 0, or -1 with errno. */
int ebpfMonMappedTableOpen(ebpfMonMappedTable *table, int fd, size_t size);

/* Maps the first "bytes", if they are not mapped yet. 0, or -1 with errno. */
int ebpfMonMappedTableUse(ebpfMonMappedTable *table, size_t bytes);

void ebpfMonMappedTableClose(ebpfMonMappedTable *table); /* one that is not open too */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which link a write came through: every database link has a dbChannel of its own, and writes by the DBADDR in
 * it (dbDbPutValue, dbDbLink.c), whose address therefore names the link. Written by the target thread while it
 * reads links, asked by others.
 */
#ifndef EBPFMON_LINKTABLE_H
#define EBPFMON_LINKTABLE_H

#include <stdint.h>

typedef struct {
    uint32_t rec;   /* index of the record in its catalogue */
    uint32_t field; /* … of the link field */
} ebpfMonLinkOwner;

typedef struct ebpfMonLinkTable ebpfMonLinkTable;

ebpfMonLinkTable *ebpfMonLinkTableNew(void); /* NULL without memory */
void ebpfMonLinkTableFree(ebpfMonLinkTable *table);

/* Forgets the links of a record; all with UINT32_MAX. */
void ebpfMonLinkTableClear(ebpfMonLinkTable *table, uint32_t rec);
void ebpfMonLinkTableAdd(ebpfMonLinkTable *table, uint64_t chan, ebpfMonLinkOwner owner);

/* 0, or -1: no link has this channel. */
int ebpfMonLinkTableFind(ebpfMonLinkTable *table, uint64_t chan, ebpfMonLinkOwner *owner);

#endif

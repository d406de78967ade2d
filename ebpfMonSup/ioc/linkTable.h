/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which link made a put. Every database link has a DBADDR of its own (since 7.0.5 within a dbChannel) and writes by it
 * (dbDbPutValue, dbDbLink.c). So the address of this DBADDR identifies the link. The table has a lock of its own: any
 * thread may call these functions.
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

/* Notes the link that has this DBADDR; it replaces the link that had it before. Without memory nothing is noted. */
void ebpfMonLinkTableAdd(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner owner);

/* Replaces the links of record "rec" by those of "from". UINT32_MAX: replaces the links of all records, and "from" gets
 * the old ones. No other thread may use "from". A reader never sees a part of the change. */
void ebpfMonLinkTableReplace(ebpfMonLinkTable *table, uint32_t rec, ebpfMonLinkTable *from);

/* 0, or -1: no link has this DBADDR. */
int ebpfMonLinkTableFind(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner *owner);

#endif

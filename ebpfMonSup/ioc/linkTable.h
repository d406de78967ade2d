/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which link made a write: every database link has a DBADDR of its own, since 7.0.5 in a dbChannel, and writes by it
 * (dbDbPutValue, dbDbLink.c), so the address of that DBADDR names the link. The table has a lock of its own: any thread
 * may call these.
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

/* Notes whose link has this DBADDR, in place of the link that had it before. Without memory nothing is noted. */
void ebpfMonLinkTableAdd(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner owner);

/* Puts the links of "from" in place of those of record "rec"; UINT32_MAX: of all records, and then "from" gets those
 * that were there before. "from" belongs to the caller alone. A reader never sees a part of the change. */
void ebpfMonLinkTableReplace(ebpfMonLinkTable *table, uint32_t rec, ebpfMonLinkTable *from);

/* 0, or -1: no link has this DBADDR. */
int ebpfMonLinkTableFind(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner *owner);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which link made a put. Every database link has a DBADDR of its own (since 7.0.5 within a dbChannel) and writes by it
 * (dbDbPutValue, dbDbLink.c). So the address of this DBADDR identifies the link. A link of pvAccess has none: the
 * number of its PV (ebpfMonPvaLinkKey) takes the place of the address, and several links can have one PV.
 *
 * swait and sscan have no such links: they have texts with the names of PVs, to which a thread of the IOC writes for
 * all of them (recDynLink.c of the modules calc and sscan). These are found by the field that they name, and may be
 * several.
 *
 * The table has a lock of its own: any thread may call these functions.
 */
#ifndef EBPFMON_LINKTABLE_H
#define EBPFMON_LINKTABLE_H

#include <stdint.h>

typedef struct {
    uint32_t rec;   /* index of the record in its catalogue */
    uint32_t field; /* … of the link field */
} ebpfMonLinkOwner;

#define EBPFMON_SEVERAL_LINKS UINT32_MAX /* as "rec": which of several links it is, is not known */

typedef struct ebpfMonLinkTable ebpfMonLinkTable;

ebpfMonLinkTable *ebpfMonLinkTableNew(void); /* NULL without memory */
void ebpfMonLinkTableFree(ebpfMonLinkTable *table);

/* Notes the link that has this DBADDR; it replaces the link that had it before. Without memory nothing is noted. */
void ebpfMonLinkTableAdd(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner owner);

/* Replaces the links and names of record "rec" by those of "from". UINT32_MAX: replaces those of all records, and
 * "from" gets the old ones. No other thread may use "from". A reader never sees a part of the change. */
void ebpfMonLinkTableReplace(ebpfMonLinkTable *table, uint32_t rec, ebpfMonLinkTable *from);

/* 0, or -1: no link has this DBADDR. */
int ebpfMonLinkTableFind(ebpfMonLinkTable *table, uint64_t addr, ebpfMonLinkOwner *owner);

/* Notes a text that names the field at this address. */
void ebpfMonLinkTableAddName(ebpfMonLinkTable *table, uint64_t field, ebpfMonLinkOwner owner);

/* The texts that name the field at this address, "max" of them at most. Returns how many there are; UINT32_MAX: some
 * are not known, for want of memory. */
uint32_t ebpfMonLinkTableFindNames(ebpfMonLinkTable *table, uint64_t field, ebpfMonLinkOwner *owner, uint32_t max);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The database links of records: which record makes which other record process, and by which DBADDR a link writes.
 * They are read from the memory of a running IOC into a place of their own, and then put into the catalogue in one
 * short step, since other threads read the catalogue meanwhile.
 */
#ifndef EBPFMON_RECORDLINKS_H
#define EBPFMON_RECORDLINKS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

/* --- scan lists ---
 *
 * The scan lists of an IOC (dbScan.c). Any thread. */

/* Nonzero: scan lists have the layout that the kernel part expects. Checks some of the records that are in a list. 0
 * also if no record is in a list. */
int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

/* The address of the periodic scan list of this period (s) that has this record; an IOC keeps it until it ends. "spvt":
 * the offset of that field. 0: the record is in no such list now, or the layout is another one. */
uint64_t ebpfMonScanListFind(pid_t pid, uint64_t precord, uint16_t spvt, double period);

/* How many records such a list has to scan now; 0 while the IOC is paused (iocPause). -1: it cannot be read. */
int ebpfMonScanListCount(pid_t pid, uint64_t list);

/* --- lock sets ---
 *
 * The lock sets of an IOC (dbLock.c): which records are locked together.
 */

/* Nonzero: lock records have the layout that the kernel part expects. Checks some of the records; call it when iocInit
 * is done. Nonzero also for an IOC without records. */
int ebpfMonLockSetsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat);

/* Nonzero: both records are in one lock set now. */
int ebpfMonLockSetsHasBoth(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t a, uint32_t b);

/* --- links --- */

#define EBPFMON_ALL_RECORDS UINT32_MAX

typedef struct ebpfMonRecordLinks ebpfMonRecordLinks;

/* Nonzero: the field is a text with the name of a PV to which its record writes (ioc/linkTable.h). */
int ebpfMonRecordLinksIsName(const ebpfMonCatalogue *cat, const ebpfMonField *f);

/* The address of the field that such a text names, which may have aliases and modifiers; 0: none of this IOC. */
uint64_t ebpfMonRecordLinksFindNamed(const ebpfMonCatalogue *cat, const char *text);

/* Reads the links of one record (its index), or of EBPFMON_ALL_RECORDS. Call it when iocInit has resolved them. Changes
 * nothing in the catalogue, so no lock is needed. NULL without memory, or when there is no such record. */
ebpfMonRecordLinks *ebpfMonRecordLinksRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t index);
void ebpfMonRecordLinksFree(ebpfMonRecordLinks *links);

/* How many of these links do not look like links of a known release. Either a link changed while it was read, or this
 * IOC has another layout of links. */
uint32_t ebpfMonRecordLinksCountOdd(const ebpfMonRecordLinks *links);

/* Nonzero: the catalogue has other links, or other flags. */
int ebpfMonRecordLinksDiffer(const ebpfMonCatalogue *cat, const ebpfMonRecordLinks *links);
/* Sets a byte of "missed" for each record of the catalogue whose processings may be missing since the change: a record
 * with new flags, and what a record with other links made or makes process. */
void ebpfMonRecordLinksFindMissed(const ebpfMonCatalogue *cat, const ebpfMonRecordLinks *links, uint8_t *missed);

/* Follows the links of the catalogue from the first "count" records of "queue". Each record that has no byte in
 * "reached" yet gets this mark and comes into the queue. Returns the number of records there; it has room for all and
 * the first ones. */
uint32_t ebpfMonRecordLinksFollow(const ebpfMonCatalogue *cat, uint8_t *reached, uint8_t mark, uint32_t *queue,
                                  uint32_t count);

/* Puts the links into the catalogue. "links" gets the old ones, and ebpfMonRecordLinksFree frees them. Reads and frees
 * nothing; call it under the lock of the catalogue's readers, once for each ebpfMonRecordLinksRead. */
void ebpfMonRecordLinksExchange(ebpfMonCatalogue *cat, ebpfMonRecordLinks *links);

/* Gives a catalogue the links of an older one with the same records (ebpfMonCatalogueHasSameRecords), and all else that
 * is known of records and types. The older one has none afterwards. Under the same lock. */
void ebpfMonRecordLinksTakeOver(ebpfMonCatalogue *cat, ebpfMonCatalogue *older);

#endif

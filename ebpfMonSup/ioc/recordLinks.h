/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The database links of records: which record makes which other record process, and by which DBADDR a link writes.
 * They are read from the memory of a running IOC into a place of their own, and then put into the catalogue in one
 * short step, since other threads read the catalogue meanwhile.
 */
#ifndef EBPFMON_RECORDLINKS_H
#define EBPFMON_RECORDLINKS_H

#include "ioc/catalogue.h"

#define EBPFMON_ALL_RECORDS UINT32_MAX

typedef struct ebpfMonRecordLinks ebpfMonRecordLinks;

/* Reads the links of one record (its index), or of EBPFMON_ALL_RECORDS. Only sound once iocInit resolved them. Changes
 * nothing in the catalogue, so no lock is needed. NULL without memory, or when there is no such record. */
ebpfMonRecordLinks *ebpfMonRecordLinksRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t index);
void ebpfMonRecordLinksFree(ebpfMonRecordLinks *links);

/* How many of these links are like none of a known release: one that changes while it is read, or else what is known of
 * links does not hold for this IOC. */
uint32_t ebpfMonRecordLinksCountOdd(const ebpfMonRecordLinks *links);

/* Nonzero: the catalogue has other links, or other flags. */
int ebpfMonRecordLinksDiffer(const ebpfMonCatalogue *cat, const ebpfMonRecordLinks *links);
/* Nonzero: this record, one of those that were read, has other links, or a flag that it did not have. Since that was
 * so, its chains were not counted as they should be. */
int ebpfMonRecordLinksMayHaveMissed(const ebpfMonCatalogue *cat, const ebpfMonRecordLinks *links, uint32_t index);

/* Puts them into the catalogue, in exchange for those that it has, which are freed with "links". Reads and frees
 * nothing; under the lock of those who read the catalogue. Once for each ebpfMonRecordLinksRead. */
void ebpfMonRecordLinksExchange(ebpfMonCatalogue *cat, ebpfMonRecordLinks *links);

#endif

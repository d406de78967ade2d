/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose records are counted, if the tables have no room for all: each user has a share (common/shares.h). The follower
 * alone. */
#ifndef EBPFMON_RECORDSHARES_H
#define EBPFMON_RECORDSHARES_H

#include "model/audits.h"
#include "watch/recordTablesOwn.h"

/* The IOCs that give up their places, so that the tables have no more than "room" records with those of "t", which
 * has no places yet. "victims" has room for EBPFMON_TARGETS_MAX. Returns their number; 0: none does, and "t" gets
 * none. */
unsigned ebpfMonRecordSharesFindVictims(ebpfMonTargets *targets, const ebpfMonTarget *t, uint64_t room,
                                        ebpfMonTarget **victims);

/* The first of so many slots. UINT32_MAX: there is no room; errno is ENOSPC if the tables are full, otherwise the
 * kernel gives no memory for them. */
uint32_t ebpfMonRecordSharesTakeSlots(ebpfMonRecordTables *tables, uint32_t count);

#endif

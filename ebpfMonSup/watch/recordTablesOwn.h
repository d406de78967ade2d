/* SPDX-License-Identifier: BSD-3-Clause */
/* What recordTables.c, recordSweeps.c and recordMarks.c share. The follower alone. */
#ifndef EBPFMON_RECORDTABLESOWN_H
#define EBPFMON_RECORDTABLESOWN_H

#include "watch/closureTable.h"
#include "watch/recordTablesKernel.h"

typedef struct ebpfMonRecordTables {
    ebpfMonTargets *targets;
    ebpfMonAudits  *audits;
    ebpfMonRecordTablesKernel kernel;
    ebpfMonSlotAllocator *slots;
    ebpfMonClosureTable *closures;
    uint32_t sweepNumber; /* the last one */
} ebpfMonRecordTables;

/*
 * Marks which records want the trap; their counts go on where they were. A record that was counted by the trap stays so
 * while the trap is attached: both counters move while one looks, and the trap's is right in any case. One that is
 * counted by the trap from now on, in an IOC that was counted before, may have processed unseen.
 */
void ebpfMonRecordTablesMarkTrapped(ebpfMonRecordTables *r, ebpfMonTarget *t, const ebpfMonClosures *c);

/* Marks what ebpfMonTargetNoteUnseen noted. */
void ebpfMonRecordTablesTakeUnseen(ebpfMonRecordTables *r, ebpfMonTarget *t);

/* Marks the records for which "reached" has a nonzero byte, and all that they reach by the links of the catalogue: it
 * gets these, too. What the trap counts is counted in any case. NULL, for there was no memory: all are marked. Returns
 * the number of counts that were exact. */
uint32_t ebpfMonRecordTablesMarkReached(ebpfMonRecordTables *r, ebpfMonTarget *t, uint8_t *reached);

/* Puts closures in force, and while passes are watched, the scan lists that belong to them. 0, or -1: no room. */
int ebpfMonRecordTablesInstall(ebpfMonRecordTables *r, ebpfMonTarget *t, ebpfMonClosures *c);

#endif

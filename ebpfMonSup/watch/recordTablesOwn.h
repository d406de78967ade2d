/* SPDX-License-Identifier: BSD-3-Clause */
/* What recordTables.c and recordSweeps.c share. */
#ifndef EBPFMON_RECORDTABLESOWN_H
#define EBPFMON_RECORDTABLESOWN_H

#include "watch/closureTable.h"
#include "watch/recordTables.h"
#include "watch/slotAllocator.h"

struct ebpfMonRecordTables {
    ebpfMonTargets *targets;
    ebpfMonRecordTablesKernel kernel;
    ebpfMonSlotAllocator *slots;
    ebpfMonClosureTable *closures;
    uint32_t sweepNumber; /* the last one */
};

/* Marks all records that this record reaches by its links: their last processings may not have been counted. */
void ebpfMonRecordTablesMarkReached(ebpfMonRecordTables *r, ebpfMonTarget *t, const ebpfMonClosures *c, uint32_t index);

/* Puts closures in force, and while passes are watched, the scan lists that belong to them. 0, or -1: no room. */
int ebpfMonRecordTablesInstall(ebpfMonRecordTables *r, ebpfMonTarget *t, ebpfMonClosures *c);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "ioc/baseLayout.h"
#include "ioc/lockSets.h"

#define RECORDS_MAX 32 /* records that are looked at, spread over all */

/* 0, or -1: its lock record has another layout. */
static int readLockRecord(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t i, struct layoutLockRecord *lock)
{
    uint64_t at = ebpfMonMemPtr(mem, cat->rec[i].addr + cat->common.lset);

    return at && !ebpfMonMemRead(mem, at, lock, sizeof(*lock)) && lock->precord == cat->rec[i].addr ? 0 : -1;
}

int ebpfMonLockSetsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    uint32_t step = cat->count / RECORDS_MAX + 1;
    struct layoutLockRecord lock;

    for (uint32_t i = 0; i < cat->count; i += step)
        if (readLockRecord(mem, cat, i, &lock))
            return 0;
    return 1;
}

int ebpfMonLockSetsHasBoth(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t a, uint32_t b)
{
    struct layoutLockRecord la, lb;

    return !readLockRecord(mem, cat, a, &la) && !readLockRecord(mem, cat, b, &lb) && la.plockSet == lb.plockSet;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "ioc/baseLayout.h"
#include "ioc/lockSets.h"

#define RECORDS_MAX 32 /* records that are looked at, spread over all */

int ebpfMonLockSetsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    uint32_t step = cat->count / RECORDS_MAX + 1;

    for (uint32_t i = 0; i < cat->count; i += step) {
        struct layoutLockRecord lock;
        uint64_t at = ebpfMonMemPtr(mem, cat->rec[i].addr + cat->common.lset);

        if (!at || ebpfMonMemRead(mem, at, &lock, sizeof(lock)) || lock.precord != cat->rec[i].addr)
            return 0;
    }
    return 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "health/recordName.h"

int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size)
{
    long index = target && target->cat ? ebpfMonCatalogueFindAddr(target->cat, precord) : -1;

    snprintf(name, size, "%s", index >= 0 ? ebpfMonCatalogueName(target->cat, (uint32_t)index) : "");
    return index >= 0;
}

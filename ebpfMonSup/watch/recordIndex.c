/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "watch/recordIndex.h"

/* malloc'ed; NULL without memory. */
static uint64_t *copyAddresses(const ebpfMonCatalogue *cat)
{
    uint64_t *a = malloc(((size_t)cat->count + 1) * sizeof(*a));

    for (uint32_t i = 0; a && i < cat->count; i++)
        a[i] = cat->rec[i].addr;
    return a;
}

int ebpfMonRecordIndexAdd(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t, uint32_t slot)
{
    uint64_t *addr = copyAddresses(t->cat);
    int rc = addr ? kernel->setRecordIndex((uint32_t)t->pid, addr, t->cat->count, slot) : -1;

    free(addr);
    return rc;
}

void ebpfMonRecordIndexRemove(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t)
{
    uint64_t *addr = copyAddresses(t->cat);

    if (addr)
        kernel->removeRecordIndex((uint32_t)t->pid, addr, t->cat->count);
    free(addr);
}

void ebpfMonRecordIndexSetArrays(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t, int on)
{
    const ebpfMonCatalogue *cat = t->cat;

    for (uint32_t i = 0; i < cat->fields; i++) {
        const ebpfMonField *f = &cat->field[i];
        struct ebpfMonArrayConf conf = { f->arrayPtr, f->arrayCount };

        if (!f->arrayCount)
            continue;
        if (on)
            kernel->setArray((uint32_t)t->pid, f->addr, &conf);
        else
            kernel->removeArray((uint32_t)t->pid, f->addr);
    }
}

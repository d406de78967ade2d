/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "publish/displayName.h"

void ebpfMonDisplayName(ebpfMonTargets *targets, const ebpfMonTarget *t, uint32_t index, char *name, size_t size)
{
    const char *plain = ebpfMonCatalogueName(t->cat, index);

    for (const ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o; o = o->next)
        if (o != t && !o->gone && o->running && o->cat && ebpfMonCatalogueFind(o->cat, plain) >= 0) {
            snprintf(name, size, "%.40s@%.18s", plain, t->name);
            return;
        }
    snprintf(name, size, "%s", plain);
}

ebpfMonTarget *ebpfMonDisplayFindSlot(ebpfMonTargets *targets, uint32_t slot, uint32_t *index)
{
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (t->slot != UINT32_MAX && t->cat && slot - t->slot < t->cat->count) {
            *index = slot - t->slot;
            return t;
        }
    return NULL;
}

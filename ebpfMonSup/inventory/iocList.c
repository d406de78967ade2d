/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "inventory/iocList.h"

static int isReady(ebpfMonTargets *targets, const ebpfMonTarget *t)
{
    return !t->gone && t->running && t->cat && t->asked > ebpfMonLevelOff && ebpfMonTargetIsCredible(targets, t);
}

ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, unsigned *count)
{
    ebpfMonInventoryIoc *list = NULL;
    unsigned all = 0, n = 0;

    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        all++;
    if (all)
        list = calloc(all, sizeof(*list));
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t && list; t = t->next) {
        if (!isReady(targets, t))
            continue;
        list[n] = (ebpfMonInventoryIoc){ .pid = t->pid, .start = t->start, .iocId = t->iocId,
                                         .pdbbase = t->image.pdbbase, .cat = ebpfMonCatalogueHold(t->cat) };
        strcpy(list[n].name, t->name);
        strcpy(list[n].version, t->version);
        n++;
    }
    ebpfMonTargetsUnlock(targets);
    *count = n;
    return list;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "publish/displayName.h"

#define IOC_LEAST 18 /* characters of the IOC's name that stay beside a long name of a record */

static void joinNames(const char *record, const char *ioc, char *name, size_t size)
{
    size_t room = size - 2 /* "@" and the end */, length = strlen(record), most = IOC_LEAST;
    char place[EBPFMON_IOCNAME_SIZE];

    if (length + most < room)
        most = room - length;
    ebpfMonTextCopy(place, most < sizeof(place) ? most + 1 : sizeof(place), ioc);
    ebpfMonTextCopy(name, room - strlen(place) + 1, record);
    length = strlen(name);
    snprintf(name + length, size - length, "@%s", place);
}

void ebpfMonDisplayName(ebpfMonTargets *targets, const ebpfMonTarget *t, uint32_t index, char *name, size_t size)
{
    const char *plain = ebpfMonCatalogueName(t->cat, index);

    for (const ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o; o = o->next)
        if (o != t && !o->gone && o->running && o->cat && ebpfMonCatalogueFind(o->cat, plain) >= 0) {
            joinNames(plain, t->name, name, size);
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

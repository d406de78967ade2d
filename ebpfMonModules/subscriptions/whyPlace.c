/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/iocInventory.h"
#include "subscriptions/whyPlace.h"

static void takeTarget(ebpfMonWhyPlace *p, ebpfMonTarget *t, const char *record)
{
    long index = t->gone || !t->cat ? -1 : ebpfMonCatalogueFind(t->cat, record);

    if (index < 0)
        return;
    if (p->cat) {
        if (!p->others++) {
            snprintf(p->other, sizeof(p->other), "%s", t->name);
            p->otherPid = t->pid;
        }
        return;
    }
    p->cat = ebpfMonCatalogueHold(t->cat);
    p->record = (uint32_t)index;
    p->iocId = t->iocId;
    p->pid = t->pid;
    p->isRunning = t->running;
    snprintf(p->ioc, sizeof(p->ioc), "%s", t->name);
}

int ebpfMonWhyPlaceFind(ebpfMonTargets *targets, const char *record, ebpfMonWhyPlace *place)
{
    *place = (ebpfMonWhyPlace){ .iocId = 0 };
    ebpfMonTargetsLock(targets);
    for (int running = 1; running >= 0; running--)
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
            if (!t->running == !running)
                takeTarget(place, t, record);
    ebpfMonTargetsUnlock(targets);
    if (!place->cat)
        return -1;
    place->mem = ebpfMonMemNew(place->pid);
    return 0;
}

void ebpfMonWhyPlaceClear(ebpfMonWhyPlace *place)
{
    if (place->mem)
        ebpfMonMemFree(place->mem);
    ebpfMonCatalogueRelease(place->cat);
    *place = (ebpfMonWhyPlace){ .iocId = 0 };
}

const char *ebpfMonWhyReadText(const ebpfMonWhyPlace *p, const char *name, char *text, size_t size)
{
    return ebpfMonFieldTextReadNamed(p->mem, p->cat, p->record, name, text, size);
}

double ebpfMonWhyReadNumber(const ebpfMonWhyPlace *p, const char *name)
{
    char text[EBPFMON_FIELD_TEXT], *end;
    double number;

    ebpfMonWhyReadText(p, name, text, sizeof(text));
    number = strtod(text, &end);
    return end == text || *end ? NAN : number;
}

const char *ebpfMonWhyGetType(const ebpfMonWhyPlace *p)
{
    return p->cat->rtype[p->cat->rec[p->record].rtype].name;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "device/deviceRecords.h"
#include "host/memory.h"

#define PVT_WORDS 16 /* words of a private struct that are searched for a pointer */
#define PART_MAX  24 /* A pointer may lead to a base class, which begins at most so many bytes behind the begin of
                      * its object. malloc never gives two objects so near to each other */

typedef struct {
    uint64_t dpvt;
    uint32_t index;
} Private;

struct ebpfMonDeviceRecords {
    pid_t    pid;
    ebpfMonCatalogue *cat;
    Private *list; /* sorted by dpvt */
    uint32_t count;
};

static int comparePrivates(const void *a, const void *b)
{
    const Private *x = a, *y = b;

    return x->dpvt < y->dpvt ? -1 : x->dpvt > y->dpvt;
}

ebpfMonDeviceRecords *ebpfMonDeviceRecordsNew(pid_t pid, ebpfMonCatalogue *cat)
{
    ebpfMonDeviceRecords *r = calloc(1, sizeof(*r));
    ebpfMonMem *mem = ebpfMonMemNew(pid);

    if (r)
        r->list = calloc(cat->count + 1, sizeof(*r->list));
    if (!r || !r->list || !mem) {
        free(r);
        ebpfMonMemFree(mem);
        return NULL;
    }
    r->pid = pid;
    r->cat = ebpfMonCatalogueHold(cat);
    for (uint32_t i = 0; i < cat->count; i++) {
        const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, cat->rec[i].rtype, "DPVT");
        uint64_t dpvt = f ? ebpfMonMemPtr(mem, cat->rec[i].addr + f->offset) : 0;

        if (dpvt)
            r->list[r->count++] = (Private){ dpvt, i };
    }
    ebpfMonMemFree(mem);
    qsort(r->list, r->count, sizeof(*r->list), comparePrivates);
    return r;
}

void ebpfMonDeviceRecordsFree(ebpfMonDeviceRecords *r)
{
    if (!r)
        return;
    ebpfMonCatalogueRelease(r->cat);
    free(r->list);
    free(r);
}

ebpfMonCatalogue *ebpfMonDeviceRecordsGetCatalogue(const ebpfMonDeviceRecords *r)
{
    return r->cat;
}

/* The index of the record with its DPVT at "at", or up to "part" bytes before it. -1: there is none; -2: several
 * records have this DPVT. */
static long findPrivate(const ebpfMonDeviceRecords *r, uint64_t at, uint64_t part)
{
    uint32_t low = 0, high = r->count;

    while (low < high) { /* find the first one above "at" */
        uint32_t middle = low + (high - low) / 2;

        if (r->list[middle].dpvt <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || at - r->list[low - 1].dpvt > part)
        return -1;
    if (low > 1 && r->list[low - 2].dpvt == r->list[low - 1].dpvt)
        return -2;
    return r->list[low - 1].index;
}

long ebpfMonDeviceRecordsFind(const ebpfMonDeviceRecords *r, uint64_t pvt)
{
    long found = findPrivate(r, pvt, 0);
    uint64_t word[PVT_WORDS];

    if (found != -1 || ebpfMonMemReadNow(r->pid, pvt, word, sizeof(word)))
        return found >= 0 ? found : -1;
    if ((found = ebpfMonCatalogueFindAddr(r->cat, word[0])) >= 0)
        return found;
    for (unsigned i = 0; i < PVT_WORDS; i++) {
        long index = word[i] ? findPrivate(r, word[i], PART_MAX) : -1;

        if (index == -2 || (index >= 0 && found >= 0 && index != found))
            return -1;
        if (index >= 0)
            found = index;
    }
    return found;
}

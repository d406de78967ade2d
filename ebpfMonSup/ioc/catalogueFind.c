/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding things in a catalogue: by name, and by address. */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "ioc/catalogue.h"

/* Places of the table that are looked at for each name, on the average; 1.5 suffice. An IOC could have 2 million
 * records with one name, which would take hours. */
#define STEPS 64u

static uint32_t hashName(const char *name)
{
    return ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, name, strlen(name));
}

int ebpfMonCatalogueIndexNames(ebpfMonCatalogue *cat)
{
    uint64_t steps = (uint64_t)STEPS * (cat->nameCount + STEPS);

    for (cat->byNameSize = 16; cat->byNameSize < cat->nameCount * 2; cat->byNameSize *= 2)
        ;
    cat->byName = calloc(cat->byNameSize, sizeof(*cat->byName));
    if (!cat->byName)
        return -1;
    for (uint32_t i = 0; i < cat->nameCount; i++) {
        uint32_t h = hashName(cat->pool + cat->names[i].name) & (cat->byNameSize - 1);

        for (; cat->byName[h]; h = (h + 1) & (cat->byNameSize - 1))
            if (!steps--)
                return 1;
        cat->byName[h] = i + 1;
    }
    return 0;
}

long ebpfMonCatalogueFind(const ebpfMonCatalogue *cat, const char *name)
{
    uint32_t h;

    if (!cat->byNameSize)
        return -1;
    h = hashName(name) & (cat->byNameSize - 1);
    while (cat->byName[h]) {
        uint32_t i = cat->byName[h] - 1;

        if (strcmp(cat->pool + cat->names[i].name, name) == 0)
            return cat->names[i].rec;
        h = (h + 1) & (cat->byNameSize - 1);
    }
    return -1;
}

long ebpfMonCatalogueFindAddr(const ebpfMonCatalogue *cat, uint64_t precord)
{
    uint32_t lo = 0, hi = cat->count;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (cat->rec[mid].addr < precord)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < cat->count && cat->rec[lo].addr == precord ? (long)lo : -1;
}

const ebpfMonField *ebpfMonCatalogueFieldAt(const ebpfMonCatalogue *cat, uint64_t addr, uint32_t *index)
{
    uint32_t lo = 0, hi = cat->count;
    const ebpfMonRecType *rt;

    while (lo < hi) { /* the first record behind the address */
        uint32_t mid = lo + (hi - lo) / 2;

        if (cat->rec[mid].addr <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return NULL;
    *index = lo - 1;
    rt = &cat->rtype[cat->rec[lo - 1].rtype];
    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++)
        if (cat->rec[lo - 1].addr + cat->field[i].offset == addr)
            return &cat->field[i];
    return NULL;
}

const ebpfMonField *ebpfMonCatalogueField(const ebpfMonCatalogue *cat, uint64_t pfldDes)
{
    uint32_t lo = 0, hi = cat->fields;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (cat->field[cat->fieldByAddr[mid]].addr < pfldDes)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < cat->fields && cat->field[cat->fieldByAddr[lo]].addr == pfldDes)
        return &cat->field[cat->fieldByAddr[lo]];
    return NULL;
}

const ebpfMonField *ebpfMonCatalogueFieldNamed(const ebpfMonCatalogue *cat, uint16_t rtype, const char *name)
{
    const ebpfMonRecType *rt = &cat->rtype[rtype];

    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++)
        if (strcmp(cat->field[i].name, name) == 0)
            return &cat->field[i];
    return NULL;
}

int ebpfMonCatalogueHasSameRecords(const ebpfMonCatalogue *a, const ebpfMonCatalogue *b)
{
    if (a->count != b->count || a->rtypes != b->rtypes || a->fields != b->fields)
        return 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->rec[i].addr != b->rec[i].addr || a->rec[i].rtype != b->rec[i].rtype)
            return 0;
    for (uint32_t k = 0; k < a->fields; k++)
        if (a->field[k].addr != b->field[k].addr || a->field[k].offset != b->field[k].offset)
            return 0;
    return 1;
}

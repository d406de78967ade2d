/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is the memory of an IOC: its records, fields, links, and the clients of its CA server. It begins at the
 * address MEMORY with the variables pdbbase and clientQ. Addresses are small numbers, so that the fuzzer changes them
 * easily. */
#include "otherProcess.h"
#include "fuzz.h"
#include "clients/caClients.h"
#include "ioc/caServer.h"
#include "ioc/catalogue.h"
#include "ioc/closure.h"
#include "ioc/recordLinks.h"
#include "ioc/mutexes.h"

#define MEMORY 0x10000u
#define PAGE   64u /* the memory has whole pages of this size; real pages would be nearly empty */

double ebpfMonFuzzSeconds = 3; /* the monitor reads a database for two seconds at most (memory.h) */

static void useRecord(const ebpfMonCatalogue *cat, uint32_t i)
{
    const ebpfMonRecord *r = &cat->rec[i];
    const ebpfMonRecType *rt = &cat->rtype[r->rtype];
    uint32_t at;

    FUZZ_CHECK(r->rtype < cat->rtypes && rt->firstField + rt->fieldCount <= cat->fields);
    FUZZ_CHECK(ebpfMonCatalogueFindAddr(cat, r->addr) == (long)i);
    FUZZ_CHECK(ebpfMonCatalogueFind(cat, ebpfMonCatalogueName(cat, i)) >= 0);
    FUZZ_CHECK(rt->valField >= -1 && rt->valField < (int)cat->fields);
    ebpfMonCatalogueFieldAt(cat, r->addr + 8, &at);
    for (uint32_t k = 0; k < r->toCount; k++)
        FUZZ_CHECK(r->to[k] < cat->count && r->to[r->toCount + k] < cat->fields);
    FUZZ_CHECK(r->fwd == UINT32_MAX || r->fwd < cat->count);
}

/* Makes closures as watch/closureTable.c does. */
static void makeClosures(const ebpfMonCatalogue *cat)
{
    uint32_t *start = malloc((cat->count + 1) * sizeof(*start)), edges = 0, *to;

    for (uint32_t i = 0; i < cat->count; i++) {
        start[i] = edges;
        edges += cat->rec[i].toCount;
    }
    start[cat->count] = edges;
    to = malloc((edges + 1) * sizeof(*to));
    for (uint32_t i = 0; i < cat->count; i++)
        if (cat->rec[i].toCount)
            memcpy(to + start[i], cat->rec[i].to, cat->rec[i].toCount * sizeof(*to));
    ebpfMonClosuresFree(ebpfMonClosuresMake(cat->count, start, to, 4 * cat->count + 64, 64));
    free(start);
    free(to);
}

static void useCatalogue(ebpfMonMem *mem, ebpfMonCatalogue *cat)
{
    ebpfMonRecordLinks *links = ebpfMonRecordLinksRead(mem, cat, EBPFMON_ALL_RECORDS);
    const char *odd;

    FUZZ_CHECK(links);
    ebpfMonRecordLinksExchange(cat, links);
    ebpfMonRecordLinksFree(links);
    for (uint32_t i = 0; i < cat->count; i++)
        useRecord(cat, i);
    for (uint32_t i = 0; i < cat->fields; i++)
        FUZZ_CHECK(cat->field[i].name[0] && ebpfMonCatalogueField(cat, cat->field[i].addr));
    makeClosures(cat);
    ebpfMonLockSetsAreKnown(mem, cat);
    ebpfMonMutexesAreKnown(mem, cat, cat->base);
    ebpfMonCaServerIsKnown(mem, cat, cat->base, MEMORY + 8, &odd);
    ebpfMonCaClientsFree(ebpfMonCaClientsRead(mem, cat, MEMORY + 8));
    links = ebpfMonRecordLinksRead(mem, cat, 0);
    if (links) {
        FUZZ_CHECK(!ebpfMonRecordLinksDiffer(cat, links));
        ebpfMonRecordLinksExchange(cat, links);
        ebpfMonRecordLinksFree(links);
    }
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    size_t whole = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    uint8_t *memory = calloc(1, whole + 1);
    ebpfMonMem *mem = ebpfMonMemNew(1);
    unsigned clients, channels;
    ebpfMonCatalogue *cat;
    char why[200];

    fuzzProcessClear();
    memcpy(memory, data, size);
    fuzzProcessSetMemory(MEMORY, memory, whole);
    cat = ebpfMonCatalogueRead(mem, MEMORY, why, sizeof(why));
    FUZZ_CHECK(strlen(why) < sizeof(why));
    if (cat) {
        useCatalogue(mem, cat);
        ebpfMonCatalogueRelease(cat);
    }
    ebpfMonCatalogueCountNodes(mem, MEMORY);
    ebpfMonCaServerCount(1, MEMORY + 8, ebpfMonBaseReleaseGet(0), &clients, &channels);
    ebpfMonMemFree(mem);
    free(memory);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is an ELF file that a process has mapped. The fuzzer reads its headers, segments, symbols (also compressed
 * ones, and those in another file), build id, call frame information, places of probes, and notes of USDT probes. */
#include <sys/mman.h>
#include <unistd.h>

#include "otherProcess.h"
#include "fuzz.h"
#include "code/callSites.h"
#include "code/codeGraph.h"
#include "code/elfSymbols.h"
#include "code/image.h"
#include "code/imageFile.h"
#include "code/symbolFile.h"
#include "code/unwind.h"
#include "shared/usdt.h"

double ebpfMonFuzzSeconds = 1; /* the monitor limits the work of reading one file (elfFile.c) */

static uint64_t word;

static int readStack(void *arg, uint64_t addr, uint64_t *value)
{
    *value = word += addr & 0xff;
    return addr & 1 ? -1 : 0;
}

static void checkSites(const ebpfMonKnown *known)
{
    for (int fn = 0; fn < ebpfMonFnCount; fn++) {
        const ebpfMonSite *site = &known->binary.site[fn];

        FUZZ_CHECK(memchr(site->insn, 0, sizeof(site->insn)));
        FUZZ_CHECK(site->cls == ebpfMonSiteNone || site->skip < 64);
    }
    for (unsigned i = 0; known->binary.calls && i < known->binary.calls->count; i++)
        FUZZ_CHECK(known->binary.calls->call[i].called <= ebpfMonCalledListEnd &&
                   known->binary.calls->call[i].caller <= ebpfMonCallerScanList);
    FUZZ_CHECK(known->nSegments <= EBPFMON_ELF_SEGMENTS && strlen(known->binary.buildId) <= 40);
}

static void findCalls(ebpfMonElfFile *file)
{
    static const char *const names[] = { "dbScanLock", "dbScanUnlock", "dbProcess" };
    ebpfMonElfSymbol own[3];
    ebpfMonCallSites *sites;

    ebpfMonElfFind(file, names, 3, own);
    sites = ebpfMonCallSitesFind(file, names, own, 3);
    for (unsigned i = 0; sites && i < sites->count; i++)
        FUZZ_CHECK(sites->site[i].called < 3 && sites->site[i].caller <= sites->site[i].vaddr &&
                   (!i || sites->site[i - 1].vaddr <= sites->site[i].vaddr));
    free(sites);
}

/* Adds all files with symbols of this file. The name of its debug link leads to the file itself.
 * ebpfMonSymbolFilesClose closes them. */
static void addSymbols(ebpfMonElfFile *file)
{
    ebpfMonSymbolPlaces places = { .pid = 1, .program = "/opt/ioc", .folders = "/nowhere:" };
    ebpfMonSymbolSearch search = { 0 };
    unsigned n = 0;

    while (ebpfMonSymbolFileAdd(file, &places, &search))
        FUZZ_CHECK(++n <= 32 && file->symbols->machine == file->machine);
}

/* The files of the fuzzer are too small to be those of an IOC. This reads which functions their code calls, and
 * recognises functions, all the same. */
static void readCode(const ebpfMonElfFile *file, int fd)
{
    ebpfMonCodeGraph *g = ebpfMonCodeGraphMake(file);
    ebpfMonRecognised found;

    for (uint32_t i = 0; g && i < g->count; i++) {
        FUZZ_CHECK(g->begin[i] < g->begin[i + 1] && g->first[i] <= g->first[i + 1]);
        FUZZ_CHECK(ebpfMonCodeGraphFind(g, g->begin[i]) == i);
    }
    ebpfMonCodeGraphFree(g);
    FUZZ_CHECK(ebpfMonRecognise(fd, &found) || found.var[ebpfMonVarBase].vaddr);
}

#define PROBES 8

typedef struct {
    unsigned count;
    ebpfMonUsdtProbe probe[PROBES];
} probeList;

static int addProbe(void *arg, const ebpfMonUsdtProbe *probe)
{
    probeList *list = arg;

    list->probe[list->count++] = *probe;
    return list->count == PROBES;
}

static void findProbes(ebpfMonElfFile *file)
{
    probeList list = { 0 };

    ebpfMonUsdtFind(file, "*", addProbe, &list);
    for (unsigned i = 0; i < list.count; i++) {
        const ebpfMonUsdtProbe *probe = &list.probe[i];
        struct ebpfMonQuerySite operands;
        uint64_t semaphore;
        ebpfMonSite site;
        char why[160] = "";

        FUZZ_CHECK(memchr(probe->name, 0, sizeof(probe->name)) && memchr(probe->args, 0, sizeof(probe->args)));
        if (ebpfMonUsdtPlace(file, probe, (1u << EBPFMON_QUERY_ARGS) - 1, 0x400000, &site, &semaphore, &operands, why,
                             sizeof(why)))
            FUZZ_CHECK(why[0] && memchr(why, 0, sizeof(why)));
        else
            FUZZ_CHECK(site.cls != ebpfMonSiteNone);
    }
}

static void useFile(int fd)
{
    static const char *const names[] = { "dbProcess", "dbPut", "pdbbase", "" };
    ebpfMonElfSymbol symbol[4];
    ebpfMonElfFile file;
    char name[80], bytes[64];
    uint64_t offset;

    if (ebpfMonElfOpen(&file, fd))
        return;
    ebpfMonElfIsProgram(&file);
    addSymbols(&file);
    readCode(&file, fd);
    ebpfMonElfFind(&file, names, 4, symbol);
    for (uint64_t at = 0; (at = ebpfMonElfSearch(&file, "EPICS ", at)) != 0;)
        ;
    findCalls(&file);
    findProbes(&file);
    for (unsigned i = 0; i < 3; i++) {
        ebpfMonRegs regs = { .known = (1u << EBPFMON_REGS) - 1 };

        if (!ebpfMonElfNameAt(&file, symbol[i].vaddr + i, name, sizeof(name), &offset))
            FUZZ_CHECK(name[0] && strlen(name) < sizeof(name));
        ebpfMonElfOffset(&file, symbol[i].vaddr, 1, &offset);
        FUZZ_CHECK(ebpfMonElfRead(&file, symbol[i].vaddr, bytes, sizeof(bytes)) <= sizeof(bytes));
        regs.reg[EBPFMON_REG_PC] = symbol[i].vaddr + 4;
        for (unsigned k = 0; k < 8 && ebpfMonUnwindStep(&file, 0, k > 0, readStack, NULL, &regs) >= 0; k++)
            ;
    }
    ebpfMonSymbolFilesClose(&file);
    ebpfMonElfClose(&file);
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonMapping map = { .start = 0x400000, .end = 0x401000, .dev = 1, .ino = 7, .path = "/lib/libdbCore.so" };
    ebpfMonImageCache *cache = ebpfMonImageCacheNew();
    const ebpfMonKnown *known;
    uint64_t bias;
    int fd;

    fuzzProcessClear();
    fuzzProcessSetFile("/map_files/", data, size);
    fuzzProcessSetFile(".debug", data, size);
    if (cache && ebpfMonImageCacheFind(cache, 1, &map, &known) == 0 && known) {
        checkSites(known);
        ebpfMonMappingBias(known->segment, known->nSegments, &map, &bias);
    }
    ebpfMonImageCacheFree(cache);
    fd = memfd_create("fuzz", 0);
    if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
        useFile(fd);
    close(fd);
}

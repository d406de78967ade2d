/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "code/callSites.h"
#include "code/unwind.h"
#include "common/array.h"

/* --- what was found so far --- */

#define SITES_MAX       4096u
#define DECODE_WORK     8u          /* to decode one byte of code */
#define FUNCTION_MAX    (256u << 10) /* bytes from the begin of a function to a call in it */
#define PROGRAM_BASE    0x400000u   /* programs that are not position-independent begin here */

typedef ebpfMonCallSearch Search;

void ebpfMonCallSearchAddSpot(Search *s, uint64_t vaddr, unsigned called, int kind)
{
    if (s->spots == EBPFMON_SPOTS_MAX) {
        s->complete = 0;
        return;
    }
    if (!s->spots || vaddr < s->lowest)
        s->lowest = vaddr;
    if (!s->spots || vaddr > s->highest)
        s->highest = vaddr;
    s->spot[s->spots++] = (ebpfMonSpot){ vaddr, called, kind };
    s->filter[ebpfMonCallSearchHash(vaddr)] = 1;
}

const ebpfMonSpot *ebpfMonCallSearchCompareSpots(const Search *s, uint64_t vaddr)
{
    ebpfMonElfSpend(s->file, s->spots);
    for (unsigned i = 0; i < s->spots; i++)
        if (s->spot[i].vaddr == vaddr)
            return &s->spot[i];
    return NULL;
}

void ebpfMonCallSearchUseOtherwise(Search *s, unsigned called)
{
    s->complete &= ~(1u << called);
}

/* Where the function with this code begins: static programs may have no table for it, and have symbols then. 0: not
 * known. */
static uint64_t findBegin(const Search *s, uint64_t vaddr)
{
    uint64_t begin = ebpfMonUnwindFindBegin(s->file, vaddr), offset;
    char name[4];

    if (!begin && ebpfMonElfNameAt(s->file, vaddr, name, sizeof(name), &offset) == 0)
        begin = vaddr - offset;
    return begin;
}

/* Nonzero: the instructions from the begin of a function on lead to "vaddr". */
static int leadsTo(const Search *s, uint64_t begin, uint64_t vaddr)
{
    size_t size = vaddr - begin, len, at = 0;
    uint8_t *code;

    if (!begin || begin > vaddr || size > FUNCTION_MAX || !(code = malloc(size + 16)))
        return 0;
    len = ebpfMonElfRead(s->file, begin, code, size + 16);
    while (at < size) {
        unsigned n = at < len ? s->machine->getLength(code + at, len - at) : 0;

        if (!n)
            break;
        at += n;
    }
    free(code);
    ebpfMonElfSpend(s->file, DECODE_WORK * at);
    return at == size;
}

void ebpfMonCallSearchAddSite(Search *s, uint64_t vaddr, unsigned called)
{
    ebpfMonCallSite site = { .vaddr = vaddr, .called = called, .caller = findBegin(s, vaddr) };

    if (!leadsTo(s, site.caller, vaddr) || ebpfMonElfOffset(s->file, vaddr, PF_X, &site.offset) ||
        s->sites == SITES_MAX || ebpfMonArrayGrow(&s->site, &s->room, s->sites + 1, 64, sizeof(*s->site))) {
        ebpfMonCallSearchUseOtherwise(s, called);
        return;
    }
    s->site[s->sites++] = site;
}

void ebpfMonCallSearchUseAddress(Search *s, uint64_t address)
{
    const ebpfMonSpot *spot = address >= PROGRAM_BASE ? ebpfMonCallSearchFindSpot(s, address) : NULL;

    if (spot && spot->kind != ebpfMonSpotSlot)
        ebpfMonCallSearchUseOtherwise(s, spot->called);
}

/* --- the search --- */

#define SECTIONS_MAX    1024u
#define STRINGS_MAX     (64u << 20) /* bytes of .dynstr */
#define SYMBOLS_MAX     (1u << 20)
#define RELOCATIONS_MAX (1u << 22)
#define COMPARE_WORK    8u          /* to compare two names */
#define SCAN_WORK       4u          /* to look at one byte of code or data */
#define PIECE           (64u << 10)
#ifndef SHT_RELR
#define SHT_RELR        19          /* elf.h of glibc 2.36 */
#endif
#define MARGIN          32u         /* bytes before a piece: a stub's first instructions */

/* Notes the numbers of the symbols of .dynsym that have one of the names. */
static void findSymbolCalls(Search *s, const char *const *names, const Elf64_Shdr *table, const char *strings,
                            size_t size)
{
    Elf64_Sym piece[256];
    uint64_t n = table->sh_size / sizeof(*piece);

    for (uint64_t i = 0; i < n && i < SYMBOLS_MAX; i += 256) {
        size_t got = ebpfMonElfReadSection(s->file, table, i * sizeof(*piece), piece, sizeof(piece)) / sizeof(*piece);

        if (!got)
            break;
        ebpfMonElfSpend(s->file, (uint64_t)got * s->count * COMPARE_WORK);
        for (size_t k = 0; k < got; k++)
            for (unsigned called = 0; called < s->count; called++)
                if (piece[k].st_name < size && !strcmp(strings + piece[k].st_name, names[called]) &&
                    s->symbols < 2 * EBPFMON_CALLED_MAX) {
                    s->symbol[s->symbols].symbol = (uint32_t)(i + k);
                    s->symbol[s->symbols++].called = called;
                }
    }
}

static int readCallSymbols(Search *s, const char *const *names, const Elf64_Shdr *table)
{
    Elf64_Shdr strings;
    size_t size;
    char *text;

    if (!ebpfMonElfSection(s->file, table->sh_link, &strings) || strings.sh_size > STRINGS_MAX)
        return -1;
    text = malloc((size_t)strings.sh_size + 1);
    if (!text)
        return -1;
    size = ebpfMonElfReadSection(s->file, &strings, 0, text, (size_t)strings.sh_size);
    text[size] = 0;
    findSymbolCalls(s, names, table, text, size);
    free(text);
    return 0;
}

/* The functions whose address a relocation uses: from a slot they are called by way of a stub. */
static void useRelocation(Search *s, const Elf64_Rela *r)
{
    uint32_t type = ELF64_R_TYPE(r->r_info), symbol = (uint32_t)ELF64_R_SYM(r->r_info);

    for (unsigned i = 0; i < s->symbols; i++) {
        if (s->symbol[i].symbol != symbol || type == s->machine->reloc.copy)
            continue;
        if (type == s->machine->reloc.slot[0] || type == s->machine->reloc.slot[1])
            ebpfMonCallSearchAddSpot(s, r->r_offset, s->symbol[i].called, ebpfMonSpotSlot);
        else
            ebpfMonCallSearchUseOtherwise(s, s->symbol[i].called); /* a variable holds its address */
    }
    if (type == s->machine->reloc.relative || type == s->machine->reloc.irelative)
        for (unsigned i = 0; i < s->spots; i++)
            if (s->spot[i].kind == ebpfMonSpotFunction && s->spot[i].vaddr == (uint64_t)r->r_addend)
                ebpfMonCallSearchUseOtherwise(s, s->spot[i].called);
}

static void readRelocations(Search *s, const Elf64_Shdr *section)
{
    Elf64_Rela piece[128];
    uint64_t n = section->sh_size / sizeof(*piece);

    for (uint64_t i = 0; i < n; i += 128) {
        size_t got = ebpfMonElfReadSection(s->file, section, i * sizeof(*piece), piece, sizeof(piece)) / sizeof(*piece);

        if (!got || i > RELOCATIONS_MAX) {
            s->complete = 0;
            return;
        }
        ebpfMonElfSpend(s->file, (uint64_t)got * (s->symbols + s->spots));
        for (size_t k = 0; k < got && i + k < n; k++)
            useRelocation(s, &piece[k]);
    }
}

typedef enum { StubCode, OtherCode, Data } Content;

/* Looks through a piece of code for calls. The first "from" bytes were in the piece before. */
typedef void (*ScanCode)(Search *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr);

static const struct {
    uint16_t machine; /* EM_… of elf.h */
    ScanCode scan[Data];
} scans[] = {
    { EM_X86_64, { ebpfMonCallStubsX86, ebpfMonCallCodeX86 } },
    { EM_AARCH64, { ebpfMonCallStubsAarch64, ebpfMonCallCodeAarch64 } },
};

/* NULL: how this machine calls is not known. */
static ScanCode findScan(uint16_t machine, Content content)
{
    for (size_t i = 0; i < sizeof(scans) / sizeof(scans[0]); i++)
        if (scans[i].machine == machine)
            return scans[i].scan[content];
    return NULL;
}

static void scanPiece(Search *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr, Content content)
{
    if (content != Data)
        findScan(s->machine->machine, content)(s, code, from, len, vaddr);
    else
        for (size_t at = from > 3 ? from - 3 : 0; at + 4 <= len; at++) {
            uint32_t word;

            memcpy(&word, code + at, sizeof(word));
            ebpfMonCallSearchUseAddress(s, word);
        }
}

static void scanSection(Search *s, const Elf64_Shdr *section, Content content)
{
    uint8_t *code = malloc(MARGIN + PIECE);
    size_t kept = 0, got;

    memset(s->page, 0, sizeof(s->page));
    for (uint64_t at = 0; code && at < section->sh_size; at += got) {
        got = ebpfMonElfReadSection(s->file, section, at, code + kept, PIECE);
        if (!got)
            break;
        ebpfMonElfSpend(s->file, SCAN_WORK * got);
        scanPiece(s, code, kept, kept + got, section->sh_addr + at - kept, content);

        size_t all = kept + got;

        kept = all < MARGIN ? all : MARGIN;
        memmove(code, code + all - kept, kept);
    }
    if (!code)
        s->complete = 0;
    free(code);
}

static void scanSections(Search *s, Content content)
{
    Elf64_Shdr section;

    for (uint32_t i = 1; i < SECTIONS_MAX && ebpfMonElfSection(s->file, i, &section); i++) {
        Content is = Data;
        char name[8];

        if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_ALLOC))
            continue;
        ebpfMonElfSectionName(s->file, &section, name, sizeof(name));
        if (section.sh_flags & SHF_EXECINSTR)
            is = strncmp(name, ".plt", 4) ? OtherCode : StubCode;
        if (is == content)
            scanSection(s, &section, content);
    }
}

/* 0, or -1: the tables cannot be read. */
static int readTables(Search *s, const char *const *names)
{
    Elf64_Shdr section;
    int hasSymbols = 0;

    for (uint32_t i = 1; i < SECTIONS_MAX && ebpfMonElfSection(s->file, i, &section); i++)
        if (section.sh_type == SHT_DYNSYM && !hasSymbols++ && readCallSymbols(s, names, &section))
            return -1;
    for (uint32_t i = 1; i < SECTIONS_MAX && ebpfMonElfSection(s->file, i, &section); i++) {
        if (section.sh_type == SHT_RELA)
            readRelocations(s, &section);
        s->holdsAddresses |= section.sh_type == SHT_RELR; /* packed: they only say where addresses stand */
    }
    return 0;
}

static int byVaddr(const void *a, const void *b)
{
    uint64_t x = ((const ebpfMonCallSite *)a)->vaddr, y = ((const ebpfMonCallSite *)b)->vaddr;

    return x < y ? -1 : x > y;
}

ebpfMonCallSites *ebpfMonCallSitesFind(const ebpfMonElfFile *file, const char *const *names,
                                       const ebpfMonElfSymbol *own, unsigned count)
{
    Search *s = calloc(1, sizeof(*s));
    ebpfMonCallSites *found = NULL;

    if (s)
        s->machine = ebpfMonMachineFind(file->machine);
    if (!s || !s->machine || !findScan(file->machine, OtherCode) || !file->nSections || count > EBPFMON_CALLED_MAX) {
        free(s);
        return NULL;
    }
    s->file = file;
    s->count = count;
    s->complete = (1u << count) - 1;
    s->holdsAddresses = file->isFixed;
    for (unsigned i = 0; i < count; i++)
        if (own[i].vaddr)
            ebpfMonCallSearchAddSpot(s, own[i].vaddr, i, ebpfMonSpotFunction);
    if (readTables(s, names) == 0) {
        scanSections(s, StubCode);
        scanSections(s, OtherCode);
        if (s->holdsAddresses)
            scanSections(s, Data);
        if (!ebpfMonElfIsOver(file))
            found = malloc(sizeof(*found) + s->sites * sizeof(*s->site));
    }
    if (found) {
        if (s->sites)
            qsort(s->site, s->sites, sizeof(*s->site), byVaddr);
        found->count = (unsigned)s->sites;
        found->complete = s->complete;
        if (s->sites)
            memcpy(found->site, s->site, s->sites * sizeof(*s->site));
    }
    free(s->site);
    free(s);
    return found;
}

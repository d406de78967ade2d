/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "code/elfSymbols.h"
#include "code/usdt.h"
#include "code/usdtArgs.h"
#include "common/text.h"

#define NOTES_MAX    (1u << 20) /* bytes of the notes of a file that are looked at */
#define SECTIONS_MAX 4096u      /* sections that are looked at */
#define NOTE_TYPE    3          /* _SDT_NOTE_TYPE */
#define NOP          0x90

/* Nonzero: the section is there. */
static int findNotes(const ebpfMonElfFile *file, uint32_t type, const char *wanted, Elf64_Shdr *section)
{
    char name[24];

    for (uint32_t i = 1; i < SECTIONS_MAX && ebpfMonElfSection(file, i, section); i++) {
        if (section->sh_type != type)
            continue;
        ebpfMonElfSectionName(file, section, name, sizeof(name));
        if (strcmp(name, wanted) == 0)
            return 1;
    }
    return 0;
}

/* The text at *p, which is moved behind it; NULL: it has no end, or is no text for people. */
static const char *takeText(const char **p, const char *end)
{
    const char *text = *p, *nul = memchr(text, 0, (size_t)(end - text));

    *p = nul ? nul + 1 : end;
    return nul && ebpfMonTextIsClean(text) ? text : NULL;
}

/* One note. "base": where .stapsdt.base lies now; a prelinker that moved the file left the notes as they were. 0, or
 * -1. */
static int readNote(const char *p, const char *end, uint64_t base, ebpfMonUsdtProbe *probe)
{
    const char *provider, *name, *args;
    uint64_t address[3]; /* of the nop, of .stapsdt.base, of the semaphore */
    int length;

    if ((size_t)(end - p) < sizeof(address))
        return -1;
    memcpy(address, p, sizeof(address));
    p += sizeof(address);
    provider = takeText(&p, end);
    name = provider ? takeText(&p, end) : NULL;
    args = name ? takeText(&p, end) : NULL;
    if (!args || strlen(args) >= sizeof(probe->args))
        return -1;
    length = snprintf(probe->name, sizeof(probe->name), "%s:%s", provider, name);
    strcpy(probe->args, args);
    if (!base || !address[1])
        base = address[1] = 0;
    probe->vaddr = address[0] + base - address[1];
    probe->semaphore = address[2] ? address[2] + base - address[1] : 0;
    return length > 0 && (size_t)length < sizeof(probe->name) ? 0 : -1;
}

/* Goes over all notes. */
static void readNotes(const char *notes, size_t size, uint64_t base, const char *pattern,
                      int (*each)(void *arg, const ebpfMonUsdtProbe *probe), void *arg)
{
    ebpfMonUsdtProbe probe;
    Elf64_Nhdr h;

    for (size_t at = 0; at + sizeof(h) <= size;) {
        size_t desc, next;

        memcpy(&h, notes + at, sizeof(h));
        at += sizeof(h);
        if (h.n_namesz > size || h.n_descsz > size)
            return;
        desc = at + ((h.n_namesz + 3u) & ~3u);
        next = desc + ((h.n_descsz + 3u) & ~3u);
        if (desc + h.n_descsz > size)
            return;
        if (h.n_type == NOTE_TYPE && h.n_namesz == sizeof("stapsdt") &&
            memcmp(notes + at, "stapsdt", h.n_namesz) == 0 &&
            readNote(notes + desc, notes + desc + h.n_descsz, base, &probe) == 0 &&
            epicsStrGlobMatch(probe.name, pattern) && each(arg, &probe))
            return;
        at = next;
    }
}

void ebpfMonUsdtFind(const ebpfMonElfFile *file, const char *pattern,
                     int (*each)(void *arg, const ebpfMonUsdtProbe *probe), void *arg)
{
    Elf64_Shdr section, base;
    char *notes;
    size_t size;

    if (!findNotes(file, SHT_NOTE, ".note.stapsdt", &section))
        return;
    if (!findNotes(file, SHT_PROGBITS, ".stapsdt.base", &base))
        base.sh_addr = 0;
    size = section.sh_size < NOTES_MAX ? (size_t)section.sh_size : NOTES_MAX;
    notes = malloc(size ? size : 1);
    if (!notes)
        return;
    size = ebpfMonElfReadSection(file, &section, 0, notes, size);
    readNotes(notes, size, base.sh_addr, pattern, each, arg);
    free(notes);
}

/* The variable that an argument is behind. 0, or -1: why. */
static int addVariable(ebpfMonElfFile *file, ebpfMonUsdtArg *arg, uint64_t bias, char *why, size_t size)
{
    const char *name = arg->symbol;
    ebpfMonElfSymbol symbol;

    if (!name[0])
        return 0;
    if (!ebpfMonElfFind(file, &name, 1, &symbol) || !symbol.isGlobal) { /* of local ones there can be many of a name */
        snprintf(why, size, "an argument is behind the variable %s, which is not among the global symbols of its file",
                 name);
        return -1;
    }
    arg->operand.number += (int64_t)(bias + symbol.vaddr);
    return 0;
}

int ebpfMonUsdtPlace(ebpfMonElfFile *file, const ebpfMonUsdtProbe *probe, unsigned args, uint64_t bias,
                     ebpfMonSite *site, uint64_t *semaphore, struct ebpfMonQuerySite *operands, char *why, size_t size)
{
    uint8_t code = 0;

    memset(operands, 0, sizeof(*operands));
    memset(site, 0, sizeof(*site));
    *semaphore = 0;
    if (ebpfMonElfOffset(file, probe->vaddr, PF_X, &site->offset)) {
        snprintf(why, size, "its note names an address where the file has no code");
        return -1;
    }
    if (probe->semaphore && ebpfMonElfOffset(file, probe->semaphore, PF_W, semaphore)) {
        snprintf(why, size, "its semaphore is not where a variable can be");
        return -1;
    }
    if (args && file->machine != EM_X86_64) {
        snprintf(why, size, "arguments of USDT probes are read on x86-64 only");
        return -1;
    }
    ebpfMonElfRead(file, probe->vaddr, &code, sizeof(code));
    site->cls = code == NOP ? ebpfMonSiteFast : ebpfMonSiteStepped;
    site->vaddr = probe->vaddr;
    snprintf(site->insn, sizeof(site->insn), "nop");
    for (unsigned i = 0; i < EBPFMON_QUERY_ARGS; i++) {
        ebpfMonUsdtArg arg;

        if (!(args >> i & 1))
            continue;
        if (ebpfMonUsdtArgRead(probe->args, i, &arg, why, size) || addVariable(file, &arg, bias, why, size))
            return -1;
        operands->arg[i] = arg.operand;
    }
    return 0;
}

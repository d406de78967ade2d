/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "code/elfFunctions.h"
#include "code/elfSymbols.h"

#define NAMES_MAX (16u << 20) /* bytes of the names of a file that are looked at */
#define PIECE     1024        /* symbols that are read at once */

static int isKnown(const ebpfMonElfFunction *found, unsigned count, uint64_t vaddr)
{
    for (unsigned i = 0; i < count; i++)
        if (found[i].vaddr == vaddr)
            return 1;
    return 0;
}

static int isFunction(const Elf64_Sym *sym, size_t names)
{
    return ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS &&
           sym->st_value && sym->st_name < names;
}

static unsigned findInTable(const ebpfMonElfFile *file, const Elf64_Shdr *table, const char *names, size_t size,
                            const char *pattern, ebpfMonElfFunction *found, unsigned most)
{
    Elf64_Sym *sym = malloc(PIECE * sizeof(*sym));
    unsigned count = 0;
    size_t n;

    for (uint64_t at = 0;
         sym && count <= most && (n = ebpfMonElfReadSection(file, table, at, sym, PIECE * sizeof(*sym)) / sizeof(*sym));
         at += n * sizeof(*sym))
        for (size_t i = 0; i < n; i++) {
            const char *name = names + (sym[i].st_name < size ? sym[i].st_name : 0);

            if (!isFunction(&sym[i], size) || strlen(name) >= sizeof(found->name) ||
                !epicsStrGlobMatch(name, pattern) || isKnown(found, count < most ? count : most, sym[i].st_value))
                continue;
            if (count < most) {
                found[count] = (ebpfMonElfFunction){ .vaddr = sym[i].st_value, .size = sym[i].st_size };
                strcpy(found[count].name, name);
            }
            count++;
        }
    free(sym);
    return count;
}

unsigned ebpfMonElfFunctionsFind(const ebpfMonElfFile *file, const char *pattern, ebpfMonElfFunction *found,
                                 unsigned most)
{
    Elf64_Shdr table, strings;
    unsigned count = 0;
    size_t size;
    char *names;

    if (!ebpfMonElfTable(file, SHT_SYMTAB, &table, &strings) && !ebpfMonElfTable(file, SHT_DYNSYM, &table, &strings))
        return 0;
    size = strings.sh_size < NAMES_MAX ? (size_t)strings.sh_size : NAMES_MAX;
    names = malloc(size + 1);
    if (!names)
        return 0;
    size = ebpfMonElfReadSection(file, &strings, 0, names, size);
    names[size] = 0;
    count = findInTable(file, &table, names, size, pattern, found, most);
    free(names);
    return count;
}

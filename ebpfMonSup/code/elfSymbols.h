/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symbols of an ELF64 file, by name and by address. Section headers are not needed to run a file: without them
 * .dynsym is found as the loader finds it (elfDynamic.h). Nothing in the file is trusted, as elfFile.h says.
 */
#ifndef EBPFMON_ELFSYMBOLS_H
#define EBPFMON_ELFSYMBOLS_H

#include "code/elfFile.h"

typedef struct {
    uint64_t vaddr;       /* 0: not found */
    uint64_t size;        /* as the symbol says, 0: it does not */
    int      isGlobal;
    int      isImported;  /* this file uses it, another one defines it */
} ebpfMonElfSymbol;

/* Finds the first symbol table of a type (SHT_DYNSYM, SHT_SYMTAB), and its strings. Nonzero: there is one. */
int ebpfMonElfTable(const ebpfMonElfFile *file, uint32_t type, Elf64_Shdr *table, Elf64_Shdr *strings);

/* Looks up names[0..count) in .dynsym; names that are not there in .symtab; then in .symtab of the files with its
 * symbols. Only defined functions, objects and untyped symbols count; a global symbol goes before a local one. Returns
 * how many were found. For names that were not found, "isImported" says whether .dynsym imports them. */
unsigned ebpfMonElfFind(ebpfMonElfFile *file, const char *const *names, unsigned count,
    ebpfMonElfSymbol *symbols);

/* The function in which a vaddr lies, by .symtab, else .dynsym, else a file with its symbols; *offset: distance from
 * the begin of the function. 0, or -1. For stubs, which have no symbol, see elfPlt.h. */
int ebpfMonElfNameAt(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset);

#endif

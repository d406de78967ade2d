/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symbols of an ELF64 file, by name and by address. Section headers are not needed to run a file: without them
 * .dynsym is found as the loader finds it. Nothing in the file is trusted, as elfFile.h says.
 */
#ifndef EBPFMON_ELFSYMBOLS_H
#define EBPFMON_ELFSYMBOLS_H

#include "code/elfFile.h"

/* --- the dynamic section ---
 *
 * The dynamic section of a file, which the loader reads. A file without section headers has it, too. Nothing in it is
 * trusted.
 */

/* Nonzero: the file is a program and not a library. A program has an interpreter, a fixed address, or, if it is static
 * and position-independent, a flag in its dynamic section. */
int ebpfMonElfIsProgram(const ebpfMonElfFile *file);

/* --- symbols by name and by address --- */

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
 * the begin of the function. 0, or -1. For stubs, which have no symbol, see ebpfMonElfNameCode. */
int ebpfMonElfNameAt(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset);

/* --- functions by a pattern ---
 *
 * The functions of a file whose names match a pattern. In a job (foreign.h), and within the file's budget
 * (elfFile.h).
 */

typedef struct {
    char     name[128];
    uint64_t vaddr, size; /* size: as the symbol says, 0: it does not */
} ebpfMonElfFunction;

/* Finds the functions of .symtab, else of .dynsym, in any order. A function with several names is found once, with one
 * of them. Returns how many there are; "found" gets the first "most" of them. */
unsigned ebpfMonElfFunctionsFind(const ebpfMonElfFile *file, const char *pattern, ebpfMonElfFunction *found,
                                 unsigned most);

/* --- stubs of the procedure linkage table ---
 *
 * The stubs of the procedure linkage table: a call of a library's function goes through one. They have no symbols. A
 * stub jumps to the address that the loader writes into its slot, and the relocation of that slot names the function
 * (System V ABI for x86-64, section 5.2).
 */

/* As ebpfMonElfNameAt; a stub that calls a library's function has the name of that with "@plt" behind it, as in gdb. */
int ebpfMonElfNameCode(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset);

#endif

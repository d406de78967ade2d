/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loader reads of a file: its dynamic section, which is there without section headers, too. Nothing in it is trusted. */
#ifndef EBPFMON_ELFDYNAMIC_H
#define EBPFMON_ELFDYNAMIC_H

#include "code/elfFile.h"

/* The symbol table that the loader uses, and its strings, as sections. Nonzero: there is one. */
int ebpfMonElfDynamicTable(const ebpfMonElfFile *file, Elf64_Shdr *table, Elf64_Shdr *strings);

/* Nonzero: it is a program and no library: it has an interpreter, a fixed place, or the flag of a static program that has
 * none. */
int ebpfMonElfIsProgram(const ebpfMonElfFile *file);

#endif

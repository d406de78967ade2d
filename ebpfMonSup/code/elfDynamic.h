/* SPDX-License-Identifier: BSD-3-Clause */
/* The dynamic section of a file, which the loader reads. A file without section headers has it, too. Nothing in it is
 * trusted. */
#ifndef EBPFMON_ELFDYNAMIC_H
#define EBPFMON_ELFDYNAMIC_H

#include "code/elfFile.h"

/* The symbol table that the loader uses, and its strings, as sections. Nonzero: there is one. */
int ebpfMonElfDynamicTable(const ebpfMonElfFile *file, Elf64_Shdr *table, Elf64_Shdr *strings);

/* Nonzero: the file is a program and not a library. A program has an interpreter, a fixed address, or, if it is static
 * and position-independent, a flag in its dynamic section. */
int ebpfMonElfIsProgram(const ebpfMonElfFile *file);

#endif

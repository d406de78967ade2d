/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a file whose names match a pattern. In a job (foreign.h), and within the file's budget
 * (elfFile.h). */
#ifndef EBPFMON_ELFFUNCTIONS_H
#define EBPFMON_ELFFUNCTIONS_H

#include "code/elfFile.h"

typedef struct {
    char     name[128];
    uint64_t vaddr, size; /* size: as the symbol says, 0: it does not */
} ebpfMonElfFunction;

/* Finds the functions of .symtab, else of .dynsym, in any order. A function with several names is found once, with one
 * of them. Returns how many there are; "found" gets the first "most" of them. */
unsigned ebpfMonElfFunctionsFind(const ebpfMonElfFile *file, const char *pattern, ebpfMonElfFunction *found,
                                 unsigned most);

#endif

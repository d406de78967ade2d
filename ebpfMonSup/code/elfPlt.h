/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stubs of the procedure linkage table: a call of a library's function goes through one. They have no symbols. A
 * stub jumps to the address that the loader writes into its slot, and the relocation of that slot names the function
 * (System V ABI for x86-64, section 5.2).
 */
#ifndef EBPFMON_ELFPLT_H
#define EBPFMON_ELFPLT_H

#include "code/elfFile.h"

/* As ebpfMonElfNameAt; a stub that calls a library's function has the name of that with "@plt" behind it, as in gdb. */
int ebpfMonElfNameCode(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset);

#endif

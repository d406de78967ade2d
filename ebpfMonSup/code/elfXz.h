/* SPDX-License-Identifier: BSD-3-Clause */
/* .gnu_debugdata: a section that contains an ELF file with symbols, compressed by xz ("MiniDebugInfo" of Fedora and
 * others). */
#ifndef EBPFMON_ELFXZ_H
#define EBPFMON_ELFXZ_H

#include "code/elfFile.h"

/* Unpacks a section into a file in memory, 64 MiB at most, and returns its descriptor. -1: it cannot be unpacked. */
int ebpfMonElfUnpack(const ebpfMonElfFile *file, const Elf64_Shdr *section);

#endif

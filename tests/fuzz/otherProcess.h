/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other process that a parser reads. Its memory and its files in /proc are bytes of the input. The linker replaces
 * process_vm_readv, open, fopen, stat, readlink and opendir by the functions of otherProcess.c (--wrap in the
 * Makefile). So the parsers run unchanged, and no input can reach a real process.
 */
#ifndef EBPFMON_FUZZ_OTHERPROCESS_H
#define EBPFMON_FUZZ_OTHERPROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Removes all memory and files of the process. */
void fuzzProcessClear(void);

/* Adds memory: these bytes at this address. Up to 4 times. */
void fuzzProcessSetMemory(uint64_t address, const void *bytes, size_t size);

/* Adds a file: the one whose path ends with "name"; if "name" ends with '/', each file whose path contains it. The
 * target of a symbolic link is these bytes. Up to 32 files; a later one replaces an earlier one of the same name. */
void fuzzProcessSetFile(const char *name, const void *bytes, size_t size);

#endif

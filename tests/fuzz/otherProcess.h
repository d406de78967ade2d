/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other process that a fuzzer shows to a parser: its memory and what /proc says of it are bytes of the input. The
 * linker puts the functions of otherProcess.c in place of process_vm_readv, open, fopen, stat, readlink and opendir (--wrap
 * in the Makefile), so the parsers run as they are, and no input can reach a real process.
 */
#ifndef EBPFMON_FUZZ_OTHERPROCESS_H
#define EBPFMON_FUZZ_OTHERPROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Nothing is known of the process: no memory, no file. */
void fuzzProcessClear(void);

/* It has these bytes at this address; up to 4 pieces. */
void fuzzProcessSetMemory(uint64_t address, const void *bytes, size_t size);

/* It has this file: the one whose path ends in "name", or has it as a folder when "name" ends in '/'. Of a symbolic
 * link the bytes are the target. Up to 32 files; a later one of the same name goes before. */
void fuzzProcessSetFile(const char *name, const void *bytes, size_t size);

#endif

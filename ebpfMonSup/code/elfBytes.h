/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of an ELF file, within its budget: 512 MiB, 0.5 s of CPU time. Beyond it every read is the end of the file. What is
 * read in small pieces (entries of tables, by binary search) comes from a few pages that are kept.
 */
#ifndef EBPFMON_ELFBYTES_H
#define EBPFMON_ELFBYTES_H

#include <stddef.h>
#include <stdint.h>

typedef struct ebpfMonElfBytes ebpfMonElfBytes;

/* "fd" stays the caller's, and open. NULL without memory. One thread at a time. */
ebpfMonElfBytes *ebpfMonElfBytesNew(int fd);
void ebpfMonElfBytesFree(ebpfMonElfBytes *bytes); /* NULL does no harm */

/* Reads until "len" or the end of the file, or of the budget; returns how many bytes. */
size_t ebpfMonElfBytesRead(ebpfMonElfBytes *bytes, void *buf, size_t len, uint64_t offset);

/* 0; EFBIG: the budget of bytes is used up; ETIME: that of CPU time, which may have been this host's fault. */
int ebpfMonElfBytesIsOver(const ebpfMonElfBytes *bytes);

#endif

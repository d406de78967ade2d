/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of an ELF file, within its budget. Beyond it every read is the end of the file. What is read in small
 * pieces (entries of tables, by binary search) comes from a few pages that are kept.
 *
 * The budget is work, not time: a file is refused for what it asks of us, and not because this host is slow, or an
 * emulated one. The unit is what one byte of a table takes, about 1 ns on an ordinary host; all may be 512 Mi units.
 * The libdbCore of Base takes 16 Mi, a static softIoc 40 Mi. 10 s of CPU time are a last safety.
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

/* Work beside reading: loops over what was read. */
void ebpfMonElfBytesSpend(ebpfMonElfBytes *bytes, uint64_t work);

/* 0; EFBIG: the work is used up; ETIME: the CPU time is, which may have been this host's fault. */
int ebpfMonElfBytesIsOver(const ebpfMonElfBytes *bytes);

#endif

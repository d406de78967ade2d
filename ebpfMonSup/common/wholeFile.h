/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a whole file that an operator named: a regular file of limited size. Any thread. */
#ifndef EBPFMON_WHOLEFILE_H
#define EBPFMON_WHOLEFILE_H

#include <stddef.h>

/* Returns at most "most" bytes, which the caller frees, without a NUL after them; *length gets their number. NULL:
 * "why" gets what is wrong and what to do. */
char *ebpfMonWholeFileRead(const char *file, size_t most, size_t *length, char *why, size_t size);

#endif

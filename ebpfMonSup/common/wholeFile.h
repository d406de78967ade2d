/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that an operator named, read whole: a regular one, of a bounded size. Any thread. */
#ifndef EBPFMON_WHOLEFILE_H
#define EBPFMON_WHOLEFILE_H

#include <stddef.h>

/* At most "most" bytes, which the caller frees; there is no NUL behind them. NULL: "why" says what to do. */
char *ebpfMonWholeFileRead(const char *file, size_t most, size_t *length, char *why, size_t size);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file of queries. Any thread. */
#ifndef EBPFMON_QUERYFILE_H
#define EBPFMON_QUERYFILE_H

#include "query/querySpec.h"

/* Reads all queries of the file; the caller frees the set by free(). "path" (PATH_MAX bytes) gets the full name of
 * the file. NULL: "why" says what is wrong and what to do. */
ebpfMonQuerySet *ebpfMonQueryFileRead(const char *file, char *path, char *why, size_t size);

#endif

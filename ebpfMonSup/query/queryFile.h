/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of queries. Any thread. */
#ifndef EBPFMON_QUERYFILE_H
#define EBPFMON_QUERYFILE_H

#include "query/querySpec.h"

/* All queries of the file, which the caller frees; "path" (PATH_MAX) gets its full name. NULL: "why". */
ebpfMonQuerySet *ebpfMonQueryFileRead(const char *file, char *path, char *why, size_t size);

#endif

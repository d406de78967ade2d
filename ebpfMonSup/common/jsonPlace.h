/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the place of a mistake in a JSON text. No state; any thread. */
#ifndef EBPFMON_JSONPLACE_H
#define EBPFMON_JSONPLACE_H

#include <stddef.h>
#include <yajl_parse.h>

/* Returns the offset of the token that ends before "end". */
size_t ebpfMonJsonFindToken(const char *text, size_t length, size_t end);

/* Writes "file:line:column: why". If that is too long, the name of the file is left out. */
void ebpfMonJsonFormatPlace(const char *file, const char *text, size_t length, size_t at, const char *why, char *buf,
                            size_t size);

/* Writes to "why" what the parser does not understand. "isComplete": nonzero if the text came to its end. Returns the
 * offset of the mistake. */
size_t ebpfMonJsonDescribeMistake(yajl_handle yajl, const char *text, size_t length, int isComplete, char *why,
                                  size_t size);

#endif

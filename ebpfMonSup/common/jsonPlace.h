/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a mistake in a JSON text is. No state; any thread. */
#ifndef EBPFMON_JSONPLACE_H
#define EBPFMON_JSONPLACE_H

#include <stddef.h>
#include <yajl_parse.h>

/* The offset of the token that ends before "end". */
size_t ebpfMonJsonFindToken(const char *text, size_t length, size_t end);

/* "file:line:column: why"; when that is too long the file's name is left out. */
void ebpfMonJsonFormatPlace(const char *file, const char *text, size_t length, size_t at, const char *why, char *buf,
                            size_t size);

/* What the parser does not understand in the text, for people. "isComplete": the text came to its end. Returns the offset. */
size_t ebpfMonJsonDescribeMistake(yajl_handle yajl, const char *text, size_t length, int isComplete, char *why, size_t size);

#endif

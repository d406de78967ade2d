/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody may have meant who wrote a word that a query file does not know. No shared state; any thread. */
#ifndef EBPFMON_QUERYHINT_H
#define EBPFMON_QUERYHINT_H

#include <stddef.h>

#define EBPFMON_QUERY_HINT 80

/* Writes " Did you mean \"sort\"?", or an empty text: no word of the list is like this one, nor is it the word of
 * another language for one of them. "list": the known words, separated by ", ", with or without quotes. Returns
 * "text". */
const char *ebpfMonQueryHint(const char *word, const char *list, char text[EBPFMON_QUERY_HINT]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules file: read whole, put in force whole, or refused whole with the rules before it left in force. */
#ifndef EBPFMON_RULESFILE_H
#define EBPFMON_RULESFILE_H

#include <stddef.h>

/* What would come of a load. 0 and the number of rules, or -1; "text" for the operator. */
int ebpfMonRulesFileCheck(const char *file, unsigned *rules, char *text, size_t size);

/* Loads a file; NULL or empty: the one that was asked for last, again. Any thread; returns when the rules are in
 * force, or refused (-1). The published says so, and "text". */
int ebpfMonRulesFileLoad(const char *file, char *text, size_t size);

#endif

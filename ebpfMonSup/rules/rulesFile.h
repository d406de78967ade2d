/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules file. All of it comes in force, or all of it is refused and the rules before it stay in force. */
#ifndef EBPFMON_RULESFILE_H
#define EBPFMON_RULESFILE_H

#include <stddef.h>

/* Checks a file without loading it. 0 and the number of rules, or -1; "text" is for the operator. Any thread. */
int ebpfMonRulesFileCheck(const char *file, unsigned *rules, char *text, size_t size);

/* Loads a file; NULL or empty: the last one again. 0 when the rules are in force, -1 when they are refused. "text" is
 * for the operator; what is published says the same. Any thread. */
int ebpfMonRulesFileLoad(const char *file, char *text, size_t size);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the rules file. Either all its rules come into force, or the file is refused and the old rules stay in
 * force. */
#ifndef EBPFMON_RULESFILE_H
#define EBPFMON_RULESFILE_H

#include <stddef.h>
#include "rules/rules.h"

/* Checks a file without loading it. 0: *rules is the number of rules. -1: the file is wrong. "text" tells the
 * operator the result. Any thread; it may take as long as the file system. */
int ebpfMonRulesFileCheck(const char *file, unsigned *rules, char *text, size_t size);

/* Loads a file; NULL or "": the last one again, of those that exist; if no rules are in force, the last name. 0: its
 * rules are in force. -1: the file is refused, none was named yet, or "rules" is NULL because this IOC has no monitor.
 * "text" tells the operator the result; that of a file is also published. Any thread; it may take as long as the file
 * system. */
int ebpfMonRulesFileLoad(ebpfMonRules *rules, const char *file, char *text, size_t size);

#endif

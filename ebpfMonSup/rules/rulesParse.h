/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a set of rules from JSON (documentation/use/rules.md describes the format). If any part is wrong, no set is
 * made. Any thread. */
#ifndef EBPFMON_RULESPARSE_H
#define EBPFMON_RULESPARSE_H

#include <stddef.h>
#include <stdint.h>
#include <yajl_parse.h>
#include "rules/ruleSet.h"

/* Returns a new set, which the caller frees or puts in force. NULL: "why" has "file:line:column: reason. What to
 * do". */
ebpfMonRuleSet *ebpfMonRulesParse(const char *file, const char *text, size_t length, char *why, size_t size);

#endif

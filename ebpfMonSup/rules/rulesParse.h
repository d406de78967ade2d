/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules from JSON (documentation/rules.md has the schema). All of it is right, or there is no set. */
#ifndef EBPFMON_RULESPARSE_H
#define EBPFMON_RULESPARSE_H

#include <stddef.h>
#include "rules/ruleSet.h"

/* A new set, which the caller frees or puts in force. NULL: "why" has "file:line:column: reason. what to do". */
ebpfMonRuleSet *ebpfMonRulesParse(const char *file, const char *text, size_t length, char *why, size_t size);

#endif

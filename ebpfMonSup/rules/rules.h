/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules in force, which judge every put of every IOC. Any thread may call these functions. Each takes a lock of
 * this module for a short time, except where its comment says something else. */
#ifndef EBPFMON_RULES_H
#define EBPFMON_RULES_H

#include <stddef.h>
#include "model/published.h"
#include "rules/ruleSet.h"

typedef struct ebpfMonRules ebpfMonRules;

/* Makes an object without rules: every put is expected. NULL without memory. */
ebpfMonRules *ebpfMonRulesNew(void);
/* No other thread may use "rules" any more. NULL does no harm. */
void ebpfMonRulesFree(ebpfMonRules *rules);

/* Judges the put by the rules in force: sets "unexpected" and "rule" of the put. */
void ebpfMonRulesJudge(ebpfMonRules *rules, ebpfMonPut *put);

/* Puts a set in force, which this module owns from now on; frees the set before it. NULL: no rules are in force, and
 * every put is expected. */
void ebpfMonRulesSet(ebpfMonRules *rules, ebpfMonRuleSet *set);

typedef struct {
    char     name[EBPFMON_RULE_NAME];
    uint64_t judged, bad;
} ebpfMonRuleCount;

/* Writes how often each rule decided, for at most "most" rules. The last element is the default; its name is empty.
 * Returns the number of elements; 0: no rules are in force. */
unsigned ebpfMonRulesGetCounts(ebpfMonRules *rules, ebpfMonRuleCount *counts, unsigned most);

/* --- loading a file ---
 *
 * Loads the rules file. Either all its rules come into force, or the file is refused and the old rules stay in
 * force.
 */

/* Checks a file without loading it. 0: *rules is the number of rules. -1: the file is wrong. "text" tells the
 * operator the result. Any thread; it may take as long as the file system. */
int ebpfMonRulesFileCheck(const char *file, unsigned *rules, char *text, size_t size);

/* Loads a file; NULL or "": the last one again, of those that exist; if no rules are in force, the last name. 0: its
 * rules are in force. -1: the file is refused, none was named yet, or "rules" is NULL because this IOC has no monitor.
 * "text" tells the operator the result; that of a file is also published. Any thread; it may take as long as the file
 * system. */
int ebpfMonRulesFileLoad(ebpfMonRules *rules, const char *file, char *text, size_t size);

#endif

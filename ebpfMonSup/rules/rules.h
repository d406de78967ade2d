/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules in force, which judge every put of every IOC. Any thread may call these functions. Each takes a lock of
 * this module for a short time, except where its comment says something else. */
#ifndef EBPFMON_RULES_H
#define EBPFMON_RULES_H

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

/* Files are loaded one at a time, so the rules of the last load stay in force. Begin waits while another thread loads a
 * file. It returns the name of the file to load again ("": none), which the caller may change until it calls End. */
#define EBPFMON_RULES_FILE_SIZE sizeof(((ebpfMonPublished *)0)->rules.file)
char *ebpfMonRulesBeginLoad(ebpfMonRules *rules);
void ebpfMonRulesEndLoad(ebpfMonRules *rules);

typedef struct {
    char     name[EBPFMON_RULE_NAME];
    uint64_t judged, bad;
} ebpfMonRuleCount;

/* Writes how often each rule decided, for at most "most" rules. The last element is the default; its name is empty.
 * Returns the number of elements; 0: no rules are in force. */
unsigned ebpfMonRulesGetCounts(ebpfMonRules *rules, ebpfMonRuleCount *counts, unsigned most);

#endif

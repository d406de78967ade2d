/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules in force. Any thread. */
#ifndef EBPFMON_RULES_H
#define EBPFMON_RULES_H

#include "model/published.h"
#include "rules/ruleSet.h"

/* Sets "unexpected" and "rule" of the put by the rules in force. */
void ebpfMonRulesJudge(ebpfMonPut *put);

/* Puts a set in force; it belongs to this module from now on. NULL: no rules, every put is expected. */
void ebpfMonRulesSet(ebpfMonRuleSet *set);

/* A load of a file: one at a time, and of two loads the later one stays in force. Begin waits for a load of another
 * thread, and returns the name of the last file ("": none), which the caller may change until End. */
#define EBPFMON_RULES_FILE_SIZE sizeof(((ebpfMonPublished *)0)->rules.file)
char *ebpfMonRulesBeginLoad(void);
void ebpfMonRulesEndLoad(void);

typedef struct {
    char     name[EBPFMON_RULE_NAME];
    uint64_t judged, bad;
} ebpfMonRuleCount;

/* How often each rule decided: at most "most" of them, the default as the last one, with an empty name. Returns how
 * many are written; 0: no rules are in force. */
unsigned ebpfMonRulesGetCounts(ebpfMonRuleCount *counts, unsigned most);

#endif

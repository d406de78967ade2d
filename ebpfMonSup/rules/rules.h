/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which puts are expected. The first rule whose "pv" (and "iocs") match decides: the put is expected if it keeps all
 * that the rule asks for. Without such a rule the set's default decides.
 *
 * A set is built once, by rulesParse.c, and judged by many times. Its strings lie in one array, and the lists of its
 * rules in another, by index: both grow while it is built.
 */
#ifndef EBPFMON_RULES_H
#define EBPFMON_RULES_H

#include <stddef.h>
#include <stdint.h>
#include "model/put.h"

#define EBPFMON_RULE_NAME    41    /* with its NUL */
#define EBPFMON_RULE_PATTERN 128
#define EBPFMON_RULE_SET_MAX 10000 /* rules */

typedef struct {
    uint32_t text;    /* in chars */
    uint16_t length;
    uint16_t literal; /* characters before the first wildcard; length: there is none */
} ebpfMonRuleGlob;

/* Minutes of the local day, from included, to not. to <= from: it ends on the next day. */
typedef struct {
    uint8_t  days;    /* on which it begins: bit 0 Sunday, as tm_wday */
    uint16_t from, to;
} ebpfMonRuleTime;

typedef struct { uint32_t first, count; } ebpfMonRuleList; /* count 0: not asked for */

typedef struct {
    char     name[EBPFMON_RULE_NAME];
    unsigned at;      /* where its name stands in the file */
    int      allow;   /* 0: every put is unexpected */
    int      verified;/* the claimed user must be the real one, where that is known */
    int      hasMin, hasMax;
    double   min, max;
    unsigned origins; /* a bit an ebpfMonThrough; 0: any */
    ebpfMonRuleList pv, iocs, users, realUsers, hosts, text; /* of globs */
    ebpfMonRuleList times;
    uint64_t judged, bad;
} ebpfMonPutRule;

typedef struct ebpfMonRuleCache ebpfMonRuleCache;

typedef struct {
    int      deny;    /* what no rule is for is unexpected */
    unsigned ruleCount, globCount, timeCount;
    size_t   charCount;
    unsigned ruleRoom, globRoom, timeRoom;
    size_t   charRoom;
    ebpfMonPutRule *rule;
    ebpfMonRuleGlob *glob;
    ebpfMonRuleTime *time;
    char    *chars;
    ebpfMonRuleCache *cache; /* which rule is a PV's: goes with the set, so it is never one of another set */
    uint64_t judged, bad;    /* by the default */
} ebpfMonRuleSet;

/* NULL when out of memory; so the adding functions return -1. */
ebpfMonRuleSet *ebpfMonRuleSetNew(void);
void ebpfMonRuleSetFree(ebpfMonRuleSet *set);
int ebpfMonRuleSetAddRule(ebpfMonRuleSet *set, const ebpfMonPutRule *rule);
/* To the list that was added to last. "length" < EBPFMON_RULE_PATTERN. */
int ebpfMonRuleSetAddGlob(ebpfMonRuleSet *set, ebpfMonRuleList *list, const char *text, size_t length);
int ebpfMonRuleSetAddTime(ebpfMonRuleSet *set, ebpfMonRuleList *list, const ebpfMonRuleTime *time);

/* Sets unexpected and rule of the put. Not locked. */
void ebpfMonRuleSetJudge(ebpfMonRuleSet *set, ebpfMonPut *put);

/* Sets unexpected and rule of the put by the rules in force; any thread. */
void ebpfMonRulesJudge(ebpfMonPut *put);

/* Puts a set in force; it is ours from now on. NULL: none, every put is expected. */
void ebpfMonRulesUse(ebpfMonRuleSet *set);

typedef struct {
    char     name[EBPFMON_RULE_NAME];
    uint64_t judged, bad;
} ebpfMonRuleCount;

/* How often each rule decided: up to "most" of them, and the default as the last one, with an empty name. How many
 * are written; 0: no rules are in force. */
unsigned ebpfMonRulesCounts(ebpfMonRuleCount *counts, unsigned most);

#endif

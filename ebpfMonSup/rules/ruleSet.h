/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of rules says which puts are expected. The first rule with matching "pv" and "iocs" decides: the put is
 * expected if it keeps all conditions of this rule. If no rule matches, the default of the set decides.
 *
 * ruleSet.c builds a set once; then the set judges many puts. Rules, patterns, times and characters are in arrays
 * that grow while the set is built, so they refer to each other by index. One thread at a time may use a set.
 */
#ifndef EBPFMON_RULESET_H
#define EBPFMON_RULESET_H

#include <stddef.h>
#include <stdint.h>
#include <yajl_parse.h>

#include "model/put.h"

/* --- rules --- */

#define EBPFMON_RULE_NAME    41    /* with its NUL */
#define EBPFMON_RULE_PATTERN 128
#define EBPFMON_RULE_SET_MAX 10000 /* rules */

typedef struct {
    uint32_t text;    /* index of its first character in "chars" */
    uint16_t length;
    uint16_t literal; /* characters before the first wildcard; equal to "length": there is no wildcard */
} ebpfMonRuleGlob;

/* A window of time, in minutes of the local day: from "from" until before "to". If "to" <= "from", the window ends
 * on the next day. */
typedef struct {
    uint8_t  days;    /* the days on which it begins; bit 0 is Sunday, as in tm_wday */
    uint16_t from, to;
} ebpfMonRuleTime;

/* A list of a rule: elements of "glob" or "time". count 0: the rule does not check this. */
typedef struct { uint32_t first, count; } ebpfMonRuleList;

typedef struct {
    char     name[EBPFMON_RULE_NAME];
    unsigned at;      /* the offset of its name in the file */
    int      allow;   /* 0: every put is unexpected */
    int      verified;/* if the real user is known, the client must claim this name */
    int      automatic; /* the writer of an expected put is no person */
    int      hasMin, hasMax;
    double   min, max;
    unsigned origins; /* one bit for each ebpfMonThrough that is allowed; 0: all are */
    ebpfMonRuleList pv, iocs, users, realUsers, authorities, hosts, text; /* elements of "glob" */
    ebpfMonRuleList times;
    uint64_t judged, bad; /* the puts on which it decided, and how many of them were unexpected */
} ebpfMonPutRule;

typedef struct ebpfMonRuleCache ebpfMonRuleCache;

typedef struct {
    int      deny;    /* nonzero: a put that no rule is for is unexpected */
    unsigned ruleCount, globCount, timeCount;
    size_t   charCount;
    size_t   ruleRoom, globRoom, timeRoom, charRoom; /* elements for which the arrays have memory */
    ebpfMonPutRule *rule;
    ebpfMonRuleGlob *glob;
    ebpfMonRuleTime *time;
    char    *chars;
    ebpfMonRuleCache *cache; /* remembers which rule decides on a PV */
    uint64_t judged, bad;    /* the puts that no rule was for, and how many of them were unexpected */
} ebpfMonRuleSet;

/* NULL without memory. */
ebpfMonRuleSet *ebpfMonRuleSetNew(void);
void ebpfMonRuleSetFree(ebpfMonRuleSet *set); /* NULL does no harm */
/* Adds a copy of the rule. 0, or -1 without memory. */
int ebpfMonRuleSetAddRule(ebpfMonRuleSet *set, const ebpfMonPutRule *rule);
/* These two add an element to a list of a rule that is not in the set yet. The elements of a list are neighbours in
 * their array, so complete one list before you begin the next. "length" < EBPFMON_RULE_PATTERN. 0, or -1 without
 * memory. */
int ebpfMonRuleSetAddGlob(ebpfMonRuleSet *set, ebpfMonRuleList *list, const char *text, size_t length);
int ebpfMonRuleSetAddTime(ebpfMonRuleSet *set, ebpfMonRuleList *list, const ebpfMonRuleTime *time);

/* Sets "unexpected", "rule" and "byProgram" of the put, and counts the put at its rule. */
void ebpfMonRuleSetJudge(ebpfMonRuleSet *set, ebpfMonPut *put);

/* --- parsing ---
 *
 * Makes a set of rules from JSON (documentation/use/rules.md describes the format). If any part is wrong, no set is
 * made. Any thread. */

/* Returns a new set, which the caller frees or puts in force. NULL: "why" has "file:line:column: reason. What to
 * do". */
ebpfMonRuleSet *ebpfMonRulesParse(const char *file, const char *text, size_t length, char *why, size_t size);

#endif

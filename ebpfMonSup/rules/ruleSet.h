/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which puts are expected. The first rule whose "pv" (and "iocs") match decides: the put is expected if it keeps all
 * that the rule asks for. Without such a rule the set's default decides.
 *
 * A set is built once (rulesParse.c), then judges many puts. Its strings stand in one array, and the lists of its rules
 * in another, by index: both grow while it is built. One thread at a time may use a set.
 */
#ifndef EBPFMON_RULESET_H
#define EBPFMON_RULESET_H

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

/* Minutes of the local day, "from" included, "to" excluded. to <= from: it ends on the next day. */
typedef struct {
    uint8_t  days;    /* on which it begins: bit 0 Sunday, as tm_wday */
    uint16_t from, to;
} ebpfMonRuleTime;

typedef struct { uint32_t first, count; } ebpfMonRuleList; /* count 0: the rule does not ask for it */

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
    uint64_t judged, bad; /* puts on which it decided; of those, unexpected ones */
} ebpfMonPutRule;

typedef struct ebpfMonRuleCache ebpfMonRuleCache;

typedef struct {
    int      deny;    /* a put for which there is no rule is unexpected */
    unsigned ruleCount, globCount, timeCount;
    size_t   charCount;
    size_t   ruleRoom, globRoom, timeRoom, charRoom;
    ebpfMonPutRule *rule;
    ebpfMonRuleGlob *glob;
    ebpfMonRuleTime *time;
    char    *chars;
    ebpfMonRuleCache *cache; /* which rule is a PV's */
    uint64_t judged, bad;    /* puts for which there was no rule; of those, unexpected ones */
} ebpfMonRuleSet;

/* NULL without memory; then the functions that add return -1. */
ebpfMonRuleSet *ebpfMonRuleSetNew(void);
void ebpfMonRuleSetFree(ebpfMonRuleSet *set);
int ebpfMonRuleSetAddRule(ebpfMonRuleSet *set, const ebpfMonPutRule *rule);
/* These two add to a list of a rule that is not in the set yet. One list must be complete before the next is begun,
 * because the elements of a list stand side by side. "length" < EBPFMON_RULE_PATTERN. */
int ebpfMonRuleSetAddGlob(ebpfMonRuleSet *set, ebpfMonRuleList *list, const char *text, size_t length);
int ebpfMonRuleSetAddTime(ebpfMonRuleSet *set, ebpfMonRuleList *list, const ebpfMonRuleTime *time);

/* Sets "unexpected" and "rule" of the put, and counts. */
void ebpfMonRuleSetJudge(ebpfMonRuleSet *set, ebpfMonPut *put);

#endif

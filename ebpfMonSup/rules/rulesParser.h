/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser of rules: what rulesParse.c (the whole file) and rulesTokens.c (one token after the other) share.
 *
 * Base's yajl calls back for each token. Of an error it gives only the offset behind the token
 * (yajl_get_bytes_consumed, libcom/src/yajl/yajl_parser.c), and that only within the text that it got last: so it gets
 * the whole file at once, and the beginning of the token is looked for backwards.
 */
#ifndef EBPFMON_RULESPARSER_H
#define EBPFMON_RULESPARSER_H

#include <yajl_parse.h>

#include "rules/ruleSet.h"

/* Where the parser is in the file. */
typedef enum { inNothing, inFile, inRules, inRule, inList, inTimes, inTime, atEnd } ebpfMonRulesPlace;

/* What stands behind a key. The lists of globs come last. */
typedef enum { isName, isBool, isNumber, isTimes, isOrigins, isGlobs, isNamesOrNone, isText } ebpfMonRulesKind;

typedef struct {
    const char *name;
    ebpfMonRulesKind is;
    size_t offset; /* in the rule */
    size_t given;  /* numbers: in the rule, the flag that it is set */
} ebpfMonRulesKey;

typedef struct {
    const char *text;
    size_t length;
    yajl_handle yajl;
    ebpfMonRuleSet *set;
    ebpfMonRulesPlace at;
    const ebpfMonRulesKey *now; /* whose value comes */
    unsigned fileSeen, ruleSeen, timeSeen; /* a bit for each key that was there */
    ebpfMonPutRule rule;     /* being read */
    size_t ruleAt, timeAt;
    int    timeList;      /* "times" is a list, not a single window */
    ebpfMonRuleTime time;
    unsigned listed;      /* elements of the list */
    char   why[320];
    size_t whyAt;
} ebpfMonRulesParser;

extern const yajl_callbacks ebpfMonRulesCallbacks;

/* Stops the parser with a reason, at an offset of the text. Always 0: what a callback returns to stop yajl. */
int ebpfMonRulesRefuse(ebpfMonRulesParser *parser, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same without memory, at the last token. */
int ebpfMonRulesRefuseMemory(ebpfMonRulesParser *parser);

#endif

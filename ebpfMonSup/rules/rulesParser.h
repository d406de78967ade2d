/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the parser, which rulesParse.c (the whole file) and rulesTokens.c (one token after the other) share.
 * Private to this room. One thread.
 *
 * Base's yajl calls a function for each token. If something is wrong, yajl tells only the offset of the end of the
 * token (yajl_get_bytes_consumed, libcom/src/yajl/yajl_parser.c), counted from the beginning of the text that it got
 * last. So the whole file is given to yajl at once, and the beginning of the token is searched backwards from its end.
 */
#ifndef EBPFMON_RULESPARSER_H
#define EBPFMON_RULESPARSER_H

#include <yajl_parse.h>

#include "rules/ruleSet.h"

/* Where the parser is in the file. */
typedef enum { inNothing, inFile, inRules, inRule, inList, inTimes, inTime, atEnd } ebpfMonRulesPlace;

/* The kind of value that a key has. Kinds that may have a list as value come last, from isOrigins on. */
typedef enum { isName, isBool, isNumber, isTimes, isOrigins, isGlobs, isNamesOrNone, isText } ebpfMonRulesKind;

typedef struct {
    const char *name;
    ebpfMonRulesKind is;
    size_t offset; /* of its value in ebpfMonPutRule */
    size_t given;  /* of a number: the offset of the flag that says it is set */
} ebpfMonRulesKey;

typedef struct {
    const char *text;
    size_t length;
    yajl_handle yajl;
    ebpfMonRuleSet *set;
    ebpfMonRulesPlace at;
    const ebpfMonRulesKey *now; /* the key of the value that is read now */
    unsigned fileSeen, ruleSeen, timeSeen; /* one bit for each key that was read */
    ebpfMonPutRule rule;     /* the rule that is read now */
    size_t ruleAt, timeAt;   /* offsets in the text of the rule, and of the window of "times" */
    int    timeList;         /* "times" is a list, not a single window */
    ebpfMonRuleTime time;    /* the window that is read now */
    unsigned listed;         /* elements of the list so far */
    char   why[320];         /* why the file is refused; empty: it is not */
    size_t whyAt;            /* the offset in the text to which this applies */
} ebpfMonRulesParser;

extern const yajl_callbacks ebpfMonRulesCallbacks; /* their context is an ebpfMonRulesParser */

/* Refuses the file: sets the reason and its offset in the text. Always returns 0: a callback returns 0 to stop yajl. */
int ebpfMonRulesRefuse(ebpfMonRulesParser *parser, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses the file at the last token, because there is no memory. Returns 0. */
int ebpfMonRulesRefuseMemory(ebpfMonRulesParser *parser);

#endif

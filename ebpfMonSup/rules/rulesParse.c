/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Base's yajl calls back for each token. Of an error it tells only the offset behind the token
 * (yajl_get_bytes_consumed, libcom/src/yajl/yajl_parser.c), and that only within the text handed over last: so the
 * whole file goes in at once, and the token's beginning is looked for backwards.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsStdlib.h>
#include <yajl_parse.h>

#include "rules/rulesParse.h"
#include "rules/rulesWords.h"

typedef enum { inNothing, inFile, inRules, inRule, inList, inTimes, inTime, atEnd } place;

/* What stands behind a key. The lists of globs come last. */
typedef enum { isName, isBool, isNumber, isTimes, isOrigins, isGlobs, isNamesOrNone, isText } kind;

typedef struct {
    const char *name;
    kind   is;
    size_t offset; /* in the rule */
    size_t given;  /* numbers: in the rule, where it is noted */
} key;

#define RULE(member) offsetof(ebpfMonPutRule, member)
#define KEYS(table)  (sizeof(table) / sizeof(table[0]))

static const key fileKeys[] = {{"default"}, {"rules"}};
static const key timeKeys[] = {{"days"}, {"from"}, {"to"}};
static const key ruleKeys[] = {
    {"name",      isName,    RULE(name)},
    {"pv",        isGlobs,   RULE(pv)},
    {"iocs",      isGlobs,   RULE(iocs)},
    {"allow",     isBool,    RULE(allow)},
    {"origins",   isOrigins, RULE(origins)},
    {"users",     isNamesOrNone, RULE(users)},
    {"realUsers", isNamesOrNone, RULE(realUsers)},
    {"verified",  isBool,    RULE(verified)},
    {"hosts",     isNamesOrNone, RULE(hosts)},
    {"times",     isTimes,   RULE(times)},
    {"min",       isNumber,  RULE(min), RULE(hasMin)},
    {"max",       isNumber,  RULE(max), RULE(hasMax)},
    {"text",      isText,    RULE(text)},
};

typedef struct {
    const char *text;
    size_t length;
    yajl_handle yajl;
    ebpfMonRuleSet *set;
    place  at;
    const key *now;       /* whose value comes */
    unsigned fileSeen, ruleSeen, timeSeen; /* keys, a bit each */
    ebpfMonPutRule rule;     /* being read */
    size_t ruleAt, timeAt;
    int    timeList;      /* "times" is a list, not a single window */
    ebpfMonRuleTime time;
    unsigned listed;      /* elements of the list */
    char   why[320];
    size_t whyAt;
} parser;

/* Where the token that was read last begins. */
static size_t tokenAt(const parser *p)
{
    return ebpfMonTokenAt(p->text, p->length, yajl_get_bytes_consumed(p->yajl));
}

static int __attribute__((format(printf, 3, 4))) refuse(parser *p, size_t at, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), format, args);
    va_end(args);
    p->whyAt = at;
    return 0;
}

static int noMemory(parser *p)
{
    return refuse(p, tokenAt(p), "out of memory. Use fewer rules");
}

/* Which value was expected where another stands. */
static int wrong(parser *p)
{
    static const char *const values[] = {
        "a text", "true or false", "a number", "a window {\"days\", \"from\", \"to\"} or a list of them",
        "one of \"CA\", \"PVA\", \"link\", \"CA link\", \"shell\", \"start-up\", \"thread\" or a list of them",
        "a pattern or a list of patterns", "a pattern or a list of patterns", "a pattern or a list of patterns"
    };
    size_t at = tokenAt(p);

    switch (p->at) {
    case inNothing:
        return refuse(p, at, "the file is not an object. Write { \"rules\": [ ... ] }");
    case inFile:
        return refuse(p, at, "wrong type: \"%s\" must be %s. Correct it", p->now->name,
                      p->now == fileKeys ? "\"allow\" or \"deny\"" : "a list [ ... ] of rules");
    case inRules:
        return refuse(p, at, "a rule must be an object. Write { \"name\": \"...\", \"pv\": \"...\" }");
    case inTimes:
        return refuse(p, at, "a window of \"times\" must be an object {\"days\", \"from\", \"to\"}. Correct it");
    case inTime:
        return refuse(p, at, "wrong type: \"%s\" must be a text. Write %s", p->now->name,
                      p->now == timeKeys ? "\"Mon-Fri\" or \"Sat,Sun\"" : "\"HH:MM\", in quotes");
    case inList:
        return refuse(p, at, "wrong type: an element of \"%s\" must be a text. Put it in quotes", p->now->name);
    default:
        return refuse(p, at, "wrong type: \"%s\" must be %s. Correct it", p->now->name, values[p->now->is]);
    }
}

static int copyText(parser *p, const char *text, size_t length, char *to, size_t size, const char *what)
{
    if (length >= size)
        return refuse(p, tokenAt(p), "%s has more than %u characters. Shorten it", what, (unsigned)size - 1);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return refuse(p, tokenAt(p), "%s has a control character (code %d). Type it again", what, text[i]);
    memcpy(to, text, length);
    to[length] = 0;
    return 1;
}

static int addGlob(parser *p, const char *text, size_t length)
{
    char glob[EBPFMON_RULE_PATTERN], what[40];

    snprintf(what, sizeof(what), "a pattern of \"%s\"", p->now->name);
    if (!copyText(p, text, length, glob, sizeof(glob), what))
        return 0;
    if (!length && p->now->is == isGlobs)
        return refuse(p, tokenAt(p), "%s is empty. Write * for all", what);
    /* epicsStrGlobMatch takes [ literally: it would be accepted and never match. In values arrays begin with it. */
    if (p->now->is != isText && strchr(glob, '['))
        return refuse(p, tokenAt(p), "%s has a [: sets are not supported. Use ? for one character, * for any", what);
    if (ebpfMonRuleSetAddGlob(p->set, (ebpfMonRuleList *)((char *)&p->rule + p->now->offset), glob, length))
        return noMemory(p);
    return 1;
}

static int addOrigin(parser *p, const char *text, size_t length)
{
    int through = ebpfMonRuleOrigin(text, length);

    if (through < 0)
        return refuse(p, tokenAt(p), "there is no origin \"%.*s\". Take CA, PVA, link, CA link, shell, start-up or "
                      "thread", length < 40 ? (int)length : 40, text);
    p->rule.origins |= 1u << through;
    return 1;
}

static int timeText(parser *p, const char *text, size_t length)
{
    char value[40];

    if (!copyText(p, text, length, value, sizeof(value), "this text"))
        return 0;
    if (p->now == timeKeys) {
        if (ebpfMonRuleDays(value, &p->time.days))
            return refuse(p, tokenAt(p), "\"%s\" are no days. Write Mon Tue Wed Thu Fri Sat Sun as \"Mon-Fri\" or "
                          "\"Sat,Sun\"", value);
    } else if (ebpfMonRuleClock(value, p->now == &timeKeys[1] ? &p->time.from : &p->time.to)) {
        return refuse(p, tokenAt(p), "\"%s\" is no time of day. Write HH:MM, from 00:00 to 24:00", value);
    }
    return 1;
}

static int ruleText(parser *p, const char *text, size_t length)
{
    switch (p->now->is) {
    case isName:
        if (!length)
            return refuse(p, tokenAt(p), "the name is empty. Give the rule one: it is shown with unexpected puts");
        p->rule.at = (unsigned)tokenAt(p);
        return copyText(p, text, length, p->rule.name, sizeof(p->rule.name), "the name");
    case isOrigins:
        return addOrigin(p, text, length);
    case isGlobs:
    case isNamesOrNone:
    case isText:
        return addGlob(p, text, length);
    default:
        return wrong(p);
    }
}

static int onString(void *context, const unsigned char *string, size_t length)
{
    parser *p = context;
    const char *text = (const char *)string;

    switch (p->at) {
    case inFile:
        if (p->now != fileKeys)
            return wrong(p);
        if (length == 4 && memcmp(text, "deny", 4) == 0)
            p->set->deny = 1;
        else if (length != 5 || memcmp(text, "allow", 5) != 0)
            return refuse(p, tokenAt(p), "\"default\" cannot be \"%.*s\". Write \"allow\" or \"deny\"",
                          length < 40 ? (int)length : 40, text);
        return 1;
    case inList:
        p->listed++;
        return ruleText(p, text, length);
    case inRule:
        return ruleText(p, text, length);
    case inTime:
        return timeText(p, text, length);
    default:
        return wrong(p);
    }
}

static int onNull(void *context)
{
    return wrong(context);
}

static int onBool(void *context, int value)
{
    parser *p = context;

    if (p->at != inRule || p->now->is != isBool)
        return wrong(p);
    *(int *)((char *)&p->rule + p->now->offset) = value;
    return 1;
}

static int onNumber(void *context, const char *number, size_t length)
{
    parser *p = context;
    char text[64];
    double value;

    if (p->at != inRule || p->now->is != isNumber)
        return wrong(p);
    snprintf(text, sizeof(text), "%.*s", length < sizeof(text) ? (int)length : (int)sizeof(text), number);
    if (length >= sizeof(text) || epicsParseDouble(text, &value, NULL) || !isfinite(value))
        return refuse(p, tokenAt(p), "\"%s\" is no finite number. Leave it out for no limit", p->now->name);
    *(double *)((char *)&p->rule + p->now->offset) = value;
    *(int *)((char *)&p->rule + p->now->given) = 1;
    return 1;
}

static int beginTime(parser *p)
{
    p->at = inTime;
    p->timeSeen = 0;
    p->timeAt = tokenAt(p);
    p->time = (ebpfMonRuleTime){0x7f, 0, 24 * 60};
    return 1;
}

static int onMap(void *context)
{
    parser *p = context;

    switch (p->at) {
    case inNothing:
        p->at = inFile;
        return 1;
    case inRules:
        if (p->set->ruleCount == EBPFMON_RULE_SET_MAX)
            return refuse(p, tokenAt(p), "there are more than %d rules. Use patterns for several PVs",
                          EBPFMON_RULE_SET_MAX);
        p->at = inRule;
        p->ruleSeen = 0;
        p->ruleAt = tokenAt(p);
        memset(&p->rule, 0, sizeof(p->rule));
        p->rule.allow = 1;
        return 1;
    case inRule:
        if (p->now->is != isTimes)
            return wrong(p);
        p->timeList = 0;
        return beginTime(p);
    case inTimes:
        p->timeList = 1;
        p->listed++;
        return beginTime(p);
    default:
        return wrong(p);
    }
}

static int findKey(parser *p, const key *keys, size_t count, unsigned *seen, const char *text, size_t length,
                   const char *where, const char *known)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(keys[i].name) != length || memcmp(keys[i].name, text, length) != 0)
            continue;
        if (*seen & 1u << i)
            return refuse(p, tokenAt(p), "\"%s\" is there twice. Take one out", keys[i].name);
        *seen |= 1u << i;
        p->now = &keys[i];
        return 1;
    }
    return refuse(p, tokenAt(p), "%s cannot have \"%.*s\". Known are: %s", where, length < 40 ? (int)length : 40, text,
                  known);
}

static int onKey(void *context, const unsigned char *string, size_t length)
{
    parser *p = context;
    const char *text = (const char *)string;

    switch (p->at) {
    case inFile:
        return findKey(p, fileKeys, KEYS(fileKeys), &p->fileSeen, text, length, "the file", "default, rules");
    case inRule:
        return findKey(p, ruleKeys, KEYS(ruleKeys), &p->ruleSeen, text, length, "a rule",
                       "name, pv, iocs, allow, origins, users, realUsers, verified, hosts, times, min, max, text");
    default:
        return findKey(p, timeKeys, KEYS(timeKeys), &p->timeSeen, text, length, "a window of \"times\"",
                       "days, from, to");
    }
}

static int endRule(parser *p)
{
    ebpfMonPutRule *rule = &p->rule;

    p->at = inRules;
    if (!rule->name[0])
        return refuse(p, p->ruleAt, "the rule has no \"name\". Give it one: it is shown with unexpected puts");
    if (!rule->pv.count)
        return refuse(p, p->ruleAt, "rule \"%s\" has no \"pv\". Say for which PVs it is, \"*\" for all", rule->name);
    if (rule->hasMin && rule->hasMax && rule->min > rule->max)
        return refuse(p, p->ruleAt, "rule \"%s\": min %.10g is above max %.10g. Exchange them", rule->name, rule->min,
                      rule->max);
    return ebpfMonRuleSetAddRule(p->set, rule) ? noMemory(p) : 1;
}

static int endTime(parser *p)
{
    int from = p->timeSeen & 2, to = p->timeSeen & 4;

    p->at = p->timeList ? inTimes : inRule;
    if (!p->timeSeen)
        return refuse(p, p->timeAt, "an empty window of \"times\". Give it \"days\", or \"from\" and \"to\"");
    if (!from != !to)
        return refuse(p, p->timeAt, "a window of \"times\" has \"%s\" only. Give it both \"from\" and \"to\"",
                      from ? "from" : "to");
    if (p->time.from == p->time.to || p->time.from == 24 * 60)
        return refuse(p, p->timeAt, "a window of \"times\" has no length. Leave \"from\" and \"to\" out for the whole "
                      "day");
    return ebpfMonRuleSetAddTime(p->set, &p->rule.times, &p->time) ? noMemory(p) : 1;
}

static int onMapEnd(void *context)
{
    parser *p = context;

    switch (p->at) {
    case inRule:
        return endRule(p);
    case inTime:
        return endTime(p);
    default:
        p->at = atEnd;
        if (!(p->fileSeen & 2))
            return refuse(p, tokenAt(p), "there are no \"rules\". Write \"rules\": [ ... ], empty for none");
        return 1;
    }
}

static int onArray(void *context)
{
    parser *p = context;

    p->listed = 0;
    if (p->at == inFile && p->now == &fileKeys[1])
        p->at = inRules;
    else if (p->at == inRule && p->now->is == isTimes)
        p->at = inTimes;
    else if (p->at == inRule && p->now->is >= isOrigins)
        p->at = inList;
    else
        return wrong(p);
    return 1;
}

static int onArrayEnd(void *context)
{
    parser *p = context;

    if (p->at == inRules) {
        p->at = inFile;
        return 1;
    }
    p->at = inRule;
    if (!p->listed)
        return refuse(p, tokenAt(p), "\"%s\" is an empty list. %s", p->now->name, p->now->offset == RULE(pv) ?
                      "Say for which PVs the rule is, \"*\" for all" : "Leave it out if anything will do");
    return 1;
}

static const yajl_callbacks callbacks = {
    onNull, onBool, NULL, NULL, onNumber, onString, onMap, onKey, onMapEnd, onArray, onArrayEnd
};

static int byName(const void *a, const void *b)
{
    const ebpfMonPutRule *one = *(const ebpfMonPutRule *const *)a, *other = *(const ebpfMonPutRule *const *)b;
    int order = strcmp(one->name, other->name);

    return order ? order : (one->at > other->at) - (one->at < other->at);
}

/* 0; or -1 and the second of two rules with one name, the first such in the file. */
static int namedTwice(parser *p)
{
    unsigned count = p->set->ruleCount;
    const ebpfMonPutRule **sorted = malloc((count + 1) * sizeof(*sorted)), *second = NULL;

    if (!sorted)
        return noMemory(p) - 1;
    for (unsigned i = 0; i < count; i++)
        sorted[i] = &p->set->rule[i];
    qsort(sorted, count, sizeof(*sorted), byName);
    for (unsigned i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && (!second || sorted[i]->at < second->at))
            second = sorted[i];
    free(sorted);
    if (!second)
        return 0;
    return refuse(p, second->at, "there are two rules \"%s\". Give each its own name", second->name) - 1;
}

static void yajlRefuses(parser *p, int complete)
{
    unsigned char *text = yajl_get_error(p->yajl, 0, (const unsigned char *)p->text, p->length);
    size_t at = yajl_get_bytes_consumed(p->yajl);

    if (complete) /* at the end of the text; the offset is that of a blank which yajl appends */
        at = p->length;
    else if (at)
        at--;
    refuse(p, at, "no JSON: %.*s. Correct it; // comments are allowed", text ? (int)strcspn((char *)text, "\n") : 1,
           text ? (char *)text : "?");
    if (text)
        yajl_free_error(p->yajl, text);
}

ebpfMonRuleSet *ebpfMonRulesParse(const char *file, const char *text, size_t length, char *why, size_t size)
{
    parser *p = calloc(1, sizeof(*p));
    ebpfMonRuleSet *set = NULL;

    if (!p || !(p->set = ebpfMonRuleSetNew()) || !(p->yajl = yajl_alloc(&callbacks, NULL, p))) {
        snprintf(why, size, "%s: out of memory", file);
    } else {
        p->text = text;
        p->length = length;
        if (yajl_parse(p->yajl, (const unsigned char *)text, length) != yajl_status_ok) {
            if (!p->why[0])
                yajlRefuses(p, 0);
        } else if (yajl_complete_parse(p->yajl) != yajl_status_ok) {
            if (!p->why[0])
                yajlRefuses(p, 1);
        } else {
            namedTwice(p);
        }
        if (p->why[0]) {
            ebpfMonPosition(file, text, length, p->whyAt, p->why, why, size);
        } else {
            set = p->set;
            p->set = NULL;
        }
    }
    if (p) {
        if (p->yajl)
            yajl_free(p->yajl);
        ebpfMonRuleSetFree(p->set);
        free(p);
    }
    return set;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <epicsStdlib.h>
#include <epicsString.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/jsonPlace.h"
#include "common/text.h"
#include "model/put.h"
#include "rules/rulesParse.h"

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

/* --- words --- */

/* Reads single words of a rules file: days, times of day, origins. No state. */

static int readDay(const char **text)
{
    static const char days[7][4] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

    for (int d = 0; d < 7; d++) {
        if (epicsStrnCaseCmp(*text, days[d], 3) == 0) {
            *text += 3;
            return d;
        }
    }
    return -1;
}

/* Reads "Mon-Fri,Sun" into one bit for each day; bit 0 is Sunday. A range may go over the end of the week. 0, or -1:
 * the text is wrong. */
static int readRulesDays(const char *text, uint8_t *days)
{
    *days = 0;
    for (;;) {
        int first = readDay(&text), last = first;

        if (first < 0)
            return -1;
        if (*text == '-') {
            text++;
            last = readDay(&text);
            if (last < 0)
                return -1;
        }
        for (int d = first; ; d = (d + 1) % 7) {
            *days |= (uint8_t)(1u << d);
            if (d == last)
                break;
        }
        if (!*text)
            return 0;
        if (*text++ != ',')
            return -1;
    }
}

/* Reads "HH:MM", from 00:00 to 24:00, as minutes of the day. 0, or -1: the text is wrong. */
static int readRulesClock(const char *t, uint16_t *minute)
{
    int hours, minutes;

    if (strlen(t) != 5 || !isdigit((unsigned char)t[0]) || !isdigit((unsigned char)t[1]) || t[2] != ':' ||
        !isdigit((unsigned char)t[3]) || !isdigit((unsigned char)t[4]))
        return -1;
    hours = (t[0] - '0') * 10 + t[1] - '0';
    minutes = (t[3] - '0') * 10 + t[4] - '0';
    if (minutes > 59 || hours * 60 + minutes > 24 * 60)
        return -1;
    *minute = (uint16_t)(hours * 60 + minutes);
    return 0;
}

/* Returns the ebpfMonThrough of this name, in capital or small letters; -1: there is none. */
static int readRulesOrigin(const char *text, size_t length)
{
    for (int through = 0; through < ebpfMonByCount; through++) {
        const char *known = ebpfMonThroughName((ebpfMonThrough)through);

        if (strlen(known) == length && epicsStrnCaseCmp(known, text, length) == 0)
            return through;
    }
    return -1;
}

/* --- tokens --- */

/*
 * Reads one token of the rules file after the other. A callback returns 1, or 0 to stop yajl.
 *
 * Base's yajl calls a function for each token. If something is wrong, yajl tells only the offset of the end of the
 * token (yajl_get_bytes_consumed, libcom/src/yajl/yajl_parser.c), counted from the beginning of the text that it got
 * last. So the whole file is given to yajl at once, and the beginning of the token is searched backwards from its end.
 */

#define RULE(member) offsetof(ebpfMonPutRule, member)
#define KEYS(table)  (sizeof(table) / sizeof(table[0]))

static const ebpfMonRulesKey fileKeys[] = {{"default"}, {"rules"}};
static const ebpfMonRulesKey timeKeys[] = {{"days"}, {"from"}, {"to"}};
static const ebpfMonRulesKey ruleKeys[] = {
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

/* The offset in the text at which the last token begins. */
static size_t getTokenPlace(const ebpfMonRulesParser *p)
{
    return ebpfMonJsonFindToken(p->text, p->length, yajl_get_bytes_consumed(p->yajl));
}

/* Refuses the file: sets the reason and its offset in the text. Always returns 0: a callback returns 0 to stop yajl. */
static int refuseFile(ebpfMonRulesParser *p, size_t at, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), format, args);
    va_end(args);
    p->whyAt = at;
    return 0;
}

/* Refuses the file at the last token. Returns 0. */
static int refuseToken(ebpfMonRulesParser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuseToken(ebpfMonRulesParser *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), format, args);
    va_end(args);
    p->whyAt = getTokenPlace(p);
    return 0;
}

/* Refuses the file at the last token, because there is no memory. Returns 0. */
static int refuseWithoutMemory(ebpfMonRulesParser *p)
{
    return refuseToken(p, "out of memory. Use fewer rules");
}

/* Refuses the last token; the reason says which value was expected instead. */
static int refuseType(ebpfMonRulesParser *p)
{
    static const char *const values[] = {
        "a text", "true or false", "a number", "a window {\"days\", \"from\", \"to\"} or a list of them",
        "one of \"CA\", \"PVA\", \"link\", \"CA link\", \"shell\", \"start-up\", \"thread\" or a list of them",
        "a pattern or a list of patterns", "a pattern or a list of patterns", "a pattern or a list of patterns"
    };

    switch (p->at) {
    case inNothing:
        return refuseToken(p, "the file is not an object. Write { \"rules\": [ ... ] }");
    case inFile:
        return refuseToken(p, "wrong type: \"%s\" must be %s. Correct it", p->now->name,
                           p->now == fileKeys ? "\"allow\" or \"deny\"" : "a list [ ... ] of rules");
    case inRules:
        return refuseToken(p, "a rule must be an object. Write { \"name\": \"...\", \"pv\": \"...\" }");
    case inTimes:
        return refuseToken(p, "a window of \"times\" must be an object {\"days\", \"from\", \"to\"}. Correct it");
    case inTime:
        return refuseToken(p, "wrong type: \"%s\" must be a text. Write %s", p->now->name,
                           p->now == timeKeys ? "\"Mon-Fri\" or \"Sat,Sun\"" : "\"HH:MM\", in quotes");
    case inList:
        return refuseToken(p, "wrong type: an element of \"%s\" must be a text. Put it in quotes", p->now->name);
    default:
        return refuseToken(p, "wrong type: \"%s\" must be %s. Correct it", p->now->name, values[p->now->is]);
    }
}

static int copyText(ebpfMonRulesParser *p, const char *text, size_t length, char *to, size_t size, const char *what)
{
    if (length >= size)
        return refuseToken(p, "%s has more than %u characters. Shorten it", what, (unsigned)size - 1);
    for (size_t i = 0; i < length; i++)
        if (ebpfMonTextIsControl(text[i]))
            return refuseToken(p, "%s has a control character (code %d). Type it again", what, text[i]);
    memcpy(to, text, length);
    to[length] = 0;
    return 1;
}

static int addGlob(ebpfMonRulesParser *p, const char *text, size_t length)
{
    char glob[EBPFMON_RULE_PATTERN], what[40];

    snprintf(what, sizeof(what), "a pattern of \"%s\"", p->now->name);
    if (!copyText(p, text, length, glob, sizeof(glob), what))
        return 0;
    if (!length && p->now->is == isGlobs)
        return refuseToken(p, "%s is empty. Write * for all", what);
    /* epicsStrGlobMatch knows no sets: it would compare [ as a plain character. Most people who write [ mean a set,
     * so it is refused; for a name with [ they can write ?. In values it is allowed, because arrays are shown with
     * it. */
    if (p->now->is != isText && strchr(glob, '['))
        return refuseToken(p, "%s has a [: sets are not supported. Use ? for one character, * for any", what);
    if (ebpfMonRuleSetAddGlob(p->set, (ebpfMonRuleList *)((char *)&p->rule + p->now->offset), glob, length))
        return refuseWithoutMemory(p);
    return 1;
}

static int addOrigin(ebpfMonRulesParser *p, const char *text, size_t length)
{
    int through = readRulesOrigin(text, length);

    if (through < 0)
        return refuseToken(p, "there is no origin \"%.*s\". Take CA, PVA, link, CA link, shell, start-up or "
                           "thread", length < 40 ? (int)length : 40, text);
    p->rule.origins |= 1u << through;
    return 1;
}

static int readTimeText(ebpfMonRulesParser *p, const char *text, size_t length)
{
    char value[40];

    if (!copyText(p, text, length, value, sizeof(value), "this text"))
        return 0;
    if (p->now == timeKeys) {
        if (readRulesDays(value, &p->time.days))
            return refuseToken(p, "\"%s\" are no days. Write Mon Tue Wed Thu Fri Sat Sun as \"Mon-Fri\" or "
                               "\"Sat,Sun\"", value);
    } else if (readRulesClock(value, p->now == &timeKeys[1] ? &p->time.from : &p->time.to)) {
        return refuseToken(p, "\"%s\" is no time of day. Write HH:MM, from 00:00 to 24:00", value);
    }
    return 1;
}

static int readRuleText(ebpfMonRulesParser *p, const char *text, size_t length)
{
    switch (p->now->is) {
    case isName:
        if (!length)
            return refuseToken(p, "the name is empty. Give the rule one: it is shown with unexpected puts");
        p->rule.at = (unsigned)getTokenPlace(p);
        return copyText(p, text, length, p->rule.name, sizeof(p->rule.name), "the name");
    case isOrigins:
        return addOrigin(p, text, length);
    case isGlobs:
    case isNamesOrNone:
    case isText:
        return addGlob(p, text, length);
    default:
        return refuseType(p);
    }
}

static int onString(void *context, const unsigned char *string, size_t length)
{
    ebpfMonRulesParser *p = context;
    const char *text = (const char *)string;

    switch (p->at) {
    case inFile:
        if (p->now != fileKeys)
            return refuseType(p);
        if (length == 4 && memcmp(text, "deny", 4) == 0)
            p->set->deny = 1;
        else if (length != 5 || memcmp(text, "allow", 5) != 0)
            return refuseToken(p, "\"default\" cannot be \"%.*s\". Write \"allow\" or \"deny\"",
                               length < 40 ? (int)length : 40, text);
        return 1;
    case inList:
        p->listed++;
        return readRuleText(p, text, length);
    case inRule:
        return readRuleText(p, text, length);
    case inTime:
        return readTimeText(p, text, length);
    default:
        return refuseType(p);
    }
}

static int onNull(void *context)
{
    return refuseType(context);
}

static int onBool(void *context, int value)
{
    ebpfMonRulesParser *p = context;

    if (p->at != inRule || p->now->is != isBool)
        return refuseType(p);
    *(int *)((char *)&p->rule + p->now->offset) = value;
    return 1;
}

static int onNumber(void *context, const char *number, size_t length)
{
    ebpfMonRulesParser *p = context;
    char text[64];
    double value;

    if (p->at != inRule || p->now->is != isNumber)
        return refuseType(p);
    snprintf(text, sizeof(text), "%.*s", length < sizeof(text) ? (int)length : (int)sizeof(text), number);
    if (length >= sizeof(text) || epicsParseDouble(text, &value, NULL) || !isfinite(value))
        return refuseToken(p, "\"%s\" is no finite number. Leave it out for no limit", p->now->name);
    memcpy((char *)&p->rule + p->now->offset, &value, sizeof(value));
    *(int *)((char *)&p->rule + p->now->given) = 1;
    return 1;
}

static int beginTime(ebpfMonRulesParser *p)
{
    p->at = inTime;
    p->timeSeen = 0;
    p->timeAt = getTokenPlace(p);
    p->time = (ebpfMonRuleTime){0x7f, 0, 24 * 60};
    return 1;
}

static int onMap(void *context)
{
    ebpfMonRulesParser *p = context;

    switch (p->at) {
    case inNothing:
        p->at = inFile;
        return 1;
    case inRules:
        if (p->set->ruleCount == EBPFMON_RULE_SET_MAX)
            return refuseToken(p, "there are more than %d rules. Use patterns for several PVs",
                               EBPFMON_RULE_SET_MAX);
        p->at = inRule;
        p->ruleSeen = 0;
        p->ruleAt = getTokenPlace(p);
        memset(&p->rule, 0, sizeof(p->rule));
        p->rule.allow = 1;
        return 1;
    case inRule:
        if (p->now->is != isTimes)
            return refuseType(p);
        p->timeList = 0;
        return beginTime(p);
    case inTimes:
        p->timeList = 1;
        p->listed++;
        return beginTime(p);
    default:
        return refuseType(p);
    }
}

static int findKey(ebpfMonRulesParser *p, const ebpfMonRulesKey *keys, size_t count, unsigned *seen, const char *text,
                   size_t length, const char *where, const char *known)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(keys[i].name) != length || memcmp(keys[i].name, text, length) != 0)
            continue;
        if (*seen & 1u << i)
            return refuseToken(p, "\"%s\" is there twice. Take one out", keys[i].name);
        *seen |= 1u << i;
        p->now = &keys[i];
        return 1;
    }
    return refuseToken(p, "%s cannot have \"%.*s\". Known are: %s", where, length < 40 ? (int)length : 40, text, known);
}

static int onKey(void *context, const unsigned char *string, size_t length)
{
    ebpfMonRulesParser *p = context;
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

static int endRule(ebpfMonRulesParser *p)
{
    ebpfMonPutRule *rule = &p->rule;

    p->at = inRules;
    if (!rule->name[0])
        return refuseFile(p, p->ruleAt,
                          "the rule has no \"name\". Give it one: it is shown with unexpected puts");
    if (!rule->pv.count)
        return refuseFile(p, p->ruleAt, "rule \"%s\" has no \"pv\". Say for which PVs it is, \"*\" for all",
                          rule->name);
    if (rule->hasMin && rule->hasMax && rule->min > rule->max)
        return refuseFile(p, p->ruleAt, "rule \"%s\": min %.10g is above max %.10g. Exchange them", rule->name,
                          rule->min, rule->max);
    return ebpfMonRuleSetAddRule(p->set, rule) ? refuseWithoutMemory(p) : 1;
}

static int endTime(ebpfMonRulesParser *p)
{
    int from = p->timeSeen & 2, to = p->timeSeen & 4;

    p->at = p->timeList ? inTimes : inRule;
    if (!p->timeSeen)
        return refuseFile(p, p->timeAt,
                          "an empty window of \"times\". Give it \"days\", or \"from\" and \"to\"");
    if (!from != !to)
        return refuseFile(p, p->timeAt,
                          "a window of \"times\" has \"%s\" only. Give it both \"from\" and \"to\"",
                          from ? "from" : "to");
    if (p->time.from == p->time.to || p->time.from == 24 * 60)
        return refuseFile(p, p->timeAt,
                          "a window of \"times\" has no length. Leave \"from\" and \"to\" out for the whole "
                          "day");
    return ebpfMonRuleSetAddTime(p->set, &p->rule.times, &p->time) ? refuseWithoutMemory(p) : 1;
}

static int onMapEnd(void *context)
{
    ebpfMonRulesParser *p = context;

    switch (p->at) {
    case inRule:
        return endRule(p);
    case inTime:
        return endTime(p);
    default:
        p->at = atEnd;
        if (!(p->fileSeen & 2))
            return refuseToken(p, "there are no \"rules\". Write \"rules\": [ ... ], empty for none");
        return 1;
    }
}

static int onArray(void *context)
{
    ebpfMonRulesParser *p = context;

    p->listed = 0;
    if (p->at == inFile && p->now == &fileKeys[1])
        p->at = inRules;
    else if (p->at == inRule && p->now->is == isTimes)
        p->at = inTimes;
    else if (p->at == inRule && p->now->is >= isOrigins)
        p->at = inList;
    else
        return refuseType(p);
    return 1;
}

static int onArrayEnd(void *context)
{
    ebpfMonRulesParser *p = context;

    if (p->at == inRules) {
        p->at = inFile;
        return 1;
    }
    p->at = inRule;
    if (!p->listed)
        return refuseToken(p, "\"%s\" is an empty list. %s", p->now->name, p->now->offset == RULE(pv) ?
                           "Say for which PVs the rule is, \"*\" for all" : "Leave it out if anything will do");
    return 1;
}

static const yajl_callbacks rulesCallbacks = {
    onNull, onBool, NULL, NULL, onNumber, onString, onMap, onKey, onMapEnd, onArray, onArrayEnd
};

/* --- a file --- */

static int compareNames(const void *a, const void *b)
{
    const ebpfMonPutRule *one = *(const ebpfMonPutRule *const *)a, *other = *(const ebpfMonPutRule *const *)b;
    int order = strcmp(one->name, other->name);

    return order ? order : (one->at > other->at) - (one->at < other->at);
}

/* Refuses the file if two rules have the same name. The message shows the first rule with a name that another rule
 * has used before. */
static void checkNames(ebpfMonRulesParser *p)
{
    unsigned count = p->set->ruleCount;
    const ebpfMonPutRule **sorted = malloc((count + 1) * sizeof(*sorted)), *second = NULL;

    if (!sorted) {
        refuseWithoutMemory(p);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        sorted[i] = &p->set->rule[i];
    qsort(sorted, count, sizeof(*sorted), compareNames);
    for (unsigned i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && (!second || sorted[i]->at < second->at))
            second = sorted[i];
    free(sorted);
    if (second)
        refuseFile(p, second->at, "there are two rules \"%s\". Give each its own name", second->name);
}

static void refuseSyntax(ebpfMonRulesParser *p, int complete)
{
    char why[256];
    size_t at = ebpfMonJsonDescribeMistake(p->yajl, p->text, p->length, complete, why, sizeof(why));

    refuseFile(p, at, "%s", why);
}

/* Reads all of the text. If it is wrong, p->why says why. */
static void readText(ebpfMonRulesParser *p)
{
    int complete = yajl_parse(p->yajl, (const unsigned char *)p->text, p->length) == yajl_status_ok;
    int ok = complete && yajl_complete_parse(p->yajl) == yajl_status_ok;

    if (ok)
        checkNames(p);
    else if (!p->why[0]) /* else a callback has refused */
        refuseSyntax(p, complete);
}

ebpfMonRuleSet *ebpfMonRulesParse(const char *file, const char *text, size_t length, char *why, size_t size)
{
    ebpfMonRulesParser *p = calloc(1, sizeof(*p));
    ebpfMonRuleSet *set = NULL;

    if (!p || !(p->set = ebpfMonRuleSetNew()) || !(p->yajl = yajl_alloc(&rulesCallbacks, NULL, p))) {
        snprintf(why, size, "%s: out of memory", file);
    } else {
        p->text = text;
        p->length = length;
        readText(p);
        if (p->why[0]) {
            ebpfMonJsonFormatPlace(file, text, length, p->whyAt, p->why, why, size);
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

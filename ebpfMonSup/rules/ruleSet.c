/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsStdlib.h>
#include <epicsString.h>
#include <epicsTime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>

#include "common/array.h"
#include "common/jsonPlace.h"
#include "common/text.h"
#include "model/filter.h"
#include "model/put.h"
#include "rules/ruleSet.h"

/* --- rules --- */

#define EBPFMON_RULE_CACHE 16384u /* PVs; a power of two */

/* The key: "ioc\0pv\0channel", the channel without modifiers. Everything that chooses a rule is in the key and is
 * compared. So two PVs with the same hash never get the rule of each other. */
#define EBPFMON_RULE_KEY \
    (sizeof(((ebpfMonPut *)0)->ioc) + sizeof(((ebpfMonPut *)0)->pv) + sizeof(((ebpfMonPut *)0)->channel))

struct ebpfMonRuleCache {
    struct {
        uint32_t rule;   /* its index in the set */
        uint32_t length; /* bytes of the key; 0: the slot is free */
        char     key[EBPFMON_RULE_KEY];
    } slot[EBPFMON_RULE_CACHE];
};

/* --- parsing --- */

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
    {"authorities", isNamesOrNone, RULE(authorities)},
    {"verified",  isBool,    RULE(verified)},
    {"hosts",     isNamesOrNone, RULE(hosts)},
    {"times",     isTimes,   RULE(times)},
    {"min",       isNumber,  RULE(min), RULE(hasMin)},
    {"max",       isNumber,  RULE(max), RULE(hasMax)},
    {"text",      isText,    RULE(text)},
    {"automatic", isBool,    RULE(automatic)},
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
                   size_t length, const char *where)
{
    char known[200] = "";

    for (size_t i = 0; i < count; i++) {
        if (strlen(keys[i].name) != length || memcmp(keys[i].name, text, length) != 0)
            continue;
        if (*seen & 1u << i)
            return refuseToken(p, "\"%s\" is there twice. Take one out", keys[i].name);
        *seen |= 1u << i;
        p->now = &keys[i];
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        ebpfMonTextAdd(known, sizeof(known), "%s%s", i ? ", " : "", keys[i].name);
    return refuseToken(p, "%s cannot have \"%.*s\". Known are: %s", where, length < 40 ? (int)length : 40, text, known);
}

static int onKey(void *context, const unsigned char *string, size_t length)
{
    ebpfMonRulesParser *p = context;
    const char *text = (const char *)string;

    switch (p->at) {
    case inFile:
        return findKey(p, fileKeys, KEYS(fileKeys), &p->fileSeen, text, length, "the file");
    case inRule:
        return findKey(p, ruleKeys, KEYS(ruleKeys), &p->ruleSeen, text, length, "a rule");
    default:
        return findKey(p, timeKeys, KEYS(timeKeys), &p->timeSeen, text, length, "a window of \"times\"");
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

/* --- rules --- */

#define FIRST_ROOM 64 /* elements */

ebpfMonRuleSet *ebpfMonRuleSetNew(void)
{
    ebpfMonRuleSet *set = calloc(1, sizeof(*set));

    if (set && !(set->cache = calloc(1, sizeof(*set->cache)))) { /* large, but takes memory only as it is used */
        free(set);
        set = NULL;
    }
    return set;
}

void ebpfMonRuleSetFree(ebpfMonRuleSet *set)
{
    if (!set)
        return;
    free(set->rule);
    free(set->glob);
    free(set->time);
    free(set->chars);
    free(set->cache);
    free(set);
}

int ebpfMonRuleSetAddRule(ebpfMonRuleSet *set, const ebpfMonPutRule *rule)
{
    if (ebpfMonArrayGrow(&set->rule, &set->ruleRoom, set->ruleCount + 1, FIRST_ROOM, sizeof(*rule)))
        return -1;
    set->rule[set->ruleCount++] = *rule;
    return 0;
}

int ebpfMonRuleSetAddTime(ebpfMonRuleSet *set, ebpfMonRuleList *list, const ebpfMonRuleTime *time)
{
    if (ebpfMonArrayGrow(&set->time, &set->timeRoom, set->timeCount + 1, FIRST_ROOM, sizeof(*time)))
        return -1;
    if (!list->count)
        list->first = set->timeCount;
    list->count++;
    set->time[set->timeCount++] = *time;
    return 0;
}

int ebpfMonRuleSetAddGlob(ebpfMonRuleSet *set, ebpfMonRuleList *list, const char *text, size_t length)
{
    ebpfMonRuleGlob *glob;
    char *at;

    if (ebpfMonArrayGrow(&set->glob, &set->globRoom, set->globCount + 1, FIRST_ROOM, sizeof(*glob)) ||
        ebpfMonArrayGrow(&set->chars, &set->charRoom, set->charCount + length + 1, EBPFMON_RULE_PATTERN, 1))
        return -1;
    at = set->chars + set->charCount;
    memcpy(at, text, length);
    at[length] = 0;
    if (!list->count)
        list->first = set->globCount;
    list->count++;
    glob = &set->glob[set->globCount++];
    glob->text = (uint32_t)set->charCount;
    glob->length = (uint16_t)length;
    glob->literal = (uint16_t)strcspn(at, "*?");
    set->charCount += length + 1;
    return 0;
}

/* --- judging --- */

/* Finds the rule that decides on a put, and judges whether the put keeps this rule. */

#define NAMES   4 /* spellings of the PV of a put, at most */
#define NO_RULE UINT32_MAX

typedef struct { const char *text; size_t length; } spelling;

static int matchesGlob(const ebpfMonRuleSet *set, const ebpfMonRuleGlob *glob, const char *text, size_t length)
{
    const char *pattern = set->chars + glob->text;

    /* Many PV names begin with the same characters, so the last character of the literal part is compared first. */
    if (length < glob->literal || (glob->literal && text[glob->literal - 1] != pattern[glob->literal - 1]) ||
        memcmp(text, pattern, glob->literal) != 0)
        return 0;
    if (glob->literal == glob->length)
        return length == glob->length;
    if (glob->literal + 1 == glob->length && pattern[glob->literal] == '*')
        return 1;
    return epicsStrGlobMatch(text + glob->literal, pattern + glob->literal);
}

static int isInList(const ebpfMonRuleSet *set, const ebpfMonRuleList *list, const char *text)
{
    size_t length = strlen(text);

    for (uint32_t i = 0; i < list->count; i++)
        if (matchesGlob(set, &set->glob[list->first + i], text, length))
            return 1;
    return 0;
}

static int isForIoc(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const char *ioc)
{
    for (uint32_t i = 0; i < rule->iocs.count; i++)
        if (ebpfMonPatternMatchesIoc(set->chars + set->glob[rule->iocs.first + i].text, ioc))
            return 1;
    return rule->iocs.count == 0;
}

/* RECORD and RECORD.VAL are the same PV, and a rule may have either of them. Returns the number of spellings, 1 or
 * 2. */
static unsigned addSpellings(const char *given, char *other, size_t size, spelling *names)
{
    size_t length = strlen(given);
    const char *dot = strchr(given, '.');

    names[0] = (spelling){given, length};
    if (!dot)
        snprintf(other, size, "%s.VAL", given);
    else if (strcmp(dot, ".VAL") == 0)
        snprintf(other, size, "%.*s", (int)(dot - given), given);
    else
        return 1;
    names[1] = (spelling){other, strlen(other)};
    return 2;
}

/* Copies the name that the client used, without modifiers and filters (dbChannelCreate in dbChannel.c). A client can
 * write any text into these, and could so choose its rule. */
static void copyPlainName(const char *channel, char *plain, size_t size)
{
    size_t record = ebpfMonPutGetRecordLength(channel), field = strcspn(channel + record, "$[{");

    if (field == 1) /* only the "." before them */
        field = 0;
    snprintf(plain, size, "%.*s", (int)(record + field), channel);
}

static uint32_t findRule(const ebpfMonRuleSet *set, const ebpfMonPut *put, const char *plain)
{
    char other[2][sizeof(put->channel) + 4];
    spelling names[NAMES];
    unsigned count = addSpellings(put->pv, other[0], sizeof(other[0]), names);

    if (plain[0])
        count += addSpellings(plain, other[1], sizeof(other[1]), names + count);
    for (uint32_t r = 0; r < set->ruleCount; r++) {
        const ebpfMonPutRule *rule = &set->rule[r];
        int found = 0;

        for (uint32_t i = 0; i < rule->pv.count && !found; i++)
            for (unsigned n = 0; n < count && !found; n++)
                found = matchesGlob(set, &set->glob[rule->pv.first + i], names[n].text, names[n].length);
        if (found && isForIoc(set, rule, put->ioc))
            return r;
    }
    return NO_RULE;
}

static uint32_t appendText(char *key, uint32_t length, const char *text)
{
    size_t n = strlen(text) + 1;

    memcpy(key + length, text, n);
    return length + (uint32_t)n;
}

static uint32_t findCachedRule(ebpfMonRuleSet *set, const ebpfMonPut *put)
{
    char key[EBPFMON_RULE_KEY], plain[sizeof(put->channel)] = "";
    uint32_t length;
    unsigned at;

    if (put->channel[0])
        copyPlainName(put->channel, plain, sizeof(plain));
    length = appendText(key, appendText(key, appendText(key, 0, put->ioc), put->pv), plain);
    at = epicsMemHash(key, length, 0) % EBPFMON_RULE_CACHE;

    if (set->cache->slot[at].length != length || memcmp(set->cache->slot[at].key, key, length) != 0) {
        set->cache->slot[at].rule = findRule(set, put, plain);
        set->cache->slot[at].length = length;
        memcpy(set->cache->slot[at].key, key, length);
    }
    return set->cache->slot[at].rule;
}

/* Nonzero: *value is the number of the put. A text counts as the number that the IOC converts it to; if the monitor
 * does not know the record, as the number that the text reads as. */
static int getNumber(const ebpfMonPut *put, double *value)
{
    if (put->isConverted || put->isNumber) {
        *value = put->isConverted ? put->converted : put->number;
        return 1;
    }
    return put->count <= 1 && epicsParseDouble(put->val, value, NULL) == 0;
}

static int isInTime(const ebpfMonRuleTime *t, int day, int minute)
{
    int before = (day + 6) % 7;

    if (t->from < t->to)
        return (t->days >> day & 1) && minute >= t->from && minute < t->to;
    return ((t->days >> day & 1) && minute >= t->from) || ((t->days >> before & 1) && minute < t->to);
}

static int isInTimes(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const struct tm *local)
{
    for (uint32_t i = 0; i < rule->times.count; i++)
        if (isInTime(&set->time[rule->times.first + i], local->tm_wday, local->tm_hour * 60 + local->tm_min))
            return 1;
    return 0;
}

/* Compares the host name that the client claims, and the address that the kernel knows, without its port. An address
 * that is not known is no host, whatever the pattern. */
static int isInHosts(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const ebpfMonPut *put)
{
    char address[sizeof(put->peer)];

    ebpfMonPutGetAddress(put, address, sizeof(address));
    return (strcmp(put->host, EBPFMON_NOT_KNOWN) != 0 && isInList(set, &rule->hosts, put->host)) ||
           (address[0] && isInList(set, &rule->hosts, address));
}

/* Nonzero: NaN, too. */
static int isOutside(const ebpfMonPutRule *rule, double value)
{
    return (rule->hasMin && !(value >= rule->min)) || (rule->hasMax && !(value <= rule->max));
}

/* Nonzero: the value is wrong, and "why" says why. A value is right if its number is in the range (the number that was
 * sent, and the one that the IOC stores), or its text in the list. */
static int hasBadValue(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const ebpfMonPut *put, char *why,
                    size_t size)
{
    int ranged = rule->hasMin || rule->hasMax, isNumber;
    double value = 0;

    if (!ranged && !rule->text.count)
        return 0;
    if (rule->text.count && isInList(set, &rule->text, put->val))
        return 0;
    isNumber = getNumber(put, &value);
    if (isNumber && put->isWrapped && !isOutside(rule, value))
        value = put->wrapped;
    if (ranged && isNumber && !isOutside(rule, value))
        return 0;
    if (ranged && isNumber && rule->hasMin && !(value >= rule->min))
        snprintf(why, size, "%.10g is not %.10g or more", value, rule->min);
    else if (ranged && isNumber)
        snprintf(why, size, "%.10g is not %.10g or less", value, rule->max);
    else
        snprintf(why, size, ranged ? "\"%.24s\" is no number" : "value \"%.24s\" is not allowed", put->val);
    return 1;
}

static void explainName(const char *what, const char *user, char *why, size_t size)
{
    if (user[0])
        snprintf(why, size, "%s \"%.32s\" is not allowed", what, user);
    else
        snprintf(why, size, "no %s is known", what);
}

/* Nonzero: the rule is about who makes the put. A client that may not be the author proves nothing. */
static int asksForAuthor(const ebpfMonPutRule *rule)
{
    return rule->users.count || rule->realUsers.count || rule->authorities.count || rule->hosts.count ||
           rule->verified;
}

/* Nonzero: the put breaks the rule, and "why" says how. */
static int isBroken(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const ebpfMonPut *put, char *why,
                  size_t size)
{
    char when[16];
    struct tm local;

    if (!rule->allow) {
        snprintf(why, size, "no put is allowed");
    } else if (rule->origins && !(rule->origins >> put->through & 1)) {
        snprintf(why, size, "put through %s is not allowed", ebpfMonThroughName(put->through));
    } else if (put->isUnsure && asksForAuthor(rule) && ebpfMonPutIsAnonymous(put)) {
        snprintf(why, size, "who is behind gateway %.32s is not known", put->gateway);
    } else if (put->isUnsure && asksForAuthor(rule)) {
        snprintf(why, size, "it is not certain that \"%.32s\" made it", put->user);
    } else if (rule->users.count && !isInList(set, &rule->users, put->user)) {
        explainName("user", put->user, why, size);
    } else if (rule->realUsers.count && !isInList(set, &rule->realUsers, put->realUser)) {
        explainName("real user", put->realUser, why, size);
    } else if (rule->authorities.count && !isInList(set, &rule->authorities, put->authority)) {
        explainName("authority", put->authority, why, size);
    } else if (rule->verified && !ebpfMonPutIsCertified(put) && put->user[0] && put->realUser[0] &&
               strcmp(put->user, put->realUser) != 0) {
        snprintf(why, size, "\"%.20s\" claims to be \"%.20s\"", put->realUser, put->user);
    } else if (rule->hosts.count && !isInHosts(set, rule, put)) {
        explainName("host", put->host, why, size);
    } else if (rule->times.count && epicsTimeToTM(&local, NULL, &put->time) == 0 && !isInTimes(set, rule, &local)) {
        strftime(when, sizeof(when), "%a %H:%M", &local);
        snprintf(why, size, "not at this time (%s)", when);
    } else {
        /* no record got the value of a put that was not written; who tried to write, and how, counts all the same */
        return put->result != ebpfMonPutUnwritten && hasBadValue(set, rule, put, why, size);
    }
    return 1;
}

void ebpfMonRuleSetJudge(ebpfMonRuleSet *set, ebpfMonPut *put)
{
    char why[80], text[160];
    uint32_t index = findCachedRule(set, put);
    ebpfMonPutRule *rule;

    put->unexpected = 0;
    put->rule[0] = 0;
    if (index == NO_RULE) {
        set->judged++;
        if (!set->deny)
            return;
        set->bad++;
        strcpy(text, "no rule is for this PV");
    } else {
        rule = &set->rule[index];
        rule->judged++;
        if (!isBroken(set, rule, put, why, sizeof(why))) {
            put->byProgram |= rule->automatic;
            return;
        }
        rule->bad++;
        snprintf(text, sizeof(text), "rule \"%s\": %s", rule->name, why);
    }
    put->unexpected = 1;
    ebpfMonTextCopy(put->rule, sizeof(put->rule), text);
}

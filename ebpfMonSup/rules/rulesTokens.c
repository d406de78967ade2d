/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads one token of the rules file after the other (rulesParser.h). A callback returns 1, or 0 to stop yajl. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <epicsStdlib.h>

#include "common/jsonPlace.h"
#include "common/text.h"
#include "rules/rulesParser.h"
#include "rules/rulesWords.h"

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

int ebpfMonRulesRefuse(ebpfMonRulesParser *p, size_t at, const char *format, ...)
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

int ebpfMonRulesRefuseMemory(ebpfMonRulesParser *p)
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
        return ebpfMonRulesRefuseMemory(p);
    return 1;
}

static int addOrigin(ebpfMonRulesParser *p, const char *text, size_t length)
{
    int through = ebpfMonRulesReadOrigin(text, length);

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
        if (ebpfMonRulesReadDays(value, &p->time.days))
            return refuseToken(p, "\"%s\" are no days. Write Mon Tue Wed Thu Fri Sat Sun as \"Mon-Fri\" or "
                               "\"Sat,Sun\"", value);
    } else if (ebpfMonRulesReadClock(value, p->now == &timeKeys[1] ? &p->time.from : &p->time.to)) {
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
        return ebpfMonRulesRefuse(p, p->ruleAt,
                                  "the rule has no \"name\". Give it one: it is shown with unexpected puts");
    if (!rule->pv.count)
        return ebpfMonRulesRefuse(p, p->ruleAt, "rule \"%s\" has no \"pv\". Say for which PVs it is, \"*\" for all",
                                  rule->name);
    if (rule->hasMin && rule->hasMax && rule->min > rule->max)
        return ebpfMonRulesRefuse(p, p->ruleAt, "rule \"%s\": min %.10g is above max %.10g. Exchange them", rule->name,
                                  rule->min, rule->max);
    return ebpfMonRuleSetAddRule(p->set, rule) ? ebpfMonRulesRefuseMemory(p) : 1;
}

static int endTime(ebpfMonRulesParser *p)
{
    int from = p->timeSeen & 2, to = p->timeSeen & 4;

    p->at = p->timeList ? inTimes : inRule;
    if (!p->timeSeen)
        return ebpfMonRulesRefuse(p, p->timeAt,
                                  "an empty window of \"times\". Give it \"days\", or \"from\" and \"to\"");
    if (!from != !to)
        return ebpfMonRulesRefuse(p, p->timeAt,
                                  "a window of \"times\" has \"%s\" only. Give it both \"from\" and \"to\"",
                                  from ? "from" : "to");
    if (p->time.from == p->time.to || p->time.from == 24 * 60)
        return ebpfMonRulesRefuse(p, p->timeAt,
                                  "a window of \"times\" has no length. Leave \"from\" and \"to\" out for the whole "
                                  "day");
    return ebpfMonRuleSetAddTime(p->set, &p->rule.times, &p->time) ? ebpfMonRulesRefuseMemory(p) : 1;
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

const yajl_callbacks ebpfMonRulesCallbacks = {
    onNull, onBool, NULL, NULL, onNumber, onString, onMap, onKey, onMapEnd, onArray, onArrayEnd
};

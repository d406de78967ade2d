/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsStdlib.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <epicsTime.h>

#include "common/text.h"
#include "rules/rules.h"

#define CACHE  16384u /* PVs; a power of two */
#define NAMES  4
#define NO_RULE UINT32_MAX

/* "ioc\0pv\0channel", that without modifiers: the whole of what chooses a rule is compared, so that no collision gives
 * another PV's rule. */
#define KEY (sizeof(((ebpfMonPut *)0)->ioc) + sizeof(((ebpfMonPut *)0)->pv) + sizeof(((ebpfMonPut *)0)->channel))

struct ebpfMonRuleCache {
    struct {
        uint32_t rule;
        uint32_t length; /* of key; 0: free */
        char     key[KEY];
    } slot[CACHE];
};

typedef struct { const char *text; size_t length; } name;

static epicsMutexId rulesLock;
static ebpfMonRuleSet *inForce;

static void lockInit(void *unused)
{
    (void)unused;
    rulesLock = epicsMutexMustCreate();
}

static void lockRules(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, lockInit, NULL);
    epicsMutexMustLock(rulesLock);
}

ebpfMonRuleSet *ebpfMonRuleSetNew(void)
{
    ebpfMonRuleSet *set = calloc(1, sizeof(*set));

    if (set && !(set->cache = calloc(1, sizeof(*set->cache)))) { /* pages come when they are used */
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

static int grow(void *array, unsigned *room, unsigned count, size_t size)
{
    void **at = array, *more;
    unsigned wanted = *room ? *room * 2 : 64;

    if (count < *room)
        return 0;
    more = realloc(*at, wanted * size);
    if (!more)
        return -1;
    *at = more;
    *room = wanted;
    return 0;
}

int ebpfMonRuleSetAddRule(ebpfMonRuleSet *set, const ebpfMonPutRule *rule)
{
    if (grow(&set->rule, &set->ruleRoom, set->ruleCount, sizeof(*rule)))
        return -1;
    set->rule[set->ruleCount++] = *rule;
    return 0;
}

int ebpfMonRuleSetAddTime(ebpfMonRuleSet *set, ebpfMonRuleList *list, const ebpfMonRuleTime *time)
{
    if (grow(&set->time, &set->timeRoom, set->timeCount, sizeof(*time)))
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

    if (grow(&set->glob, &set->globRoom, set->globCount, sizeof(*glob)))
        return -1;
    if (set->charCount + length + 1 > set->charRoom) {
        size_t wanted = 2 * set->charRoom + EBPFMON_RULE_PATTERN;
        char *more = realloc(set->chars, wanted);

        if (!more)
            return -1;
        set->chars = more;
        set->charRoom = wanted;
    }
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

static int fits(const ebpfMonRuleSet *set, const ebpfMonRuleGlob *glob, const char *text, size_t length)
{
    const char *pattern = set->chars + glob->text;

    /* Names of one machine begin alike: the last character tells more than the first. */
    if (length < glob->literal || (glob->literal && text[glob->literal - 1] != pattern[glob->literal - 1]) ||
        memcmp(text, pattern, glob->literal) != 0)
        return 0;
    if (glob->literal == glob->length)
        return length == glob->length;
    if (glob->literal + 1 == glob->length && pattern[glob->literal] == '*')
        return 1;
    return epicsStrGlobMatch(text + glob->literal, pattern + glob->literal);
}

static int inList(const ebpfMonRuleSet *set, const ebpfMonRuleList *list, const char *text)
{
    size_t length = strlen(text);

    for (uint32_t i = 0; i < list->count; i++)
        if (fits(set, &set->glob[list->first + i], text, length))
            return 1;
    return 0;
}

/* RECORD and RECORD.VAL are one PV: whichever stands in the rule is meant. */
static unsigned twice(const char *given, char *other, size_t size, name *names)
{
    size_t length = strlen(given);
    const char *dot = strchr(given, '.');

    names[0] = (name){given, length};
    if (!dot)
        snprintf(other, size, "%s.VAL", given);
    else if (strcmp(dot, ".VAL") == 0)
        snprintf(other, size, "%.*s", (int)(dot - given), given);
    else
        return 1;
    names[1] = (name){other, strlen(other)};
    return 2;
}

/* What the client wrote, without modifiers and filters (dbChannelCreate of database/src/ioc/db/dbChannel.c): those
 * are free text, by which a client could choose its rule. */
static void plainName(const char *channel, char *plain, size_t size)
{
    char *field;

    snprintf(plain, size, "%.*s", (int)strcspn(channel, "{"), channel);
    field = strchr(plain, '.');
    if (field)
        field[strcspn(field, "$[")] = 0;
}

static uint32_t findRule(const ebpfMonRuleSet *set, const ebpfMonPut *put, const char *plain)
{
    char other[2][sizeof(put->channel) + 4];
    name names[NAMES];
    unsigned count = twice(put->pv, other[0], sizeof(other[0]), names);

    if (plain[0])
        count += twice(plain, other[1], sizeof(other[1]), names + count);
    for (uint32_t r = 0; r < set->ruleCount; r++) {
        const ebpfMonPutRule *rule = &set->rule[r];
        int found = 0;

        for (uint32_t i = 0; i < rule->pv.count && !found; i++)
            for (unsigned n = 0; n < count && !found; n++)
                found = fits(set, &set->glob[rule->pv.first + i], names[n].text, names[n].length);
        if (found && (!rule->iocs.count || inList(set, &rule->iocs, put->ioc)))
            return r;
    }
    return NO_RULE;
}

static uint32_t append(char *key, uint32_t length, const char *text)
{
    size_t n = strlen(text) + 1;

    memcpy(key + length, text, n);
    return length + (uint32_t)n;
}

static uint32_t ruleOf(ebpfMonRuleSet *set, const ebpfMonPut *put)
{
    char key[KEY], plain[sizeof(put->channel)] = "";
    uint32_t length;
    unsigned at;

    if (put->channel[0])
        plainName(put->channel, plain, sizeof(plain));
    length = append(key, append(key, append(key, 0, put->ioc), put->pv), plain);
    at = epicsMemHash(key, length, 0) % CACHE;

    if (set->cache->slot[at].length != length || memcmp(set->cache->slot[at].key, key, length) != 0) {
        set->cache->slot[at].rule = findRule(set, put, plain);
        set->cache->slot[at].length = length;
        memcpy(set->cache->slot[at].key, key, length);
    }
    return set->cache->slot[at].rule;
}

/* A string that reads as a number is one: that is what the record will make of it. */
static int numberOf(const ebpfMonPut *put, double *value)
{
    if (put->isNumber) {
        *value = put->number;
        return 1;
    }
    return put->count <= 1 && epicsParseDouble(put->val, value, NULL) == 0;
}

static int inTime(const ebpfMonRuleTime *t, int day, int minute)
{
    int before = (day + 6) % 7;

    if (t->from < t->to)
        return (t->days >> day & 1) && minute >= t->from && minute < t->to;
    return ((t->days >> day & 1) && minute >= t->from) || ((t->days >> before & 1) && minute < t->to);
}

static int inTimes(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const struct tm *local)
{
    for (uint32_t i = 0; i < rule->times.count; i++)
        if (inTime(&set->time[rule->times.first + i], local->tm_wday, local->tm_hour * 60 + local->tm_min))
            return 1;
    return 0;
}

/* By claimed name, or by the address that the kernel saw, whose port is left out. */
static int inHosts(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const ebpfMonPut *put)
{
    char address[sizeof(put->peer)];

    snprintf(address, sizeof(address), "%.*s", (int)strcspn(put->peer, ":"), put->peer);
    return inList(set, &rule->hosts, put->host) || (address[0] && inList(set, &rule->hosts, address));
}

/* What is wrong with a value, or zero. A value passes by its number or by its text. */
static int badValue(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const ebpfMonPut *put, char *why,
                    size_t size)
{
    int ranged = rule->hasMin || rule->hasMax, isNumber;
    double value = 0;

    if (!ranged && !rule->text.count)
        return 0;
    if (rule->text.count && inList(set, &rule->text, put->val))
        return 0;
    isNumber = numberOf(put, &value);
    if (ranged && isNumber && (!rule->hasMin || value >= rule->min) && (!rule->hasMax || value <= rule->max))
        return 0;
    if (ranged && isNumber && rule->hasMin && !(value >= rule->min))
        snprintf(why, size, "%.10g is not %.10g or more", value, rule->min);
    else if (ranged && isNumber)
        snprintf(why, size, "%.10g is not %.10g or less", value, rule->max);
    else
        snprintf(why, size, ranged ? "\"%.24s\" is no number" : "value \"%.24s\" is not allowed", put->val);
    return 1;
}

static void whyUser(const char *what, const char *user, char *why, size_t size)
{
    if (user[0])
        snprintf(why, size, "%s \"%.32s\" is not allowed", what, user);
    else
        snprintf(why, size, "no %s is known", what);
}

/* Nonzero, and why, when the put does not keep what the rule asks for. */
static int breaks(const ebpfMonRuleSet *set, const ebpfMonPutRule *rule, const ebpfMonPut *put, char *why,
                  size_t size)
{
    char when[16];
    struct tm local;

    if (!rule->allow) {
        snprintf(why, size, "no put is allowed");
    } else if (rule->origins && !(rule->origins >> put->through & 1)) {
        snprintf(why, size, "put through %s is not allowed", ebpfMonThroughName(put->through));
    } else if (rule->users.count && !inList(set, &rule->users, put->user)) {
        whyUser("user", put->user, why, size);
    } else if (rule->realUsers.count && !inList(set, &rule->realUsers, put->realUser)) {
        whyUser("real user", put->realUser, why, size);
    } else if (rule->verified && put->user[0] && put->realUser[0] && strcmp(put->user, put->realUser) != 0) {
        snprintf(why, size, "\"%.20s\" claims to be \"%.20s\"", put->realUser, put->user);
    } else if (rule->hosts.count && !inHosts(set, rule, put)) {
        whyUser("host", put->host, why, size);
    } else if (rule->times.count && epicsTimeToTM(&local, NULL, &put->time) == 0 && !inTimes(set, rule, &local)) {
        strftime(when, sizeof(when), "%a %H:%M", &local);
        snprintf(why, size, "not at this time (%s)", when);
    } else {
        return badValue(set, rule, put, why, size);
    }
    return 1;
}

void ebpfMonRuleSetJudge(ebpfMonRuleSet *set, ebpfMonPut *put)
{
    char why[80], text[160];
    uint32_t index = ruleOf(set, put);
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
        if (!breaks(set, rule, put, why, sizeof(why)))
            return;
        rule->bad++;
        snprintf(text, sizeof(text), "rule \"%s\": %s", rule->name, why);
    }
    put->unexpected = 1;
    ebpfMonTextRemoveControls(text);
    ebpfMonTextCopy(put->rule, sizeof(put->rule), text);
}

void ebpfMonRulesJudge(ebpfMonPut *put)
{
    lockRules();
    if (inForce) {
        ebpfMonRuleSetJudge(inForce, put);
    } else {
        put->unexpected = 0;
        put->rule[0] = 0;
    }
    epicsMutexUnlock(rulesLock);
}

void ebpfMonRulesUse(ebpfMonRuleSet *set)
{
    ebpfMonRuleSet *before;

    lockRules();
    before = inForce;
    inForce = set;
    epicsMutexUnlock(rulesLock);
    ebpfMonRuleSetFree(before);
}

unsigned ebpfMonRulesCounts(ebpfMonRuleCount *counts, unsigned most)
{
    unsigned n = 0;

    lockRules();
    for (; inForce && n < inForce->ruleCount && n + 1 < most; n++) {
        const ebpfMonPutRule *rule = &inForce->rule[n];

        memcpy(counts[n].name, rule->name, sizeof(counts[n].name));
        counts[n].judged = rule->judged;
        counts[n].bad = rule->bad;
    }
    if (inForce && most) {
        counts[n].name[0] = 0;
        counts[n].judged = inForce->judged;
        counts[n++].bad = inForce->bad;
    }
    epicsMutexUnlock(rulesLock);
    return n;
}

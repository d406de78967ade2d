/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsStdlib.h>
#include <epicsString.h>
#include <epicsTime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/text.h"
#include "model/filter.h"
#include "rules/ruleSet.h"

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
    return rule->users.count || rule->realUsers.count || rule->hosts.count || rule->verified;
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
    } else if (put->isUnsure && asksForAuthor(rule)) {
        snprintf(why, size, "it is not certain that \"%.32s\" made it", put->user);
    } else if (rule->users.count && !isInList(set, &rule->users, put->user)) {
        explainName("user", put->user, why, size);
    } else if (rule->realUsers.count && !isInList(set, &rule->realUsers, put->realUser)) {
        explainName("real user", put->realUser, why, size);
    } else if (rule->verified && put->user[0] && put->realUser[0] && strcmp(put->user, put->realUser) != 0) {
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
        if (!isBroken(set, rule, put, why, sizeof(why)))
            return;
        rule->bad++;
        snprintf(text, sizeof(text), "rule \"%s\": %s", rule->name, why);
    }
    put->unexpected = 1;
    ebpfMonTextCopy(put->rule, sizeof(put->rule), text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/wholeFile.h"
#include "model/published.h"
#include "rules/rulesFile.h"
#include "rules/rulesParse.h"

#define FILE_MAX (1024u * 1024u)

static ebpfMonRuleSet *readRules(const char *file, char *why, size_t size)
{
    size_t length;
    char *text = ebpfMonWholeFileRead(file, FILE_MAX, &length, why, size);
    ebpfMonRuleSet *set;

    if (!text)
        return NULL;
    set = ebpfMonRulesParse(file, text, length, why, size);
    free(text);
    return set;
}

int ebpfMonRulesFileCheck(const char *file, unsigned *rules, char *text, size_t size)
{
    ebpfMonRuleSet *set = readRules(file, text, size);

    if (!set)
        return -1;
    *rules = set->ruleCount;
    snprintf(text, size, "%u rules in %s are right; not loaded", set->ruleCount, file);
    ebpfMonRuleSetFree(set);
    return 0;
}

/* Publishes what is in force after a load. "refused": why the file was refused; NULL: it was loaded. The caller
 * holds the lock of the published values. */
static void describeLoad(ebpfMonPublished *published, const char *refused)
{
    char now[32], text[1024];
    epicsTimeStamp time;

    epicsTimeGetCurrent(&time);
    published->time[ebpfMonGroupRules] = time;
    epicsTimeToStrftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", &time);
    published->rules.refused = refused != NULL;
    if (!refused)
        snprintf(text, sizeof(text), "%u rules in force since %s", published->rules.count, now);
    else if (published->rules.file[0])
        snprintf(text, sizeof(text), "refused %s, the %u rules before stay in force: %s", now, published->rules.count,
                 refused);
    else
        snprintf(text, sizeof(text), "refused %s, no rules are in force: %s", now, refused);
    ebpfMonTextCopy(published->rules.message, sizeof(published->rules.message), text);
}

int ebpfMonRulesFileLoad(ebpfMonRules *rules, const char *file, char *text, size_t size)
{
    char path[PATH_MAX], why[512], *lastFile;
    ebpfMonRuleSet *set = NULL;
    ebpfMonPublished *published;
    unsigned count = 0;

    if (!rules) {
        snprintf(text, size, "not loaded: this IOC is not linked with ebpfMon, or had no memory at its start");
        return -1;
    }
    lastFile = ebpfMonRulesBeginLoad(rules);
    if (!file || !file[0])
        file = lastFile;
    if (!file[0])
        snprintf(why, sizeof(why), "no rules file was named yet. Give one: ebpfMonRules \"FILE\"");
    else if (strlen(file) >= EBPFMON_RULES_FILE_SIZE ||
             (realpath(file, path) && strlen(path) >= EBPFMON_RULES_FILE_SIZE))
        snprintf(why, sizeof(why), "the name of the rules file has more than %u characters. Move it",
                 (unsigned)EBPFMON_RULES_FILE_SIZE - 1);
    else { /* keep the full name, because the process may be in another folder at the next load */
        if (file != lastFile)
            strcpy(lastFile, realpath(file, path) ? path : file);
        set = readRules(lastFile, why, sizeof(why));
    }
    if (set) {
        count = set->ruleCount;
        ebpfMonRulesSet(rules, set);
    }
    published = ebpfMonPublishedLock();
    if (set) {
        strcpy(published->rules.file, lastFile);
        published->rules.count = count;
    }
    describeLoad(published, set ? NULL : why);
    ebpfMonTextCopy(text, size, published->rules.message);
    ebpfMonPublishedUnlock();
    ebpfMonRulesEndLoad(rules);
    ebpfMonPublishedNotify(ebpfMonGroupRules);
    return set ? 0 : -1;
}

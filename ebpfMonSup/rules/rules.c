/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsMutex.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/text.h"
#include "common/files.h"
#include "model/published.h"
#include "rules/rules.h"
#include "rules/ruleSet.h"

/* --- the rules in force --- */

/* Files are loaded one at a time, so the rules of the last load stay in force. Begin waits while another thread loads a
 * file. It returns the name of the file to load again ("": none), which the caller may change until it calls End. */
#define EBPFMON_RULES_FILE_SIZE sizeof(((ebpfMonPublished *)0)->rules.file)

struct ebpfMonRules {
    epicsMutexId    lock;     /* guards the pointer and the set */
    ebpfMonRuleSet *inForce;
    epicsMutexId    loadLock; /* held while a file is read, which may take long. It is taken before "lock" */
    char            lastFile[EBPFMON_RULES_FILE_SIZE]; /* guarded by loadLock */
};

ebpfMonRules *ebpfMonRulesNew(void)
{
    ebpfMonRules *r = calloc(1, sizeof(*r));

    if (r) {
        r->lock = epicsMutexMustCreate();
        r->loadLock = epicsMutexMustCreate();
    }
    return r;
}

void ebpfMonRulesFree(ebpfMonRules *r)
{
    if (!r)
        return;
    ebpfMonRuleSetFree(r->inForce);
    epicsMutexDestroy(r->lock);
    epicsMutexDestroy(r->loadLock);
    free(r);
}

void ebpfMonRulesJudge(ebpfMonRules *r, ebpfMonPut *put)
{
    epicsMutexMustLock(r->lock);
    if (r->inForce) {
        ebpfMonRuleSetJudge(r->inForce, put);
    } else {
        put->unexpected = 0;
        put->rule[0] = 0;
    }
    epicsMutexUnlock(r->lock);
}

void ebpfMonRulesSet(ebpfMonRules *r, ebpfMonRuleSet *set)
{
    ebpfMonRuleSet *before;

    epicsMutexMustLock(r->lock);
    before = r->inForce;
    r->inForce = set;
    epicsMutexUnlock(r->lock);
    ebpfMonRuleSetFree(before);
}

static char *beginRulesLoad(ebpfMonRules *r)
{
    epicsMutexMustLock(r->loadLock);
    return r->lastFile;
}

static void endRulesLoad(ebpfMonRules *r)
{
    epicsMutexUnlock(r->loadLock);
}

unsigned ebpfMonRulesGetCounts(ebpfMonRules *r, ebpfMonRuleCount *counts, unsigned most)
{
    unsigned n = 0;

    epicsMutexMustLock(r->lock);
    for (; r->inForce && n < r->inForce->ruleCount && n + 1 < most; n++) {
        const ebpfMonPutRule *rule = &r->inForce->rule[n];

        memcpy(counts[n].name, rule->name, sizeof(counts[n].name));
        counts[n].judged = rule->judged;
        counts[n].bad = rule->bad;
    }
    if (r->inForce && most) {
        counts[n].name[0] = 0;
        counts[n].judged = r->inForce->judged;
        counts[n++].bad = r->inForce->bad;
    }
    epicsMutexUnlock(r->lock);
    return n;
}

/* --- loading a file --- */

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

/* Writes the full name of a file, because the process may be in another folder at the next load. 0, or -1: it is too
 * long, and "why" says so. */
static int copyFullName(const char *file, int isFull, char path[PATH_MAX], char *why, size_t size)
{
    if (isFull || !realpath(file, path))
        snprintf(path, PATH_MAX, "%s", file);
    if (strlen(path) < EBPFMON_RULES_FILE_SIZE)
        return 0;
    snprintf(why, size, "the name of the rules file has more than %u characters. Move it",
             (unsigned)EBPFMON_RULES_FILE_SIZE - 1);
    return -1;
}

int ebpfMonRulesFileLoad(ebpfMonRules *rules, const char *file, char *text, size_t size)
{
    char path[PATH_MAX], why[512], *lastFile;
    ebpfMonRuleSet *set = NULL;
    ebpfMonPublished *published;
    unsigned count = 0;
    int isName, isThere;
    struct stat st;

    if (!rules) {
        snprintf(text, size, "not loaded: this IOC is not linked with ebpfMon, or had no memory at its start");
        return -1;
    }
    lastFile = beginRulesLoad(rules);
    if (!file || !file[0])
        file = lastFile;
    if (!file[0]) { /* nothing was refused, and who uses no rules needs no alarm */
        snprintf(text, size, "not loaded: no rules file was named yet. Give one: ebpfMonRules \"FILE\"");
        endRulesLoad(rules);
        return -1;
    }
    isName = copyFullName(file, file == lastFile, path, why, sizeof(why)) == 0;
    if (isName)
        set = readRules(path, why, sizeof(why));
    isThere = isName && !stat(path, &st) && S_ISREG(st.st_mode);
    if (set) {
        count = set->ruleCount;
        ebpfMonRulesSet(rules, set);
    }
    published = ebpfMonPublishedLock();
    /* A mistyped name does not replace that of the rules in force. A file with a mistake does: it will be corrected and
     * loaded again. */
    if (set || isThere || (isName && !published->rules.file[0]))
        strcpy(lastFile, path);
    if (set) {
        strcpy(published->rules.file, lastFile);
        published->rules.count = count;
    }
    describeLoad(published, set ? NULL : why);
    ebpfMonTextCopy(text, size, published->rules.message);
    ebpfMonPublishedUnlock();
    endRulesLoad(rules);
    ebpfMonPublishedNotify(ebpfMonGroupRules);
    return set ? 0 : -1;
}

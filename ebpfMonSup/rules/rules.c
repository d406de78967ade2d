/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/lazyMutex.h"
#include "rules/rules.h"

/* One set per process is in force, because every put of every IOC is judged by the same rules, whoever loads them: a
 * command, a record or another module. */
static ebpfMonLazyMutex rulesLock = EBPFMON_LAZY_MUTEX;
static ebpfMonRuleSet *inForce; /* under the lock, with what is in it */

/* Taken before rulesLock, and held while a file is read, which may take long. */
static ebpfMonLazyMutex loadLock = EBPFMON_LAZY_MUTEX;
static char lastFile[EBPFMON_RULES_FILE_SIZE]; /* under loadLock */

void ebpfMonRulesJudge(ebpfMonPut *put)
{
    ebpfMonLazyMutexLock(&rulesLock);
    if (inForce) {
        ebpfMonRuleSetJudge(inForce, put);
    } else {
        put->unexpected = 0;
        put->rule[0] = 0;
    }
    ebpfMonLazyMutexUnlock(&rulesLock);
}

void ebpfMonRulesSet(ebpfMonRuleSet *set)
{
    ebpfMonRuleSet *before;

    ebpfMonLazyMutexLock(&rulesLock);
    before = inForce;
    inForce = set;
    ebpfMonLazyMutexUnlock(&rulesLock);
    ebpfMonRuleSetFree(before);
}

char *ebpfMonRulesBeginLoad(void)
{
    ebpfMonLazyMutexLock(&loadLock);
    return lastFile;
}

void ebpfMonRulesEndLoad(void)
{
    ebpfMonLazyMutexUnlock(&loadLock);
}

unsigned ebpfMonRulesGetCounts(ebpfMonRuleCount *counts, unsigned most)
{
    unsigned n = 0;

    ebpfMonLazyMutexLock(&rulesLock);
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
    ebpfMonLazyMutexUnlock(&rulesLock);
    return n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/lazyMutex.h"
#include "rules/rules.h"

/* One set per process is in force: a command, a record or another module may load it, and it judges every put of every
 * IOC. */
static ebpfMonLazyMutex rulesLock = EBPFMON_LAZY_MUTEX;
static ebpfMonRuleSet *inForce; /* rulesLock guards the pointer and the set */

/* Held while a file is read, which may take long. It is taken before rulesLock. */
static ebpfMonLazyMutex loadLock = EBPFMON_LAZY_MUTEX;
static char lastFile[EBPFMON_RULES_FILE_SIZE]; /* guarded by loadLock */

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

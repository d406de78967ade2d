/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "rules/rules.h"

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

char *ebpfMonRulesBeginLoad(ebpfMonRules *r)
{
    epicsMutexMustLock(r->loadLock);
    return r->lastFile;
}

void ebpfMonRulesEndLoad(ebpfMonRules *r)
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

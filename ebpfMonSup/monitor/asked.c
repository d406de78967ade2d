/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsString.h>

#include "monitor/asked.h"

#define RULES_MAX 64
#define LINKS_MAX 1024
#define LINKS_AT_ONCE 64
#define IDLE 0.5 /* s: the longest that a caller is told to wait */

typedef struct {
    char pattern[EBPFMON_PATTERN_SIZE];
    int  level;     /* -1: none */
    int  reference; /* -1: none */
} rule;

typedef struct {
    uint32_t iocId;
    uint64_t precord;
    uint64_t due;
    unsigned tries;
} linkPut;

/* A put to a link is seen before it is done, so the links are read several times: ns after each look. */
static const uint64_t again[] = { 0, 500000, 2000000, 10000000, 100000000, 1000000000 };

static epicsMutexId lock; /* guards all that follows */
static void (*wakeUp)(void);
static ebpfMonFilter filter;
static int changed;
static rule rules[RULES_MAX];
static int ruleCount;
static linkPut links[LINKS_MAX];
static unsigned linkCount;

void ebpfMonAskedInit(void (*wake)(void))
{
    lock = epicsMutexMustCreate();
    filter = ebpfMonFilterDefault;
    wakeUp = wake;
}

void ebpfMonAskedFilter(const ebpfMonFilter *f)
{
    epicsMutexMustLock(lock);
    filter = *f;
    changed = 1;
    epicsMutexUnlock(lock);
    wakeUp();
}

void ebpfMonAskedFilterGet(ebpfMonFilter *f)
{
    epicsMutexMustLock(lock);
    *f = filter;
    epicsMutexUnlock(lock);
}

int ebpfMonAskedTake(ebpfMonFilter *f)
{
    int was;

    epicsMutexMustLock(lock);
    *f = filter;
    was = changed;
    changed = 0;
    epicsMutexUnlock(lock);
    return was;
}

/* One rule a pattern and kind. */
static int addRule(const char *pattern, int level, int reference)
{
    int i, rc = 0;

    epicsMutexMustLock(lock);
    for (i = 0; i < ruleCount; i++)
        if (strcmp(rules[i].pattern, pattern) == 0 && (rules[i].reference < 0) == (reference < 0))
            break;
    if (i == RULES_MAX) {
        rc = -1;
    } else {
        if (i == ruleCount)
            ruleCount++;
        snprintf(rules[i].pattern, sizeof(rules[i].pattern), "%s", pattern);
        rules[i].level = level;
        rules[i].reference = reference;
        changed = 1;
    }
    epicsMutexUnlock(lock);
    wakeUp();
    return rc;
}

int ebpfMonAskedLevel(const char *pattern, int level)
{
    return addRule(pattern, level, -1);
}

int ebpfMonAskedReference(const char *pattern, int on)
{
    return addRule(pattern, -1, on);
}

ebpfMonLevel ebpfMonAskedLevelOf(const char *ioc, const ebpfMonFilter *f, int *reference)
{
    int level = epicsStrGlobMatch(ioc, f->ioc) ? (int)f->level : ebpfMonLevelOff;

    *reference = 0;
    epicsMutexMustLock(lock);
    for (int i = 0; i < ruleCount; i++) {
        if (!epicsStrGlobMatch(ioc, rules[i].pattern))
            continue;
        if (rules[i].level >= 0)
            level = rules[i].level;
        if (rules[i].reference >= 0)
            *reference = rules[i].reference;
    }
    epicsMutexUnlock(lock);
    return (ebpfMonLevel)level;
}

void ebpfMonAskedLinks(uint32_t iocId, uint64_t precord)
{
    epicsMutexMustLock(lock);
    if (linkCount < LINKS_MAX)
        links[linkCount++] = (linkPut){ .iocId = iocId, .precord = precord };
    epicsMutexUnlock(lock);
    wakeUp();
}

double ebpfMonAskedLinksDue(uint64_t now, void (*each)(uint32_t iocId, uint64_t precord))
{
    linkPut due[LINKS_AT_ONCE];
    unsigned n = 0;
    double wait = IDLE;

    epicsMutexMustLock(lock);
    for (unsigned i = 0; i < linkCount;) {
        linkPut *l = &links[i];
        double s;

        if (l->due <= now && n < LINKS_AT_ONCE) {
            due[n++] = *l;
            if (++l->tries == sizeof(again) / sizeof(again[0])) {
                *l = links[--linkCount];
                continue;
            }
            l->due = now + again[l->tries];
        }
        s = l->due > now ? (double)(l->due - now) / 1e9 : 0;
        if (s < wait)
            wait = s;
        i++;
    }
    epicsMutexUnlock(lock);
    for (unsigned i = 0; i < n; i++)
        each(due[i].iocId, due[i].precord);
    return wait;
}

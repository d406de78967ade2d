/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsString.h>
#include <epicsTime.h>

#include "watch/requests.h"

#define LINKS_MAX 1024
#define LINKS_AT_ONCE 64
#define IDLE 0.5 /* s: the longest that a caller is told to wait */

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
static unsigned asked, taken, applied; /* how often something was asked; up to where it was taken, and done */
static epicsEventId done;              /* "applied" moved on */
static ebpfMonLevelRule rules[EBPFMON_LEVEL_RULES_MAX]; /* the newest last: it goes before the others */
static unsigned ruleCount;
static linkPut links[LINKS_MAX];
static unsigned linkCount;
static int linksMissed; /* more than the list holds */

void ebpfMonRequestsInit(const ebpfMonFilter *first, void (*wake)(void))
{
    lock = epicsMutexMustCreate();
    done = epicsEventMustCreate(epicsEventEmpty);
    filter = *first;
    wakeUp = wake;
}

unsigned ebpfMonRequestsSetFilter(const ebpfMonFilter *f)
{
    unsigned number;

    epicsMutexMustLock(lock);
    filter = *f;
    number = ++asked;
    epicsMutexUnlock(lock);
    wakeUp();
    return number;
}

int ebpfMonRequestsWait(unsigned number, double seconds)
{
    epicsUInt64 begin = epicsMonotonicGet();
    int reached;

    for (;;) {
        double left = seconds - (double)(epicsMonotonicGet() - begin) / 1e9;

        epicsMutexMustLock(lock);
        reached = (int)(applied - number) >= 0;
        epicsMutexUnlock(lock);
        if (reached || left <= 0)
            break;
        epicsEventWaitWithTimeout(done, left);
    }
    if (reached)
        epicsEventMustTrigger(done); /* it wakes one at a time, and another may wait for the same */
    return reached ? 0 : -1;
}

void ebpfMonRequestsGetFilter(ebpfMonFilter *f)
{
    epicsMutexMustLock(lock);
    *f = filter;
    epicsMutexUnlock(lock);
}

int ebpfMonRequestsTakeFilter(ebpfMonFilter *f)
{
    int was;

    epicsMutexMustLock(lock);
    *f = filter;
    was = taken != asked;
    taken = asked;
    epicsMutexUnlock(lock);
    return was;
}

void ebpfMonRequestsSetApplied(void)
{
    epicsMutexMustLock(lock);
    applied = taken;
    epicsMutexUnlock(lock);
    epicsEventMustTrigger(done);
}

/* --- rules, all under the lock --- */

static void dropRule(unsigned i)
{
    memmove(&rules[i], &rules[i + 1], (--ruleCount - i) * sizeof(rules[0]));
}

/* Drops the rules of this pattern; of one kind, or of both. */
static void dropPattern(const char *pattern, int levels, int references)
{
    for (unsigned i = 0; i < ruleCount;) {
        int isLevel = rules[i].level >= 0;

        if (strcmp(rules[i].pattern, pattern) == 0 && (isLevel ? levels : references))
            dropRule(i);
        else
            i++;
    }
}

/* "No reference" says something only after a rule that asks for one. Nonzero: there is one that does. */
static int dropIdle(void)
{
    int on = 0;

    for (unsigned i = 0; i < ruleCount;) {
        if (rules[i].reference == 0 && !on) {
            dropRule(i);
            continue;
        }
        on |= rules[i].reference > 0;
        i++;
    }
    return on;
}

static int addRule(const char *pattern, int level, int reference)
{
    ebpfMonLevelRule *r;

    if (ruleCount == EBPFMON_LEVEL_RULES_MAX)
        return -1;
    r = &rules[ruleCount++];
    snprintf(r->pattern, sizeof(r->pattern), "%s", pattern);
    r->level = level;
    r->reference = reference;
    return 0;
}

int ebpfMonRequestsSetLevel(const char *pattern, int level)
{
    int rc = 0;

    epicsMutexMustLock(lock);
    dropPattern(pattern, 1, level < 0);
    if (level >= 0)
        rc = addRule(pattern, level, -1);
    dropIdle();
    asked++;
    epicsMutexUnlock(lock);
    wakeUp();
    return rc;
}

int ebpfMonRequestsSetReference(const char *pattern, int on)
{
    int rc = 0;

    epicsMutexMustLock(lock);
    dropPattern(pattern, 0, 1);
    if (dropIdle() || on)
        rc = addRule(pattern, -1, !!on);
    asked++;
    epicsMutexUnlock(lock);
    wakeUp();
    return rc;
}

unsigned ebpfMonRequestsGetLevelRules(ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX])
{
    unsigned n;

    epicsMutexMustLock(lock);
    n = ruleCount;
    memcpy(copy, rules, n * sizeof(rules[0]));
    epicsMutexUnlock(lock);
    return n;
}

ebpfMonLevel ebpfMonRequestsFindLevel(const char *ioc, const ebpfMonFilter *f, int *reference)
{
    int level = epicsStrGlobMatch(ioc, f->ioc) ? (int)f->level : ebpfMonLevelOff;

    *reference = 0;
    epicsMutexMustLock(lock);
    for (unsigned i = 0; i < ruleCount; i++) {
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

void ebpfMonRequestsAddLinks(uint32_t iocId, uint64_t precord)
{
    unsigned i;

    epicsMutexMustLock(lock);
    for (i = 0; i < linkCount && (links[i].iocId != iocId || links[i].precord != precord); i++)
        ;
    if (i < LINKS_MAX) {
        links[i] = (linkPut){ .iocId = iocId, .precord = precord };
        if (i == linkCount)
            linkCount++;
    } else {
        linksMissed = 1;
    }
    epicsMutexUnlock(lock);
    wakeUp();
}

int ebpfMonRequestsTakeLinksMissed(void)
{
    int was;

    epicsMutexMustLock(lock);
    was = linksMissed;
    linksMissed = 0;
    epicsMutexUnlock(lock);
    return was;
}

double ebpfMonRequestsTakeLinksDue(uint64_t now, void (*each)(uint32_t iocId, uint64_t precord))
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

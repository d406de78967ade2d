/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "watch/requests.h"

#define LINKS_MAX 1024
#define LINKS_AT_ONCE 64
#define IDLE 60.0 /* s: the longest time until the caller is to ask again; new links wake it */

typedef struct {
    uint32_t iocId;
    uint64_t precord;
    uint64_t due;
    unsigned tries;
} linkPut;

#define MS 1000000ull

/* A put to a link is seen before it is done, so the links are read several times: ns from one time to the next.
 * dbPutFieldLink (dbAccess.c) waits until nobody holds the lock sets, which takes as long as a slow record. */
static const uint64_t readAgain[] = { 0, MS / 2, 2 * MS, 10 * MS, 100 * MS, 1000 * MS, 2000 * MS, 4000 * MS, 8000 * MS,
                                      16000 * MS, 32000 * MS };
#define READINGS (sizeof(readAgain) / sizeof(readAgain[0]))
#define READINGS_MOST 6 /* after these, nearly every put is done */

struct ebpfMonRequests {
    epicsMutexId lock;         /* guards all that follows */
    void (*wake)(void *arg);
    void *wakeArg;
    ebpfMonFilter filter;
    unsigned requested, taken, applied; /* number of requests; how many of them were taken, and applied */
    ebpfMonLevelRule rules[EBPFMON_LEVEL_RULES_MAX]; /* the newest last: it counts before the others */
    unsigned ruleCount;
    linkPut links[LINKS_MAX];
    unsigned linkCount;
    int linksMissed;           /* more than the list holds */
};


ebpfMonRequests *ebpfMonRequestsNew(const ebpfMonFilter *first)
{
    ebpfMonRequests *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->lock = epicsMutexMustCreate();
    r->filter = *first;
    return r;
}

void ebpfMonRequestsFree(ebpfMonRequests *r)
{
    if (!r)
        return;
    epicsMutexDestroy(r->lock);
    free(r);
}

void ebpfMonRequestsSetWake(ebpfMonRequests *r, void (*wake)(void *arg), void *arg)
{
    epicsMutexMustLock(r->lock);
    r->wake = wake;
    r->wakeArg = arg;
    epicsMutexUnlock(r->lock);
}

static void wakeFollower(ebpfMonRequests *r)
{
    epicsMutexMustLock(r->lock);
    if (r->wake)
        r->wake(r->wakeArg);
    epicsMutexUnlock(r->lock);
}

unsigned ebpfMonRequestsSetFilter(ebpfMonRequests *r, const ebpfMonFilter *f)
{
    unsigned number;

    epicsMutexMustLock(r->lock);
    r->filter = *f;
    if (++r->requested == 0) /* stands for none */
        r->requested = 1;
    number = r->requested;
    epicsMutexUnlock(r->lock);
    wakeFollower(r);
    return number;
}

int ebpfMonRequestsIsApplied(ebpfMonRequests *r, unsigned number)
{
    int is;

    epicsMutexMustLock(r->lock);
    is = (int)(r->applied - number) >= 0;
    epicsMutexUnlock(r->lock);
    return is;
}

void ebpfMonRequestsGetFilter(ebpfMonRequests *r, ebpfMonFilter *f)
{
    epicsMutexMustLock(r->lock);
    *f = r->filter;
    epicsMutexUnlock(r->lock);
}

int ebpfMonRequestsTakeFilter(ebpfMonRequests *r, ebpfMonFilter *f)
{
    int was;

    epicsMutexMustLock(r->lock);
    *f = r->filter;
    was = r->taken != r->requested;
    r->taken = r->requested;
    epicsMutexUnlock(r->lock);
    return was;
}

void ebpfMonRequestsSetApplied(ebpfMonRequests *r)
{
    epicsMutexMustLock(r->lock);
    r->applied = r->taken;
    epicsMutexUnlock(r->lock);
}

/* --- Rules, all under the lock --- */

static void dropRule(ebpfMonRequests *r, unsigned i)
{
    memmove(&r->rules[i], &r->rules[i + 1], (--r->ruleCount - i) * sizeof(r->rules[0]));
}

/* Drops the rules of this pattern; of one kind, or of both. */
static void dropPattern(ebpfMonRequests *r, const char *pattern, int levels, int references)
{
    for (unsigned i = 0; i < r->ruleCount;) {
        int isLevel = r->rules[i].level >= 0;

        if (strcmp(r->rules[i].pattern, pattern) == 0 && (isLevel ? levels : references))
            dropRule(r, i);
        else
            i++;
    }
}

/* A rule "no reference" has an effect only after one that asks for it. Nonzero: there is one that asks. */
static int dropIdle(ebpfMonRequests *r)
{
    int on = 0;

    for (unsigned i = 0; i < r->ruleCount;) {
        if (r->rules[i].reference == 0 && !on) {
            dropRule(r, i);
            continue;
        }
        on |= r->rules[i].reference > 0;
        i++;
    }
    return on;
}

static int addRule(ebpfMonRequests *r, const char *pattern, int level, int reference)
{
    ebpfMonLevelRule *rule;

    if (r->ruleCount == EBPFMON_LEVEL_RULES_MAX)
        return -1;
    rule = &r->rules[r->ruleCount++];
    snprintf(rule->pattern, sizeof(rule->pattern), "%s", pattern);
    rule->level = level;
    rule->reference = reference;
    return 0;
}

int ebpfMonRequestsSetLevel(ebpfMonRequests *r, const char *pattern, int level)
{
    int rc = 0;

    epicsMutexMustLock(r->lock);
    dropPattern(r, pattern, 1, level < 0);
    if (level >= 0)
        rc = addRule(r, pattern, level, -1);
    dropIdle(r);
    r->requested++;
    epicsMutexUnlock(r->lock);
    wakeFollower(r);
    return rc;
}

int ebpfMonRequestsSetReference(ebpfMonRequests *r, const char *pattern, int on)
{
    int rc = 0;

    epicsMutexMustLock(r->lock);
    dropPattern(r, pattern, 0, 1);
    if (dropIdle(r) || on)
        rc = addRule(r, pattern, -1, !!on);
    r->requested++;
    epicsMutexUnlock(r->lock);
    wakeFollower(r);
    return rc;
}

unsigned ebpfMonRequestsGetLevelRules(ebpfMonRequests *r, ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX])
{
    unsigned n;

    epicsMutexMustLock(r->lock);
    n = r->ruleCount;
    memcpy(copy, r->rules, n * sizeof(r->rules[0]));
    epicsMutexUnlock(r->lock);
    return n;
}

ebpfMonLevel ebpfMonRequestsFindLevel(ebpfMonRequests *r, const char *ioc, const ebpfMonFilter *f, int *reference)
{
    int level = ebpfMonPatternMatchesIoc(f->ioc, ioc) ? (int)f->level : ebpfMonLevelOff;

    *reference = 0;
    epicsMutexMustLock(r->lock);
    for (unsigned i = 0; i < r->ruleCount; i++) {
        if (!ebpfMonPatternMatchesIoc(r->rules[i].pattern, ioc))
            continue;
        if (r->rules[i].level >= 0)
            level = r->rules[i].level;
        if (r->rules[i].reference >= 0)
            *reference = r->rules[i].reference;
    }
    epicsMutexUnlock(r->lock);
    return (ebpfMonLevel)level;
}

int ebpfMonRequestsHasLevelRule(ebpfMonRequests *r, const char *ioc)
{
    int has = 0;

    epicsMutexMustLock(r->lock);
    for (unsigned i = 0; i < r->ruleCount; i++)
        has |= r->rules[i].level >= 0 && ebpfMonPatternMatchesIoc(r->rules[i].pattern, ioc);
    epicsMutexUnlock(r->lock);
    return has;
}

/* The entry of this record, or one for it. NULL: no room. Under the lock. */
static linkPut *findEntry(ebpfMonRequests *r, uint32_t iocId, uint64_t precord)
{
    linkPut *late = NULL;

    for (unsigned i = 0; i < r->linkCount; i++) {
        if (r->links[i].iocId == iocId && r->links[i].precord == precord)
            return &r->links[i];
        if (r->links[i].tries >= READINGS_MOST)
            late = &r->links[i];
    }
    return r->linkCount < LINKS_MAX ? &r->links[r->linkCount++] : late;
}

void ebpfMonRequestsAddLinks(ebpfMonRequests *r, uint32_t iocId, uint64_t precord)
{
    linkPut *l;

    epicsMutexMustLock(r->lock);
    l = findEntry(r, iocId, precord);
    if (l)
        *l = (linkPut){ .iocId = iocId, .precord = precord };
    else
        r->linksMissed = 1;
    epicsMutexUnlock(r->lock);
    wakeFollower(r);
}

int ebpfMonRequestsTakeLinksMissed(ebpfMonRequests *r)
{
    int was;

    epicsMutexMustLock(r->lock);
    was = r->linksMissed;
    r->linksMissed = 0;
    epicsMutexUnlock(r->lock);
    return was;
}

double ebpfMonRequestsTakeLinksDue(ebpfMonRequests *r, uint64_t now,
                                   void (*each)(void *arg, uint32_t iocId, uint64_t precord), void *arg)
{
    linkPut due[LINKS_AT_ONCE];
    unsigned n = 0;
    double wait = IDLE;

    epicsMutexMustLock(r->lock);
    for (unsigned i = 0; i < r->linkCount;) {
        linkPut *l = &r->links[i];
        double s;

        if (l->due <= now && n < LINKS_AT_ONCE) {
            due[n++] = *l;
            if (++l->tries == READINGS) {
                *l = r->links[--r->linkCount];
                continue;
            }
            l->due = now + readAgain[l->tries];
        }
        s = l->due > now ? (double)(l->due - now) / 1e9 : 0;
        if (s < wait)
            wait = s;
        i++;
    }
    epicsMutexUnlock(r->lock);
    for (unsigned i = 0; i < n; i++)
        each(arg, due[i].iocId, due[i].precord);
    return wait;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <epicsAtomic.h>
#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/procRead.h"
#include "model/filter.h"
#include "model/published.h"
#include "model/put.h"
#include "watch/target.h"

#define HOLDERS_MAX 4 /* of one name: one that lives, and some that have just ended */

/* The end of an IOC is noticed up to a second late (follower.c). So a restarted IOC keeps its name, although the old
 * process still seems to have it. */
static int isNameTaken(ebpfMonTargets *targets, const char *name)
{
    struct { pid_t pid; uint64_t start; } holder[HOLDERS_MAX];
    unsigned n = 0;
    int taken = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o && n < HOLDERS_MAX; o = o->next)
        if (!o->gone && strcmp(o->name, name) == 0) {
            holder[n].pid = o->pid;
            holder[n++].start = o->start;
        }
    ebpfMonTargetsUnlock(targets);
    for (unsigned i = 0; i < n && !taken; i++)
        taken = !ebpfMonProcIsEnding(holder[i].pid, holder[i].start);
    return taken;
}

void ebpfMonTargetTextTellApart(ebpfMonTargets *targets, pid_t pid, char name[EBPFMON_IOCNAME_SIZE])
{
    char base[EBPFMON_IOCNAME_SIZE];

    if (!isNameTaken(targets, name))
        return;
    snprintf(base, sizeof(base), "%s", name);
    snprintf(name, EBPFMON_IOCNAME_SIZE, "%.48s#%d", base, (int)pid);
}

int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size)
{
    long index = target && target->cat ? ebpfMonCatalogueFindAddr(target->cat, precord) : -1;

    snprintf(name, size, "%s", index >= 0 ? ebpfMonCatalogueName(target->cat, (uint32_t)index) : "");
    return index >= 0;
}

void ebpfMonRecordNameSettle(ebpfMonTargets *targets, uint32_t iocId, char *pv, size_t size)
{
    size_t n = ebpfMonPutGetRecordLength(pv);
    char record[EBPFMON_NAME_SIZE], text[2 * EBPFMON_NAME_SIZE];
    const ebpfMonTarget *t;
    long index;

    ebpfMonTextCopyBytes(record, sizeof(record), pv, n);
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    index = t && t->cat ? ebpfMonCatalogueFind(t->cat, record) : -1;
    snprintf(text, sizeof(text), "%s%s", index >= 0 ? ebpfMonCatalogueName(t->cat, (uint32_t)index) : record, pv + n);
    ebpfMonTargetsUnlock(targets);
    ebpfMonTextCopy(pv, size, text);
}

struct ebpfMonTargets {
    epicsMutexId   lock;    /* guards the list, and the shared members of all targets */
    ebpfMonTarget *first;
    uint32_t       lastId;  /* under the lock */
    size_t         changes; /* atomic, as the next one */
    size_t         searched; /* atomic: monotonic ns; the follower has looked at all processes that were there */
    void         (*changed)(void *arg); /* these two: set before other threads are there; NULL: nobody is told */
    void          *changedArg;
    ebpfMonLateReads *reads; /* the event thread's own */
};

ebpfMonTargets *ebpfMonTargetsNew(void)
{
    ebpfMonTargets *targets = calloc(1, sizeof(*targets));

    if (!targets)
        return NULL;
    targets->reads = ebpfMonLateReadsNew();
    if (!targets->reads) {
        free(targets);
        return NULL;
    }
    targets->lock = epicsMutexMustCreate();
    return targets;
}

void ebpfMonTargetsFree(ebpfMonTargets *targets)
{
    if (!targets)
        return;
    epicsMutexDestroy(targets->lock);
    ebpfMonLateReadsFree(targets->reads);
    free(targets);
}

void ebpfMonTargetsNoteChange(ebpfMonTargets *targets)
{
    epicsAtomicIncrSizeT(&targets->changes);
    if (targets->changed)
        targets->changed(targets->changedArg);
}

void ebpfMonTargetsSetListener(ebpfMonTargets *targets, void (*changed)(void *arg), void *arg)
{
    targets->changed = changed;
    targets->changedArg = arg;
}

size_t ebpfMonTargetsCountChanges(ebpfMonTargets *targets)
{
    return epicsAtomicGetSizeT(&targets->changes);
}

void ebpfMonTargetsSetSearched(ebpfMonTargets *targets, uint64_t at)
{
    epicsAtomicSetSizeT(&targets->searched, (size_t)at);
}

uint64_t ebpfMonTargetsGetSearched(ebpfMonTargets *targets)
{
    return epicsAtomicGetSizeT(&targets->searched);
}

int ebpfMonTargetsAreFollowed(ebpfMonTargets *targets)
{
    int are = ebpfMonTargetsGetSearched(targets) != 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = targets->first; t; t = t->next)
        are &= t->running || t->gone || t->wantedLevel == ebpfMonLevelOff;
    ebpfMonTargetsUnlock(targets);
    return are;
}

void ebpfMonTargetsLock(ebpfMonTargets *targets)
{
    epicsMutexMustLock(targets->lock);
}

void ebpfMonTargetsUnlock(ebpfMonTargets *targets)
{
    epicsMutexUnlock(targets->lock);
}

ebpfMonLateReads *ebpfMonTargetsGetReads(ebpfMonTargets *targets)
{
    return targets->reads;
}

ebpfMonTarget *ebpfMonTargetsGetFirst(ebpfMonTargets *targets)
{
    return targets->first;
}

ebpfMonTarget *ebpfMonTargetsFindById(ebpfMonTargets *targets, uint32_t iocId)
{
    for (ebpfMonTarget *t = targets->first; t; t = t->next)
        if (t->iocId == iocId)
            return t;
    return NULL;
}

ebpfMonTarget *ebpfMonTargetsFindByPid(ebpfMonTargets *targets, pid_t pid)
{
    for (ebpfMonTarget *t = targets->first; t; t = t->next)
        if (t->pid == pid && !t->gone)
            return t;
    return NULL;
}

void ebpfMonTargetsNoteExit(ebpfMonTargets *targets, const struct ebpfMonExitEvent *ev)
{
    ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    for (t = targets->first; t && (t->pid != (pid_t)ev->head.tgid || t->exit.isKnown); t = t->next)
        ;
    if (t) {
        t->exit.code = ev->code;
        t->exit.at = ev->head.ktime;
        t->exit.isKnown = 1;
    }
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonTargetsAdd(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    ebpfMonTargetsLock(targets);
    t->iocId = ++targets->lastId;
    t->eventThread.reads = targets->reads;
    t->next = targets->first;
    targets->first = t;
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonTargetsRemove(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    ebpfMonTarget **p;

    ebpfMonTargetsLock(targets);
    for (p = &targets->first; *p && *p != t; p = &(*p)->next)
        ;
    if (*p)
        *p = t->next;
    ebpfMonTargetsUnlock(targets);
    ebpfMonTargetsNoteChange(targets);
}

int ebpfMonTargetSetNote(ebpfMonTargets *targets, ebpfMonTarget *t, const char *note, int remark)
{
    int changed;

    ebpfMonTargetsLock(targets);
    changed = strcmp(t->note, note) != 0;
    if (changed)
        epicsSnprintf(t->note, sizeof(t->note), "%s", note);
    t->remark = remark;
    ebpfMonTargetsUnlock(targets);
    return changed;
}

int ebpfMonTargetsGetPutsSince(ebpfMonTargets *targets, uint32_t *iocId, pid_t pid, uint64_t *since)
{
    ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    t = *iocId ? ebpfMonTargetsFindById(targets, *iocId) : pid ? ebpfMonTargetsFindByPid(targets, pid) : NULL;
    if (t) {
        *iocId = t->iocId;
        *since = t->putsSince;
    }
    ebpfMonTargetsUnlock(targets);
    return t ? 0 : -1;
}

void ebpfMonTargetSetProbes(ebpfMonTarget *t, uint32_t on)
{
    if (t->probesOn & ~on & EBPFMON_BIT(ebpfMonProgPutReturn))
        t->resultsUntil = ebpfMonClockMonotonic();
    t->probesOn = on;
}

/* What was counted for this record alone. */
static uint64_t countAlone(const ebpfMonTarget *t, uint32_t i)
{
    const volatile struct ebpfMonRecState *st = &t->recState[i];

    if (ebpfMonTargetUsesTrap(t->how[i]))
        return st->trapped + (uint64_t)t->adjust[i];
    return st->count + (uint64_t)t->adjust[i];
}

/* The part of a record's count that the passes of its stretches make up, in one bank. */
static uint64_t countPasses(const ebpfMonTarget *t, int bank, uint32_t i)
{
    const ebpfMonStretches *s = t->closures.stretch[bank];
    uint64_t sum = 0;

    if (!s || !s->ahead[i])
        return 0; /* the last record of a stretch is counted by itself */
    for (uint32_t r = i; r != EBPFMON_NO_RECORD; r = ebpfMonStretchBefore(s, r))
        sum += t->recState[r].pass[bank];
    return sum;
}

uint64_t ebpfMonTargetCountRecord(const ebpfMonTarget *t, uint32_t i)
{
    if (!t->recState)
        return 0;
    return countAlone(t, i) + countPasses(t, 0, i) + countPasses(t, 1, i);
}

uint64_t ebpfMonTargetAddPasses(const ebpfMonTarget *t, int bank, uint64_t *counts)
{
    const ebpfMonStretches *s = t->closures.stretch[bank];
    uint64_t sum = 0, all = 0;

    for (uint32_t p = 0; s && p < s->n; p++) { /* in order, so that each stretch is gone through once */
        uint32_t r = s->order[p];

        if (ebpfMonStretchBefore(s, r) == EBPFMON_NO_RECORD)
            sum = 0;
        if (!s->ahead[r])
            continue;
        sum += t->recState[r].pass[bank];
        all += sum;
        if (counts)
            counts[r] += sum;
    }
    return all;
}

uint64_t ebpfMonTargetCountSnapshots(const ebpfMonTarget *t)
{
    uint64_t sum = t->closures.moved;

    for (uint32_t i = 0; i < t->cat->count; i++)
        sum += t->recState[i].count;
    return sum + ebpfMonTargetAddPasses(t, 0, NULL) + ebpfMonTargetAddPasses(t, 1, NULL);
}

void ebpfMonTargetCountRecords(const ebpfMonTarget *t, uint64_t *now)
{
    for (uint32_t i = 0; i < t->cat->count; i++)
        now[i] = countAlone(t, i);
    ebpfMonTargetAddPasses(t, 0, now);
    ebpfMonTargetAddPasses(t, 1, now);
}

void ebpfMonTargetNoteUnseen(ebpfMonTarget *t, uint32_t index, uint8_t unseen)
{
    const uint8_t trapped = EBPFMON_BY_TRAP | EBPFMON_MAY_SLEEP;

    if (!t->how || (unseen == EBPFMON_UNSEEN_ALONE && (t->how[index] & trapped) == EBPFMON_BY_TRAP))
        return;
    if (t->unseen[index] < unseen)
        t->unseen[index] = unseen;
    t->hasUnseen = 1;
}

unsigned ebpfMonTargetsCountMatching(ebpfMonTargets *targets, const char *ioc, const char *record)
{
    unsigned n = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = targets->first; t; t = t->next) {
        uint32_t count = t->cat && !t->gone && ebpfMonPatternMatchesIoc(ioc, t->name) ? t->cat->count : 0;

        for (uint32_t i = 0; i < count; i++)
            n += !!epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), record);
    }
    ebpfMonTargetsUnlock(targets);
    return n;
}

int ebpfMonTargetIsCredible(ebpfMonTargets *targets, const ebpfMonTarget *t)
{
    if (t->cat || t->uid == 0 || t->uid == geteuid())
        return 1;
    for (const ebpfMonTarget *o = targets->first; o; o = o->next)
        if (o->cat && o->uid == t->uid)
            return 1;
    return 0;
}

typedef struct {
    ebpfMonTarget *t;
    int rank; /* the larger, the sooner */
} rankedTarget;

enum { rankUnknown, rankListens, rankCredible };

static int byRank(const void *a, const void *b)
{
    const rankedTarget *x = a, *y = b;

    if (x->rank != y->rank)
        return y->rank - x->rank;
    if (x->rank != rankCredible && x->t->start != y->t->start)
        return x->t->start < y->t->start ? -1 : 1;
    return x->t->iocId > y->t->iocId ? -1 : x->t->iocId < y->t->iocId;
}

unsigned ebpfMonTargetsListByRank(ebpfMonTargets *targets, ebpfMonTarget **list, unsigned max)
{
    rankedTarget ranked[EBPFMON_TARGETS_MAX];
    unsigned n = 0;

    if (!targets->first)
        return 0;
    for (ebpfMonTarget *t = targets->first; t && n < EBPFMON_TARGETS_MAX; t = t->next)
        ranked[n++] = (rankedTarget){ t, ebpfMonTargetIsCredible(targets, t) ? rankCredible :
                                         t->listens ? rankListens : rankUnknown };
    qsort(ranked, n, sizeof(ranked[0]), byRank);
    if (n > max)
        n = max;
    for (unsigned i = 0; i < n; i++)
        list[i] = ranked[i].t;
    return n;
}

unsigned ebpfMonTargetsListPids(ebpfMonTargets *targets, ebpfMonLevel least, pid_t *pids, unsigned max)
{
    ebpfMonTarget *list[EBPFMON_TARGETS_MAX];
    unsigned count, n = 0;

    ebpfMonTargetsLock(targets);
    count = ebpfMonTargetsListByRank(targets, list, EBPFMON_TARGETS_MAX);
    for (unsigned i = 0; i < count && n < max; i++)
        if (!list[i]->gone && list[i]->wantedLevel >= least)
            pids[n++] = list[i]->pid;
    ebpfMonTargetsUnlock(targets);
    return n;
}

unsigned ebpfMonTargetsFindTrouble(ebpfMonTargets *targets, char *buf, size_t size)
{
    unsigned n = 0;

    buf[0] = 0;
    for (ebpfMonTarget *t = targets->first; t; t = t->next)
        if (!t->gone && t->note[0] && !t->remark && t->wantedLevel > ebpfMonLevelOff &&
            ebpfMonTargetIsCredible(targets, t) && n++ == 0)
            epicsSnprintf(buf, size, "%s: %s", t->name, t->note);
    return n;
}

/* --- what an IOC pays --- */

#define OVER_SECONDS 10.0 /* as for watching (budget.h): a short burst is allowed */

double ebpfMonTargetGetCost(const ebpfMonTarget *t)
{
    double cost = t->cost.now;

    for (unsigned i = 0; i < EBPFMON_MODULES_MAX; i++)
        cost += t->share[i].cost;
    return cost;
}

int ebpfMonTargetIsSpent(const ebpfMonTarget *t)
{
    return t->cost.limit > 0 && ebpfMonTargetGetCost(t) >= t->cost.limit;
}

void ebpfMonTargetSetShare(ebpfMonTarget *t, const ebpfMonModule *module, double cost)
{
    t->share[module->group - ebpfMonGroupModules].cost = cost;
}

int ebpfMonTargetMustSave(ebpfMonTarget *t, const ebpfMonModule *module, double now)
{
    unsigned own = (unsigned)(module->group - ebpfMonGroupModules);
    int isOver = t->cost.limit > 0 && t->share[own].cost > 0 && ebpfMonTargetGetCost(t) > t->cost.limit;

    for (unsigned i = 0; i < EBPFMON_MODULES_MAX; i++)
        isOver &= t->share[i].cost <= t->share[own].cost;
    if (!isOver)
        t->share[own].overSince = 0;
    else if (t->share[own].overSince <= 0)
        t->share[own].overSince = now;
    else if (now - t->share[own].overSince >= OVER_SECONDS) {
        t->share[own].overSince = 0;
        return 1;
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsExport.h>

#include "health/hangFinder.h"
#include "health/hangStacks.h"
#include "health/recordName.h"

struct ebpfMonHangFinder {
    ebpfMonTargets *targets;
    const ebpfMonHangSources *sources;
    ebpfMonHangStacks *stacks;
};

double ebpfMonHangLimit = 5;
epicsExportAddress(double, ebpfMonHangLimit);

ebpfMonHangFinder *ebpfMonHangFinderNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources)
{
    ebpfMonHangFinder *finder = calloc(1, sizeof(*finder));

    if (!finder)
        return NULL;
    finder->targets = targets;
    finder->sources = sources;
    finder->stacks = ebpfMonHangStacksNew(targets, sources);
    if (!finder->stacks) {
        free(finder);
        return NULL;
    }
    return finder;
}

void ebpfMonHangFinderFree(ebpfMonHangFinder *finder)
{
    if (!finder)
        return;
    ebpfMonHangStacksFree(finder->stacks);
    free(finder);
}

static int isWaitingForLock(const ebpfMonHangFinder *finder, const ebpfMonSeenThread *t)
{
    char name[16], what[128];

    return finder->sources->readThread((pid_t)t->seen.tgid, (pid_t)t->tid, name, what, sizeof(what)) == 0 &&
           strstr(what, " futex") != NULL;
}

/* The thread is in a pass, and the chains of this pass are not timed. The thread may hold any lock set. */
static int isInUntimedPass(const struct ebpfMonThread *t)
{
    return t->heldCount && t->held[0].sp && !t->held[0].root;
}

/* The first lock set of a thread; 0: not known. */
static uint64_t findLockSet(const ebpfMonHangFinder *finder, const struct ebpfMonThread *t)
{
    const struct ebpfMonHeld *h = &t->held[0];
    const ebpfMonTarget *target;
    uint64_t lset = 0;

    if (h->lockSet || !h->root)
        return h->lockSet;
    ebpfMonTargetsLock(finder->targets);
    target = ebpfMonTargetsFindByPid(finder->targets, (pid_t)t->tgid);
    if (target && target->cat)
        lset = h->root + target->cat->common.lset;
    ebpfMonTargetsUnlock(finder->targets);
    return lset ? finder->sources->readLockSet((pid_t)t->tgid, lset) : 0;
}

/*
 * Since when (monotonic ns) this thread holds its lock set; 0: it does not hold it. The thread table has the holder of
 * a lock set and the threads that wait for it. The holder is the thread that does not wait in the kernel for a mutex.
 * If all of them wait, the holder is the thread that requested the lock set first; if it is not certain which one that
 * is, any of them may be. If another thread released the lock set after that request, the holder has it since this
 * release.
 */
static uint64_t findHeldSince(const ebpfMonHangFinder *finder, const ebpfMonSeenThread *threads, unsigned count,
                              unsigned i)
{
    const struct ebpfMonThread *t = &threads[i].seen;
    uint64_t since = t->held[0].begin, lockSet = findLockSet(finder, t);
    uint64_t released = finder->sources->getReleased(t->tgid, lockSet);
    int waits = isWaitingForLock(finder, &threads[i]);

    for (unsigned k = 0; k < count; k++) {
        const struct ebpfMonThread *other = &threads[k].seen;
        int wasEarlier = other->held[0].begin < t->held[0].begin - threads[i].doubt;

        if (k == i || other->tgid != t->tgid || !other->heldCount)
            continue;
        if (isInUntimedPass(other) && !isInUntimedPass(t)) { /* it may hold our lock set: then it hangs, not we */
            if (waits && !isWaitingForLock(finder, &threads[k]))
                return 0;
            continue;
        }
        if (isInUntimedPass(t) || !lockSet || findLockSet(finder, other) != lockSet)
            continue;
        if ((waits && !isWaitingForLock(finder, &threads[k])) ||
            (wasEarlier && (waits || !isWaitingForLock(finder, &threads[k]))))
            return 0;
    }
    return released > since ? released : since;
}

static int isLong(uint64_t since, uint64_t now, uint64_t limit)
{
    return since && now > since && now - since >= limit;
}

/* Since when this thread hangs (monotonic ns); 0: it does not hang. A thread that only waits for a lock set does not
 * hang: the holder of the lock set does. */
static uint64_t findHangsSince(const ebpfMonHangFinder *finder, const ebpfMonSeenThread *threads, unsigned count,
                               unsigned i, uint64_t now, uint64_t limit)
{
    const struct ebpfMonThread *t = &threads[i].seen;
    uint64_t since = t->busySince;

    if (t->heldCount && isLong(t->held[0].begin, now, limit))
        since = findHeldSince(finder, threads, count, i);
    return isLong(since, now, limit) ? since : 0;
}

/* The names of the IOC and of the root. 0, or -1: the monitor does not know this IOC any more. */
static int findNames(const ebpfMonHangFinder *finder, const struct ebpfMonThread *t, uint32_t *iocId,
                     char ioc[EBPFMON_HEALTH_NAME], char record[EBPFMON_HEALTH_NAME])
{
    const ebpfMonTarget *target;

    ebpfMonTargetsLock(finder->targets);
    target = ebpfMonTargetsFindByPid(finder->targets, (pid_t)t->tgid);
    if (target) {
        *iocId = target->iocId;
        snprintf(ioc, EBPFMON_HEALTH_NAME, "%s", target->name);
        if (!ebpfMonRecordNameFind(t->heldCount ? target : NULL, t->held[0].root, record, EBPFMON_HEALTH_NAME))
            strcpy(record, "?");
    }
    ebpfMonTargetsUnlock(finder->targets);
    return target ? 0 : -1;
}

/* 0, or -1: the thread or its IOC is gone. */
static int describeHang(ebpfMonHangFinder *finder, const ebpfMonSeenThread *thread, int inRecord, ebpfMonHang *hang)
{
    const struct ebpfMonThread *t = &thread->seen;
    char name[16], ioc[EBPFMON_HEALTH_NAME], record[EBPFMON_HEALTH_NAME];
    int another;

    if (findNames(finder, t, &hang->id, ioc, record) ||
        finder->sources->readThread((pid_t)t->tgid, (pid_t)thread->tid, name, hang->what, sizeof(hang->what)))
        return -1;
    ebpfMonHangStacksDescribe(finder->stacks, (pid_t)t->tgid, hang);
    if (isInUntimedPass(t)) { /* only the stack tells the record; since when the thread is in it is not known */
        inRecord = !t->busySince;
        snprintf(record, sizeof(record), "%s", hang->now[0] ? hang->now : "?");
    }
    another = hang->now[0] && (!inRecord || strcmp(hang->now, record) != 0);
    snprintf(hang->who, sizeof(hang->who), "IOC %s (pid %u): thread %s (%u) in %s%s%s%s", ioc, t->tgid, name,
             thread->tid, inRecord ? "record " : "a callback", inRecord ? record : "",
             another ? ", at " : "", another ? hang->now : "");
    return 0;
}

unsigned ebpfMonHangFinderFind(ebpfMonHangFinder *finder, const ebpfMonSeenThread *threads, unsigned count,
                               uint64_t now, ebpfMonHang found[EBPFMON_HANGS_MAX], ebpfMonHealth *health)
{
    uint64_t limit = (uint64_t)(ebpfMonHangLimit * 1e9);
    unsigned n = 0;

    health->hangLines = 0;
    for (unsigned i = 0; ebpfMonHangLimit > 0 && i < count && n < EBPFMON_HANGS_MAX; i++) {
        const struct ebpfMonThread *t = &threads[i].seen;
        uint64_t since = findHangsSince(finder, threads, count, i, now, limit);
        ebpfMonHang *hang = &found[n];

        if (!since)
            continue;
        hang->tid = threads[i].tid;
        /* one callback is one hang, also if it locks several lock sets meanwhile */
        hang->begin = isLong(t->busySince, now, limit) ? t->busySince : t->held[0].begin;
        hang->since = (double)(now - since) / 1e9;
        if (describeHang(finder, &threads[i], t->heldCount && isLong(t->held[0].begin, now, limit), hang))
            continue;
        ebpfMonHangStacksAddLines(finder->stacks, (pid_t)t->tgid, hang, health);
        n++;
    }
    return n;
}

void ebpfMonHangFinderForgetOldRoot(struct ebpfMonThread *seen, uint32_t turn)
{
    if (seen->heldCount && seen->held[0].sp && seen->held[0].turn != turn)
        seen->held[0].root = 0;
}

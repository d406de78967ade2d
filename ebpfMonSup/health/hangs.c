/* SPDX-License-Identifier: BSD-3-Clause */
#include <alarm.h>
#include <epicsExport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "health/hangs.h"
#include "health/lives.h"
#include "host/memory.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "probe/kernelTables.h"
#include "watch/target.h"

/* --- how threads are read --- */

static unsigned readStack(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    ebpfMonStackStart start = { .returns = 0 };
    ebpfMonKernelRegs found;

    if (ebpfMonKernelGetRegs((uint32_t)tid, &found) == 0) {
        struct ebpfMonTaskRegs r = found.regs;

        start.regs = (ebpfMonRegs){.reg = {[3] = r.bx,
                                           [6] = r.bp,
                                           [EBPFMON_REG_SP] = r.sp,
                                           [12] = r.r12,
                                           [13] = r.r13,
                                           [14] = r.r14,
                                           [15] = r.r15,
                                           [EBPFMON_REG_PC] = r.ip},
                                   .known = 1u << 3 | 1u << 6 | 1u << EBPFMON_REG_SP | 0xfu << 12 |
                                            1u << EBPFMON_REG_PC};
        for (unsigned i = 0; i < found.returns && i < EBPFMON_STACK_RETURNS; i++)
            start.ret[start.returns++] = (ebpfMonReturn){ .slot = found.ret[i].slot, .to = found.ret[i].to };
    }
    return ebpfMonStackGet(pid, tid, &start, frame);
}

static uint64_t readLockSet(pid_t pid, uint64_t lset)
{
    struct layoutLockRecord lock;
    uint64_t at;

    return ebpfMonMemReadNow(pid, lset, &at, sizeof(at)) || ebpfMonMemReadNow(pid, at, &lock, sizeof(lock)) ?
           0 : lock.plockSet;
}

const ebpfMonHangSources ebpfMonHangSourcesHost = {
    ebpfMonProcThread, ebpfMonProcKernelStack, readStack, readLockSet, ebpfMonKernelGetReleased
};

/* --- hangs --- */

struct ebpfMonHangs {
    unsigned n;
    ebpfMonHang known[EBPFMON_HANGS_MAX];
    int named[EBPFMON_HANGS_MAX]; /* an event has named the record that the thread works on */
};

ebpfMonHangs *ebpfMonHangsNew(void)
{
    return calloc(1, sizeof(ebpfMonHangs));
}

void ebpfMonHangsFree(ebpfMonHangs *hangs)
{
    free(hangs);
}

/* The index of the hang in the list; n: it is not there. */
static unsigned findListed(const ebpfMonHang *list, unsigned n, const ebpfMonHang *hang)
{
    unsigned i;

    for (i = 0; i < n; i++)
        if (list[i].tid == hang->tid && list[i].begin == hang->begin)
            break;
    return i;
}

static void addHangEvent(ebpfMonHealth *health, const epicsTimeStamp *at, const ebpfMonHang *hang)
{
    ebpfMonHealthEventsAdd(health, at, 1, "%s hangs since %.0f s: %s", hang->who, hang->since, hang->what);
}

void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *health)
{
    int named[EBPFMON_HANGS_MAX];
    char text[EBPFMON_HEALTH_NAME + 20];
    unsigned i;

    if (n > EBPFMON_HANGS_MAX)
        n = EBPFMON_HANGS_MAX;
    for (i = 0; i < hangs->n; i++) {
        const ebpfMonHang *old = &hangs->known[i];

        if (findListed(now, n, old) == n && ebpfMonLivesIsAlive(lives, old->id))
            ebpfMonHealthEventsAdd(health, at, 0, "%s hangs no more, after %.0f s", old->who, old->since);
    }
    /* On a busy host the first reading of the stack may fail. When a later one shows the record, a second event
     * names it. */
    for (i = 0; i < n; i++) {
        unsigned known = findListed(hangs->known, hangs->n, &now[i]);
        int wasNamed = known < hangs->n && hangs->named[known];

        named[i] = wasNamed || now[i].now[0];
        if (known == hangs->n || (named[i] && !wasNamed))
            addHangEvent(health, at, &now[i]);
    }
    health->hangText[0] = 0;
    for (i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "a thread hangs%s%s", now[i].now[0] ? " in " : "", now[i].now);
        ebpfMonHealthAddIll(health, now[i].id, MAJOR_ALARM, text);
        if (i == 0) /* "who" begins with the name of the IOC */
            snprintf(health->hangText, sizeof(health->hangText), "%.*s: %s", (int)(strstr(now[i].who, " (pid ") ?
                     strstr(now[i].who, " (pid ") - now[i].who : 0), now[i].who, text);
        hangs->known[i] = now[i];
        hangs->named[i] = named[i];
        if (i < EBPFMON_HUNG_THREADS) {
            health->hung[i].iocId = now[i].id;
            health->hung[i].tid = now[i].tid;
            health->hung[i].begin = now[i].begin;
        }
    }
    hangs->n = health->hangs = n;
}

/* --- where threads hang --- */

/* Tells where threads hang: the frames of their stacks, and the record that the innermost function works on. Publishing
 * thread only. */

/*
 * A stack is kept for REFRESH, because reading one searches the symbols of some six files.
 *
 * Some registers must have the same value after a call as before it (callee-saved, System V ABI). process(precord),
 * readValue(precord) and such functions need the record's address after each call, so they put it into such a register.
 * The record that the thread works on is found there: it is the first record in a register that the innermost functions
 * changed.
 */

#define KEPT    8 /* hangs for which a stack is shown */
#define REFRESH (5 * EBPFMON_SECOND_NS)
#define RETRIES 5 /* On a busy host the time for a stack may not suffice (STACK_SECONDS of code/stack.c). Then it is
                   * read again in the next second, so many times */

typedef struct {
    uint32_t tid;
    uint64_t begin, taken, used; /* when it hung, was read, and was last asked for (monotonic ns); 0: never */
    unsigned n, failed; /* number of frames; readings without any frame since the last good one */
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    char     record[EBPFMON_HEALTH_NAME];
} keptStack;

struct ebpfMonHangFinder {
    ebpfMonTargets *targets; /* both are the caller's */
    const ebpfMonHangSources *sources;
    keptStack kept[KEPT];
};

/* The index in kept; KEPT: this hang has no stack there. */
static unsigned findKept(const ebpfMonHangFinder *finder, uint32_t tid, uint64_t begin)
{
    unsigned i;

    for (i = 0; i < KEPT; i++)
        if (finder->kept[i].used && finder->kept[i].tid == tid && finder->kept[i].begin == begin)
            break;
    return i;
}

/* NULL: this hang has no place, because more than KEPT threads hang. */
static keptStack *takePlace(ebpfMonHangFinder *finder, uint32_t tid, uint64_t begin, uint64_t now)
{
    keptStack *oldest = &finder->kept[0];
    unsigned i = findKept(finder, tid, begin);

    if (i < KEPT) {
        finder->kept[i].used = now;
        return &finder->kept[i];
    }
    for (i = 1; i < KEPT; i++)
        if (finder->kept[i].used < oldest->used)
            oldest = &finder->kept[i];
    if (oldest->used && now - oldest->used < REFRESH)
        return NULL;
    *oldest = (keptStack){ .tid = tid, .begin = begin, .used = now };
    return oldest;
}

static void findRecord(ebpfMonHangFinder *finder, uint32_t iocId, keptStack *k)
{
    const ebpfMonTarget *t;
    int found = 0;

    k->record[0] = 0;
    ebpfMonTargetsLock(finder->targets);
    t = ebpfMonTargetsFindById(finder->targets, iocId);
    /* A frame changed a register if its caller has another value. The last frame has no known caller, so it is left
     * out. */
    for (unsigned f = 0; f + 1 < k->n && !found; f++)
        for (int r = 0; r < EBPFMON_SAVED && !found; r++)
            if (k->frame[f].saved[r] && k->frame[f].saved[r] != k->frame[f + 1].saved[r])
                found = ebpfMonRecordNameFind(t, k->frame[f].saved[r], k->record, sizeof(k->record));
    ebpfMonTargetsUnlock(finder->targets);
}

static int isOld(const keptStack *k, uint64_t now)
{
    return !k->taken || (k->failed && k->failed <= RETRIES) || now - k->taken > REFRESH;
}

/* Call this once a second for each hang. The caller has set hang->id, tid, begin and what. Sets hang->now, and adds the
 * frames to hang->what. Takes the targets lock. */
static void describeStack(ebpfMonHangFinder *finder, pid_t pid, ebpfMonHang *hang)
{
    uint64_t now = ebpfMonClockMonotonic();
    keptStack *k = takePlace(finder, hang->tid, hang->begin, now);
    size_t used = strlen(hang->what);
    const char *separator = ", at ";

    hang->now[0] = 0;
    if (!k)
        return;
    if (isOld(k, now)) {
        k->n = finder->sources->readStack(pid, (pid_t)k->tid, k->frame);
        k->failed = k->n ? 0 : k->failed + 1;
        findRecord(finder, hang->id, k);
        k->taken = now;
    }
    snprintf(hang->now, sizeof(hang->now), "%s", k->record);
    for (unsigned i = 0; i < k->n; i++) {
        const char *name = k->frame[i].name[0] ? k->frame[i].name : k->frame[i].file;

        if (used + strlen(separator) + strlen(name) >= sizeof(hang->what))
            break;
        used += (size_t)snprintf(hang->what + used, sizeof(hang->what) - used, "%s%s", separator, name);
        separator = " < ";
    }
}

/* NULL: no more lines. */
static char *addLine(ebpfMonHealth *health)
{
    return health->hangLines < EBPFMON_HANG_LINES ? health->hangLine[health->hangLines++] : NULL;
}

/* Adds the hang to health->hangLine: hang->who as title, then its frames, as far as there are lines. Call this after
 * describeStack. */
static void addStackLines(const ebpfMonHangFinder *finder, pid_t pid, const ebpfMonHang *hang,
                               ebpfMonHealth *health)
{
    unsigned at = findKept(finder, hang->tid, hang->begin);
    const keptStack *k;
    char kernel[200] = "", *line = addLine(health);

    if (line)
        snprintf(line, EBPFMON_HANG_LINE, "%s since %.0f s", hang->who, hang->since);
    if (at == KEPT)
        return;
    k = &finder->kept[at];
    finder->sources->readKernelStack(pid, (pid_t)hang->tid, kernel, sizeof(kernel));
    if (kernel[0] && (line = addLine(health)) != NULL)
        snprintf(line, EBPFMON_HANG_LINE, "  in the kernel: %s", kernel);
    for (unsigned i = 0; i < k->n && (line = addLine(health)) != NULL; i++)
        snprintf(line, EBPFMON_HANG_LINE, "  #%u %s+0x%x (%s)", i, k->frame[i].name, k->frame[i].offset,
                 k->frame[i].file);
}

/* --- finding --- */

double ebpfMonHangLimit = 5;
epicsExportAddress(double, ebpfMonHangLimit);

ebpfMonHangFinder *ebpfMonHangFinderNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources)
{
    ebpfMonHangFinder *finder = calloc(1, sizeof(*finder));

    if (finder)
        *finder = (ebpfMonHangFinder){ .targets = targets, .sources = sources };
    return finder;
}

void ebpfMonHangFinderFree(ebpfMonHangFinder *finder)
{
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
 * If all of them wait, the holder is the thread that requested the lock set first; if that is not certain, any of them
 * may be. If another thread released the lock set after that request, the holder has it since this release.
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
    describeStack(finder, (pid_t)t->tgid, hang);
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
        addStackLines(finder, (pid_t)t->tgid, hang, health);
        n++;
    }
    return n;
}

void ebpfMonHangFinderForgetOldRoot(struct ebpfMonThread *seen, uint32_t turn)
{
    if (seen->heldCount && seen->held[0].sp && seen->held[0].turn != turn)
        seen->held[0].root = 0;
}

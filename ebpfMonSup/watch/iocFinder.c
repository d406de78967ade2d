/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsMutex.h>

#include "ioc/procInfo.h"
#include "watch/iocFinder.h"

#define NEW_MAX    1024 /* programs just started that are still looked at */
#define EXECS_MAX  1024
#define OLD_MAX    8192 /* processes known not to be IOCs, a power of two */
#define RESCAN_NS  2000000000ull
#define OLD_NS     30000000000ull /* a process this long no IOC is looked at only that often */

/* After a start: 5 ms, then twice as long each time, some 10 s in all. The rescan finds what is slower. */
#define FIRST_NS 5000000ull
#define TRIES    12

/* The loader maps the libraries of a program one after the other, on a busy host with pauses. As long as an IOC has no
 * libCom (ebpfMonImage.com), more may be missing, so it is looked at again: some 2.5 s. An IOC that never has it is then
 * watched without. */
#define WHOLE_TRIES 9
#define WHOLE_NS    2000000000ull

typedef struct {
    pid_t    pid;
    int      tries;
    uint64_t due;
} newProcess;

typedef struct {
    pid_t    pid;
    uint64_t start;
    uint64_t seen, looked; /* ns */
    int      denied;       /* at the last look */
} oldProcess;

struct ebpfMonIocFinder {
    /* fixed */
    int    watchSelf;
    ebpfMonIocFinderIsKnown isKnown;
    void  *arg;

    epicsMutexId lock;   /* guards what NoteExec writes: the next two lists */
    pid_t  started[NEW_MAX], execs[EXECS_MAX];
    unsigned startedCount, execCount;

    /* the follower's */
    ebpfMonImageCache *cache;
    newProcess new[NEW_MAX];
    unsigned newCount;
    oldProcess old[OLD_MAX]; /* by pid, one place each: a collision costs one look more */
    uint64_t scanned;
    pid_t *scan;         /* the rescan under way */
    int    scanCount, scanAt;
    unsigned denied, deniedSoFar; /* in the last rescan, in the one under way */
    pid_t  deniedFirst, deniedFirstSoFar;
};

ebpfMonIocFinder *ebpfMonIocFinderNew(int watchSelf, ebpfMonIocFinderIsKnown isKnown, void *arg)
{
    ebpfMonIocFinder *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->watchSelf = watchSelf;
    f->isKnown = isKnown;
    f->arg = arg;
    f->lock = epicsMutexMustCreate();
    f->cache = ebpfMonImageCacheNew();
    if (f->cache)
        return f;
    ebpfMonIocFinderFree(f);
    return NULL;
}

void ebpfMonIocFinderFree(ebpfMonIocFinder *f)
{
    if (!f)
        return;
    ebpfMonImageCacheFree(f->cache);
    epicsMutexDestroy(f->lock);
    free(f->scan);
    free(f);
}

void ebpfMonIocFinderNoteExec(ebpfMonIocFinder *f, pid_t pid)
{
    epicsMutexMustLock(f->lock);
    if (f->startedCount < NEW_MAX)
        f->started[f->startedCount++] = pid;
    /* remembered for watched IOCs only, so the oldest may go */
    f->execs[f->execCount++ % EXECS_MAX] = pid;
    epicsMutexUnlock(f->lock);
}

int ebpfMonIocFinderTakeExec(ebpfMonIocFinder *f, pid_t pid)
{
    int found = 0;

    epicsMutexMustLock(f->lock);
    for (unsigned i = 0; i < EXECS_MAX; i++)
        if (f->execs[i] == pid) {
            f->execs[i] = 0;
            found = 1;
        }
    epicsMutexUnlock(f->lock);
    return found;
}

static void takeStarted(ebpfMonIocFinder *f, uint64_t now)
{
    epicsMutexMustLock(f->lock);
    for (unsigned i = 0; i < f->startedCount && f->newCount < NEW_MAX; i++) {
        unsigned k;

        for (k = 0; k < f->newCount && f->new[k].pid != f->started[i]; k++)
            ;
        f->new[k] = (newProcess){ .pid = f->started[i], .due = now + FIRST_NS };
        if (k == f->newCount)
            f->newCount++;
    }
    f->startedCount = 0;
    epicsMutexUnlock(f->lock);
}

/* As ebpfMonImageRead: 0: an IOC that is to be watched; 1: none; -1 with errno. */
static int readImage(ebpfMonIocFinder *f, pid_t pid, ebpfMonImage *image)
{
    if ((pid == getpid() && !f->watchSelf) || f->isKnown(f->arg, pid))
        return 1;
    ebpfMonIocFinderTakeExec(f, pid); /* what is found now is the program that it runs now */
    if (ebpfMonProcIsUnderValgrind(pid))
        return 1;
    return ebpfMonImageRead(f->cache, pid, image);
}

/* Looks at the new processes that are due. Returns the one that is an IOC, or 0 and lowers *wait to the next that is
 * due. */
static pid_t findNew(ebpfMonIocFinder *f, uint64_t now, ebpfMonImage *image, double *wait)
{
    for (unsigned i = 0; i < f->newCount;) {
        newProcess *p = &f->new[i];
        pid_t pid = p->pid;
        int found;

        if (p->due > now) {
            if ((double)(p->due - now) / 1e9 < *wait)
                *wait = (double)(p->due - now) / 1e9;
            i++;
            continue;
        }
        found = readImage(f, pid, image);
        if (found == 0 && !image->com && p->tries < WHOLE_TRIES)
            found = 1;
        if (found == 0 || (found < 0 && errno == ESRCH) || ++p->tries >= TRIES) {
            *p = f->new[--f->newCount];
            if (found == 0)
                return pid;
            continue;
        }
        p->due = now + (FIRST_NS << p->tries);
        i++;
    }
    return 0;
}

static void beginScan(ebpfMonIocFinder *f, uint64_t now)
{
    if (f->scan || now - f->scanned <= RESCAN_NS)
        return;
    f->scanned = now;
    f->scanAt = 0;
    f->scanCount = ebpfMonProcList(&f->scan);
    if (f->scanCount < 0) {
        f->scan = NULL;
        f->scanCount = 0;
    }
}

static void endScan(ebpfMonIocFinder *f)
{
    if (f->scan) {
        f->denied = f->deniedSoFar;
        f->deniedFirst = f->deniedFirstSoFar;
        f->deniedSoFar = 0;
    }
    free(f->scan);
    f->scan = NULL;
    f->scanCount = f->scanAt = 0;
}

/* Nonzero: this process is worth a look in this scan. */
static int isDue(oldProcess *o, pid_t pid, uint64_t now)
{
    uint64_t start;

    if (o->pid == pid && now - o->seen > OLD_NS && now - o->looked < OLD_NS)
        return 0;
    start = ebpfMonProcStart(pid);
    if (!start)
        return 0;
    if (o->pid != pid || o->start != start) {
        o->pid = pid;
        o->start = start;
        o->seen = now;
        o->denied = 0;
    }
    o->looked = now;
    return 1;
}

/* Goes on with the scan. Returns the next process that is an IOC, or 0: the scan is over. */
static pid_t findInScan(ebpfMonIocFinder *f, uint64_t now, ebpfMonImage *image)
{
    while (f->scanAt < f->scanCount) {
        pid_t pid = f->scan[f->scanAt++];
        oldProcess *o = &f->old[(unsigned)pid & (OLD_MAX - 1)];

        if (f->isKnown(f->arg, pid))
            continue;
        if (isDue(o, pid, now)) {
            int found = readImage(f, pid, image);

            o->denied = found < 0 && (errno == EACCES || errno == EPERM);
            if (found == 0 && (image->com || now - o->seen > WHOLE_NS))
                return pid;
        }
        if (o->pid == pid && o->denied && f->deniedSoFar++ == 0)
            f->deniedFirstSoFar = pid;
    }
    return 0;
}

double ebpfMonIocFinderFindNext(ebpfMonIocFinder *f, uint64_t now, pid_t *pid, ebpfMonImage *image)
{
    double wait = (double)RESCAN_NS / 1e9;

    takeStarted(f, now);
    *pid = findNew(f, now, image, &wait);
    if (*pid)
        return 0;
    beginScan(f, now);
    *pid = findInScan(f, now, image);
    if (*pid)
        return 0;
    endScan(f);
    return wait;
}

unsigned ebpfMonIocFinderCountDenied(const ebpfMonIocFinder *f, pid_t *first)
{
    *first = f->deniedFirst;
    return f->denied;
}

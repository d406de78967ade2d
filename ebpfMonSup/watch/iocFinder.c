/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsMutex.h>

#include "watch/iocFinder.h"

#define NEW_MAX    1024 /* programs just started that are still looked at */
#define EXECD_MAX  1024
#define OLD_MAX    8192 /* processes known not to be IOCs, a power of two */
#define RESCAN_NS  2000000000ull
#define OLD_NS     30000000000ull /* a process this long no IOC is looked at only that often */

/* After a start: 5 ms, then twice as long each time, some 10 s in all. The rescan finds what is slower. */
#define FIRST_NS 5000000ull
#define TRIES    12

typedef struct {
    pid_t    pid;
    int      tries;
    uint64_t due;
} fresh;

typedef struct {
    pid_t    pid;
    uint64_t start;
    uint64_t seen, looked; /* ns */
    int      denied;       /* at the last look */
} old;

struct ebpfMonIocFinder {
    ebpfMonImageCache *cache;
    int    watchSelf;
    fresh  fresh[NEW_MAX];
    unsigned freshCount;
    old    old[OLD_MAX]; /* by pid, one place each: a collision costs a look more */
    uint64_t scanned;
    pid_t *scan;         /* the rescan under way */
    int    scanCount, scanAt;
    unsigned denied, deniedSoFar; /* in the last rescan, in the one under way */
    pid_t  deniedFirst, deniedFirstSoFar;
};

static epicsMutexId lock; /* guards the two lists below */
static pid_t added[NEW_MAX], execd[EXECD_MAX];
static unsigned addedCount, execdCount;

void ebpfMonIocFinderInit(void)
{
    lock = epicsMutexMustCreate();
}

ebpfMonIocFinder *ebpfMonIocFinderNew(int watchSelf)
{
    ebpfMonIocFinder *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->watchSelf = watchSelf;
    f->cache = ebpfMonImageCacheNew();
    return f;
}

void ebpfMonIocFinderFree(ebpfMonIocFinder *f)
{
    if (!f)
        return;
    ebpfMonImageCacheFree(f->cache);
    free(f->scan);
    free(f);
}

void ebpfMonIocFinderNoteExec(pid_t pid)
{
    epicsMutexMustLock(lock);
    if (addedCount < NEW_MAX)
        added[addedCount++] = pid;
    /* remembered for targets only, so the oldest may go */
    execd[execdCount++ % EXECD_MAX] = pid;
    epicsMutexUnlock(lock);
}

int ebpfMonIocFinderTakeExec(pid_t pid)
{
    int found = 0;

    epicsMutexMustLock(lock);
    for (unsigned i = 0; i < EXECD_MAX; i++)
        if (execd[i] == pid) {
            execd[i] = 0;
            found = 1;
        }
    epicsMutexUnlock(lock);
    return found;
}

static void takeAdded(ebpfMonIocFinder *f, uint64_t now)
{
    epicsMutexMustLock(lock);
    for (unsigned i = 0; i < addedCount && f->freshCount < NEW_MAX; i++) {
        unsigned k;

        for (k = 0; k < f->freshCount && f->fresh[k].pid != added[i]; k++)
            ;
        f->fresh[k] = (fresh){ .pid = added[i], .due = now + FIRST_NS };
        if (k == f->freshCount)
            f->freshCount++;
    }
    addedCount = 0;
    epicsMutexUnlock(lock);
}

static old *oldOf(ebpfMonIocFinder *f, pid_t pid)
{
    return &f->old[(unsigned)pid & (OLD_MAX - 1)];
}

/* Worth a look in this rescan? */
static int wanted(ebpfMonIocFinder *f, pid_t pid, uint64_t now)
{
    old *o = oldOf(f, pid);
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

static int look(ebpfMonIocFinder *f, pid_t pid, ebpfMonTarget *(*known)(pid_t), ebpfMonImage *image)
{
    if ((pid == getpid() && !f->watchSelf) || known(pid))
        return 1;
    ebpfMonIocFinderTakeExec(pid); /* what is found now is the program that it runs now */
    if (ebpfMonProcIsUnderValgrind(pid))
        return 1;
    return ebpfMonImageRead(f->cache, pid, image);
}

double ebpfMonIocFinderFindNext(ebpfMonIocFinder *f, uint64_t now, ebpfMonTarget *(*known)(pid_t), pid_t *pid,
                         ebpfMonImage *image)
{
    double wait = (double)RESCAN_NS / 1e9;

    *pid = 0;
    takeAdded(f, now);
    for (unsigned i = 0; i < f->freshCount;) {
        fresh *p = &f->fresh[i];
        int found;

        if (p->due > now) {
            if ((double)(p->due - now) / 1e9 < wait)
                wait = (double)(p->due - now) / 1e9;
            i++;
            continue;
        }
        found = look(f, p->pid, known, image);
        if (found == 0)
            *pid = p->pid;
        if (found == 0 || (found < 0 && errno == ESRCH) || ++p->tries >= TRIES) {
            *p = f->fresh[--f->freshCount];
            if (found == 0)
                return 0;
            continue;
        }
        p->due = now + (FIRST_NS << p->tries);
        i++;
    }
    if (!f->scan && now - f->scanned > RESCAN_NS) {
        f->scanned = now;
        f->scanAt = 0;
        f->scanCount = ebpfMonProcList(&f->scan);
        if (f->scanCount < 0) {
            f->scan = NULL;
            f->scanCount = 0;
        }
    }
    while (f->scanAt < f->scanCount) {
        pid_t p = f->scan[f->scanAt++];
        old *o = oldOf(f, p);

        if (known(p))
            continue;
        if (wanted(f, p, now)) {
            int found = look(f, p, known, image);

            o->denied = found < 0 && (errno == EACCES || errno == EPERM);
            if (found == 0) {
                *pid = p;
                return 0;
            }
        }
        if (o->pid == p && o->denied && f->deniedSoFar++ == 0)
            f->deniedFirstSoFar = p;
    }
    if (f->scan) {
        f->denied = f->deniedSoFar;
        f->deniedFirst = f->deniedFirstSoFar;
        f->deniedSoFar = 0;
    }
    free(f->scan);
    f->scan = NULL;
    f->scanCount = f->scanAt = 0;
    return wait;
}

unsigned ebpfMonIocFinderCountDenied(const ebpfMonIocFinder *f, pid_t *first)
{
    *first = f->deniedFirst;
    return f->denied;
}

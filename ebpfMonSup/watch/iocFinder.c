/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>
#include <epicsMutex.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/shares.h"
#include "host/foreign.h"
#include "host/procInfo.h"
#include "host/procRead.h"
#include "host/procStat.h"
#include "watch/iocFinder.h"

/* --- notes of processes --- */

struct ebpfMonPidNotes {
    epicsMutexId lock;                     /* guards what follows */
    pid_t        pids[EBPFMON_PID_NOTES];  /* 0: none */
    unsigned     added;                    /* its remainder is the oldest place */
    int          count;                    /* of notes; atomic: it is read without the lock */
};

ebpfMonPidNotes *ebpfMonPidNotesNew(void)
{
    ebpfMonPidNotes *notes = calloc(1, sizeof(*notes));

    if (notes)
        notes->lock = epicsMutexMustCreate();
    return notes;
}

void ebpfMonPidNotesFree(ebpfMonPidNotes *notes)
{
    if (!notes)
        return;
    epicsMutexDestroy(notes->lock);
    free(notes);
}

void ebpfMonPidNotesAdd(ebpfMonPidNotes *notes, pid_t pid)
{
    pid_t *place;

    epicsMutexMustLock(notes->lock);
    place = &notes->pids[notes->added++ % EBPFMON_PID_NOTES];
    if (!*place)
        epicsAtomicIncrIntT(&notes->count);
    *place = pid;
    epicsMutexUnlock(notes->lock);
}

int ebpfMonPidNotesTake(ebpfMonPidNotes *notes, pid_t pid)
{
    int found = 0;

    if (!epicsAtomicGetIntT(&notes->count))
        return 0;
    epicsMutexMustLock(notes->lock);
    for (unsigned i = 0; i < EBPFMON_PID_NOTES; i++)
        if (notes->pids[i] == pid) {
            notes->pids[i] = 0;
            found++;
        }
    epicsAtomicAddIntT(&notes->count, -found);
    epicsMutexUnlock(notes->lock);
    return found != 0;
}

/* --- what is known of a process --- */

/* Processes whose pids are equal but for a multiple of SETS share the places of a set. There must be several: threads
 * of the kernel live for ever, and have pids in sequence. With one place, each scan forgot the processes that share
 * theirs. */
#define SETS 2048 /* a power of two */
#define WAYS 4

struct ebpfMonSeenProcesses {
    ebpfMonSeenProcess places[SETS][WAYS];
};

ebpfMonSeenProcesses *ebpfMonSeenProcessesNew(void)
{
    return calloc(1, sizeof(ebpfMonSeenProcesses));
}

void ebpfMonSeenProcessesFree(ebpfMonSeenProcesses *seen)
{
    free(seen);
}

static ebpfMonSeenProcess *getSet(ebpfMonSeenProcesses *seen, pid_t pid)
{
    return seen->places[(unsigned)pid & (SETS - 1)];
}

ebpfMonSeenProcess *ebpfMonSeenProcessesFind(ebpfMonSeenProcesses *seen, pid_t pid)
{
    ebpfMonSeenProcess *set = getSet(seen, pid);

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].pid == pid)
            return &set[i];
    return NULL;
}

static uint64_t findLastTime(const ebpfMonSeenProcess *p)
{
    uint64_t last = p->looked > p->seen ? p->looked : p->seen;

    return p->checked > last ? p->checked : last;
}

ebpfMonSeenProcess *ebpfMonSeenProcessesGet(ebpfMonSeenProcesses *seen, pid_t pid, uint64_t start, uint64_t now)
{
    ebpfMonSeenProcess *set = getSet(seen, pid), *place = ebpfMonSeenProcessesFind(seen, pid);

    if (place && place->start == start)
        return place;
    if (!place) { /* those that have ended were not looked at for longest */
        place = set;
        for (unsigned i = 1; i < WAYS; i++)
            if (findLastTime(&set[i]) < findLastTime(place))
                place = &set[i];
    }
    *place = (ebpfMonSeenProcess){ .pid = pid, .start = start, .seen = now };
    return place;
}

/* --- plain programs --- */

/* A program is plain after three looks, or after twelve processes that ended before anyone looked, or some of both. */
#define POINTS_LOOK  4
#define POINTS_ENDED 1
#define POINTS_PLAIN 12

typedef struct {
    struct ebpfMonProgram program; /* inode 0: none */
    unsigned points;
    int isPlain; /* the kernel part knows */
    int isIoc;   /* a process of it was an IOC: never plain … */
    int isInterpreter; /* … because of its script, so others may be anything */
} place;

struct ebpfMonPlainPrograms {
    ebpfMonSetPlain set;
    place places[EBPFMON_PLAIN_MAX]; /* by inode; a newer program replaces an older one, but no IOC */
};

ebpfMonPlainPrograms *ebpfMonPlainProgramsNew(ebpfMonSetPlain set)
{
    ebpfMonPlainPrograms *plain = calloc(1, sizeof(*plain));

    if (plain)
        plain->set = set;
    return plain;
}

void ebpfMonPlainProgramsFree(ebpfMonPlainPrograms *plain)
{
    free(plain);
}

static place *findPlace(ebpfMonPlainPrograms *plain, uint64_t inode)
{
    return &plain->places[inode % EBPFMON_PLAIN_MAX];
}

static void clearPlain(ebpfMonPlainPrograms *plain, place *p)
{
    if (p->isPlain)
        plain->set(&p->program, 0);
    p->isPlain = 0;
    p->points = 0;
}

void ebpfMonPlainProgramsNote(ebpfMonPlainPrograms *plain, const struct ebpfMonProgram *program, ebpfMonProgramIs is)
{
    place *p = findPlace(plain, program->inode);
    int isSame = p->program.inode == program->inode && p->program.device == program->device;

    if (!program->inode || (!isSame && p->isIoc))
        return;
    if (!isSame) {
        clearPlain(plain, p);
        *p = (place){ .program = *program };
    }
    if (is == ebpfMonProgramIoc) {
        clearPlain(plain, p);
        p->isIoc = 1;
    }
    if (p->isIoc || p->isPlain)
        return;
    p->points += is == ebpfMonProgramPlain ? POINTS_LOOK : POINTS_ENDED;
    if (p->points >= POINTS_PLAIN)
        p->isPlain = plain->set(program, 1) == 0;
}

void ebpfMonPlainProgramsNoteIoc(ebpfMonPlainPrograms *plain, uint64_t inode)
{
    place *p = findPlace(plain, inode);

    if (!inode || p->isIoc) /* no program at the place of an IOC counts as plain */
        return;
    clearPlain(plain, p);
    p->isInterpreter &= p->program.inode == inode;
    p->program = (struct ebpfMonProgram){ .inode = inode };
    p->isIoc = 1;
}

int ebpfMonPlainProgramsHaveIoc(ebpfMonPlainPrograms *plain, uint64_t inode)
{
    const place *p = findPlace(plain, inode);

    return p->isIoc && !p->isInterpreter && p->program.inode == inode;
}

void ebpfMonPlainProgramsNoteInterpreter(ebpfMonPlainPrograms *plain, uint64_t inode)
{
    place *p = findPlace(plain, inode);

    p->isInterpreter |= p->program.inode == inode;
}

/* --- finding --- */

#define NEW_MAX    1024 /* programs just started that are still looked at */
#define RESCAN_NS  2000000000ull
#define RESCAN_OLD_NS 9900000000ull /* … if no process is young */
#define OLD_NS     30000000000ull /* of a process this long no IOC, the pages are counted only that often */
#define SAME_NS    300000000000ull /* … and one with as many pages as before is looked at only that often */

/* After a start: 5 ms, then twice as long each time, some 10 s in all. The rescan finds what is slower. */
#define FIRST_NS 5000000ull
#define TRIES    12

#define ASIDE_NS    10000000000ull /* the first time, doubled each time */
#define ASIDE_STEPS 6
#define ASIDE_MAX   64             /* that are remembered for the report */
#define FORKS_MAX   8              /* forks of forks */
#define CHARGED_NS  1000000000ull  /* between two looks at a process of a user who costs too much, doubled each time:
                                    * his other processes go first */
#define LOOK_STEPS  8
#define SLICE_NS    300000000ull   /* so long a scan goes on before the IOCs that it has found are watched */
#define FIRST_NS_OF_USER 500000000ull /* CPU time for the processes of a user in the first scan; then the others go
                                    * first. It is charged to nobody: the start on a large host would take long */
#define FIRST_USERS 64

/* The loader maps the libraries of a program one after the other, on a busy host with pauses. As long as an IOC has no
 * libCom (ebpfMonImage.com), more may be missing, so it is looked at again: some 2.5 s. An IOC that never has it is
 * then watched without. */
#define WHOLE_TRIES 9
#define WHOLE_NS    2000000000ull

typedef struct {
    pid_t    pid;
    struct ebpfMonProgram program;
    int      tries;
    int      wasPlain;     /* at the last look it was no IOC */
    uint64_t due;
    uint64_t pages;        /* that it had mapped when it was no IOC; 0: it may be one */
} newProcess;

typedef struct {
    pid_t    pid;          /* 0: none */
    uint64_t start, until;
    uid_t    uid;
    const char *why;
} asideProcess;

struct ebpfMonIocFinder {
    /* fixed */
    int    watchSelf;
    ebpfMonIocFinderIsKnown isKnown;
    ebpfMonIocFinderIsRunning isRunning;
    void  *arg;

    epicsMutexId lock;   /* guards what follows up to the counts: other threads use these lists */
    asideProcess aside[ASIDE_MAX];
    unsigned asideAt;    /* the oldest */
    struct { pid_t pid; struct ebpfMonProgram program; } started[NEW_MAX];
    unsigned startedCount;

    ebpfMonPidNotes *execs, *exits; /* of processes that are known */

    /* the follower's */
    ebpfMonImageCache *cache;
    ebpfMonPlainPrograms *plain;
    newProcess new[NEW_MAX];
    unsigned newCount;
    ebpfMonSeenProcesses *seen; /* by the rescan, and those that were set aside */
    uint64_t scanned;    /* when the last rescan began */
    int    hasYoung, hasYoungSoFar; /* a process that is younger than OLD_NS, or has to wait because its user has cost
                         * too much; in the last rescan, in the one under way */
    pid_t *scan;         /* the rescan under way */
    int    scanCount, scanAt;
    int    hasScanned;   /* once */
    pid_t  ended;        /* an IOC, as its program says, that ended before it was found; 0: none … */
    unsigned endedCount; /* … of so many */
    struct { uid_t user; uint64_t cpu; } first[FIRST_USERS]; /* what the first scan cost; the last one: all others */
    unsigned firstUsers;
    int    hasPostponed, isSecondPass; /* of the first scan: some processes; those are looked at now */
    unsigned denied, deniedSoFar; /* in the last rescan, in the one under way */
    pid_t  deniedFirst, deniedFirstSoFar;
};

ebpfMonIocFinder *ebpfMonIocFinderNew(int watchSelf, ebpfMonIocFinderIsKnown isKnown,
                                      ebpfMonIocFinderIsRunning isRunning, void *arg, ebpfMonSetPlain setPlain)
{
    ebpfMonIocFinder *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->watchSelf = watchSelf;
    f->isKnown = isKnown;
    f->isRunning = isRunning;
    f->arg = arg;
    f->lock = epicsMutexMustCreate();
    f->execs = ebpfMonPidNotesNew();
    f->exits = ebpfMonPidNotesNew();
    f->cache = ebpfMonImageCacheNew();
    f->plain = ebpfMonPlainProgramsNew(setPlain);
    f->seen = ebpfMonSeenProcessesNew();
    f->hasYoung = 1;
    if (f->execs && f->exits && f->cache && f->plain && f->seen)
        return f;
    ebpfMonIocFinderFree(f);
    return NULL;
}

void ebpfMonIocFinderFree(ebpfMonIocFinder *f)
{
    if (!f)
        return;
    ebpfMonPidNotesFree(f->execs);
    ebpfMonPidNotesFree(f->exits);
    ebpfMonImageCacheFree(f->cache);
    ebpfMonPlainProgramsFree(f->plain);
    ebpfMonSeenProcessesFree(f->seen);
    epicsMutexDestroy(f->lock);
    free(f->scan);
    free(f);
}

void ebpfMonIocFinderNoteExec(ebpfMonIocFinder *f, pid_t pid, const struct ebpfMonProgram *program, int isKnown)
{
    epicsMutexMustLock(f->lock);
    if (f->startedCount < NEW_MAX) {
        f->started[f->startedCount].pid = pid;
        f->started[f->startedCount++].program = *program;
    }
    epicsMutexUnlock(f->lock);
    if (isKnown)
        ebpfMonPidNotesAdd(f->execs, pid);
}

int ebpfMonIocFinderTakeExec(ebpfMonIocFinder *f, pid_t pid)
{
    return ebpfMonPidNotesTake(f->execs, pid);
}

void ebpfMonIocFinderNoteExit(ebpfMonIocFinder *f, pid_t pid)
{
    ebpfMonPidNotesAdd(f->exits, pid);
}

int ebpfMonIocFinderTakeExit(ebpfMonIocFinder *f, pid_t pid)
{
    return ebpfMonPidNotesTake(f->exits, pid);
}

static void takeStarted(ebpfMonIocFinder *f, uint64_t now)
{
    epicsMutexMustLock(f->lock);
    for (unsigned i = 0; i < f->startedCount && f->newCount < NEW_MAX; i++) {
        unsigned k;

        for (k = 0; k < f->newCount && f->new[k].pid != f->started[i].pid; k++)
            ;
        f->new[k] = (newProcess){ .pid = f->started[i].pid, .program = f->started[i].program, .due = now + FIRST_NS };
        if (k == f->newCount)
            f->newCount++;
    }
    f->startedCount = 0;
    epicsMutexUnlock(f->lock);
}

/* "isOurs": this host is to blame, and the next time is not longer. */
static void setAside(ebpfMonIocFinder *f, pid_t pid, const char *why, int isOurs)
{
    uint64_t now = ebpfMonClockMonotonic(), start = ebpfMonProcStart(pid);
    ebpfMonSeenProcess *o = ebpfMonSeenProcessesGet(f->seen, pid, start, now);
    asideProcess row = { .pid = pid, .start = start, .uid = ebpfMonProcOwner(pid), .why = why };
    unsigned i;

    if (!start)
        return;
    o->looked = now;
    o->asideUntil = row.until = now + (ASIDE_NS << o->asides);
    if (o->asides < ASIDE_STEPS && !isOurs)
        o->asides++;
    epicsMutexMustLock(f->lock);
    for (i = 0; i < ASIDE_MAX && f->aside[i].pid != pid; i++)
        ;
    f->aside[i < ASIDE_MAX ? i : f->asideAt++ % ASIDE_MAX] = row;
    epicsMutexUnlock(f->lock);
}

void ebpfMonIocFinderSetAside(ebpfMonIocFinder *f, pid_t pid, const char *why)
{
    setAside(f, pid, why, 0);
}

unsigned ebpfMonIocFinderGetAside(ebpfMonIocFinder *f, ebpfMonAsideProcess *list, unsigned max)
{
    uint64_t now = ebpfMonClockMonotonic();
    unsigned n = 0;

    epicsMutexMustLock(f->lock);
    for (unsigned i = 0; i < ASIDE_MAX && n < max; i++) {
        const asideProcess *a = &f->aside[(f->asideAt + ASIDE_MAX - 1 - i) % ASIDE_MAX];

        if (a->pid && now < a->until && ebpfMonProcStart(a->pid) == a->start)
            list[n++] = (ebpfMonAsideProcess){ a->pid, a->uid, a->why,
                                               (unsigned)((a->until - now) / EBPFMON_SECOND_NS) + 1 };
    }
    epicsMutexUnlock(f->lock);
    return n;
}

/* The CPU time that the first scan has used for this user. */
static uint64_t *getFirstCpu(ebpfMonIocFinder *f, uid_t user)
{
    unsigned i;

    for (i = 0; i < f->firstUsers && f->first[i].user != user; i++)
        ;
    if (i == f->firstUsers && i < FIRST_USERS)
        f->first[f->firstUsers++].user = user;
    return &f->first[i < FIRST_USERS ? i : FIRST_USERS - 1].cpu;
}

/* Nonzero: other users go first. */
static int isPostponed(ebpfMonIocFinder *f, pid_t pid)
{
    uid_t user = f->hasScanned || f->isSecondPass ? 0 : ebpfMonProcPayer(pid);

    return user >= EBPFMON_SYSTEM_USERS && *getFirstCpu(f, user) > FIRST_NS_OF_USER;
}

/* As ebpfMonImageRead: 0: an IOC that is to be watched; 1: none; -1 with errno. */
static int readImage(ebpfMonIocFinder *f, pid_t pid, ebpfMonImage *image)
{
    uint64_t begin, used;
    int found, err;

    if ((pid == getpid() && !f->watchSelf) || f->isKnown(f->arg, pid))
        return 1;
    ebpfMonIocFinderTakeExec(f, pid); /* what is found now is the program that it runs now … */
    ebpfMonIocFinderTakeExit(f, pid); /* … and its number may have been that of another process */
    if (ebpfMonProcIsUnderValgrind(pid))
        return 1;
    begin = ebpfMonForeignGetCpu();
    found = ebpfMonImageRead(f->cache, pid, image);
    err = errno;
    used = ebpfMonForeignGetCpu() - begin;
    if (f->hasScanned)
        ebpfMonForeignChargeCpu(ebpfMonProcPayer(pid), used);
    else
        *getFirstCpu(f, ebpfMonProcPayer(pid)) += used;
    if (found < 0 && ebpfMonImageIsRefused(err))
        setAside(f, pid, ebpfMonImageRefusal(err), err == EAGAIN);
    errno = err;
    return found;
}

uint64_t ebpfMonIocFinderGetScanned(const ebpfMonIocFinder *f)
{
    return f->scanned;
}

ebpfMonImageCache *ebpfMonIocFinderGetFiles(ebpfMonIocFinder *f)
{
    return f->cache;
}

int ebpfMonIocFinderReadAgain(ebpfMonIocFinder *f, pid_t pid, ebpfMonImage *image)
{
    return ebpfMonImageRead(f->cache, pid, image);
}

int ebpfMonIocFinderReadCallers(ebpfMonIocFinder *f, pid_t pid, ebpfMonImageCallers *callers)
{
    return ebpfMonImageReadCallers(f->cache, pid, callers);
}

/* As readImage. If a process was no IOC, and has mapped nothing since, it is still no IOC, and no reader looks at it
 * again. If it has mapped exactly as much as it unmapped, the rescan finds it. */
static int readNewImage(ebpfMonIocFinder *f, newProcess *p, ebpfMonImage *image)
{
    uint64_t pages = ebpfMonProcMappedPages(p->pid); /* first: what it maps meanwhile must be seen the next time */
    int found;

    if (pages && pages == p->pages)
        return 1;
    found = readImage(f, p->pid, image);
    p->pages = found == 1 ? pages : 0;
    if (found >= 0)
        p->wasPlain = found == 1 && !f->isKnown(f->arg, p->pid);
    return found;
}

/* This process is an IOC. Behind an interpreter's command stands its script. */
static void noteInterpreter(ebpfMonIocFinder *f, pid_t pid, uint64_t inode)
{
    char command[64];

    if (ebpfMonProcCommand(pid, command, sizeof(command)) || strchr(command, ' '))
        ebpfMonPlainProgramsNoteInterpreter(f->plain, inode);
}

/* "found": as readImage returned it for the last look at this process, with "error". */
static void notePlain(ebpfMonIocFinder *f, const newProcess *p, int found, int error)
{
    if (found < 0 && error == ESRCH && ebpfMonPlainProgramsHaveIoc(f->plain, p->program.inode)) {
        f->ended = p->pid; /* a look while its libraries were loaded tells nothing */
        f->endedCount++;
        return;
    }
    if (found == 0) {
        ebpfMonPlainProgramsNote(f->plain, &p->program, ebpfMonProgramIoc);
        noteInterpreter(f, p->pid, p->program.inode);
    } else if (p->wasPlain)
        ebpfMonPlainProgramsNote(f->plain, &p->program, ebpfMonProgramPlain);
    else if (error == ESRCH)
        ebpfMonPlainProgramsNote(f->plain, &p->program, ebpfMonProgramEnded);
}

/* Looks at the new processes that are due. Returns the one that is an IOC, or 0 and lowers *wait to the next that is
 * due. */
static pid_t findNew(ebpfMonIocFinder *f, uint64_t now, ebpfMonImage *image, double *wait)
{
    for (unsigned i = 0; i < f->newCount;) {
        newProcess *p = &f->new[i];
        pid_t pid = p->pid;
        int found, isCharged;

        if (p->due > now) {
            if ((double)(p->due - now) / 1e9 < *wait)
                *wait = (double)(p->due - now) / 1e9;
            i++;
            continue;
        }
        isCharged = ebpfMonForeignIsCharged(pid);
        if (isCharged && !ebpfMonForeignTakeLook(pid)) {
            p->due = now + CHARGED_NS;
            i++;
            continue;
        }
        found = readNewImage(f, p, image);
        if (found == 0 && !image->com && p->tries < WHOLE_TRIES)
            found = 1;
        if (found == 0 || (found < 0 && (errno == ESRCH || ebpfMonImageIsRefused(errno))) || ++p->tries >= TRIES) {
            notePlain(f, p, found, errno);
            *p = f->new[--f->newCount];
            if (found == 0)
                return pid;
            continue;
        }
        p->due = now + (FIRST_NS << p->tries);
        if (isCharged) /* other processes go first */
            p->due = now + (uint64_t)p->tries * CHARGED_NS;
        i++;
    }
    return 0;
}

static void beginScan(ebpfMonIocFinder *f, uint64_t now)
{
    if (f->scan || now - f->scanned <= (f->hasYoung ? RESCAN_NS : RESCAN_OLD_NS))
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
        f->hasYoung = f->hasYoungSoFar;
        f->hasYoungSoFar = 0;
        f->denied = f->deniedSoFar;
        f->deniedFirst = f->deniedFirstSoFar;
        f->deniedSoFar = 0;
        f->hasScanned = 1;
    }
    free(f->scan);
    f->scan = NULL;
    f->scanCount = f->scanAt = 0;
}

/* Processes of a user who costs too much are looked at one by one. */
static int mayLookInScan(ebpfMonIocFinder *f, ebpfMonSeenProcess *o, uint64_t now)
{
    if (!ebpfMonForeignIsCharged(o->pid))
        return 1;
    if ((o->looks && now - o->looked < CHARGED_NS << o->looks) || !ebpfMonForeignTakeLook(o->pid)) {
        f->hasYoungSoFar = 1;
        return 0;
    }
    if (o->looks < LOOK_STEPS)
        o->looks++;
    return 1;
}

/* Nonzero: this process is worth a look in this scan. */
static int isDue(ebpfMonIocFinder *f, pid_t pid, uint64_t now)
{
    ebpfMonSeenProcess *o = ebpfMonSeenProcessesFind(f->seen, pid);
    uint64_t start, pages;

    if (o && now - o->seen > OLD_NS && now - o->checked < OLD_NS)
        return 0;
    start = ebpfMonProcStart(pid);
    if (!start)
        return 0;
    pages = ebpfMonProcMappedPages(pid);
    o = ebpfMonSeenProcessesGet(f->seen, pid, start, now);
    if (!pages) { /* a thread of the kernel, of which a host has hundreds: it will be no IOC, so it is never young */
        o->checked = now;
        o->seen = 0;
        return 0;
    }
    f->hasYoungSoFar |= now - o->seen <= OLD_NS;
    if (pages == o->pages && now - o->looked < SAME_NS) {
        o->checked = now;
        return 0;
    }
    if (isPostponed(f, pid)) {
        f->hasPostponed = 1;
        return 0;
    }
    /* not checked: it is tried again in the next scan */
    if (now < o->asideUntil || !mayLookInScan(f, o, now))
        return 0;
    o->looked = o->checked = now;
    o->pages = pages;
    return 1;
}

/* Nonzero: a running IOC forked this process, or the one that forked it (python's multiprocessing). As long as that IOC
 * runs, this is no IOC of its own. A launcher of IOCs runs no iocInit, and the parent of a daemon has ended. */
static int isForkOfIoc(const ebpfMonIocFinder *f, pid_t pid)
{
    for (int i = 0; i < FORKS_MAX; i++) {
        pid = ebpfMonProcForkedFrom(pid);
        if (pid <= 0)
            return 0;
        if (f->isRunning(f->arg, pid))
            return 1;
    }
    return 0;
}

/* Nonzero: there is a process to look at, now or later. */
static int goOnWithScan(ebpfMonIocFinder *f)
{
    if (f->scanAt == f->scanCount && f->hasPostponed && !f->isSecondPass) {
        f->isSecondPass = 1;
        f->scanAt = 0;
    }
    return f->scanAt < f->scanCount;
}

/* Goes on with the scan. Returns the next process that is an IOC, or 0: the scan is over, or has taken long enough. */
static pid_t findInScan(ebpfMonIocFinder *f, uint64_t now, ebpfMonImage *image)
{
    uint64_t begin = ebpfMonClockMonotonic();

    while (goOnWithScan(f) && ebpfMonClockMonotonic() - begin < SLICE_NS) {
        pid_t pid = f->scan[f->scanAt++];
        ebpfMonSeenProcess *o;
        int isLookedAt;

        if (f->isKnown(f->arg, pid))
            continue;
        isLookedAt = isDue(f, pid, now);
        o = ebpfMonSeenProcessesFind(f->seen, pid);
        if (isLookedAt && o && isForkOfIoc(f, pid)) {
            o->pages = 0; /* it may be one when that IOC has ended */
            o->denied = 0;
        } else if (isLookedAt && o) {
            int found = readImage(f, pid, image);

            if (found != 1)
                o->pages = 0;
            o->denied = found < 0 && (errno == EACCES || errno == EPERM);
            if (found == 0 && (image->com || now - o->seen > WHOLE_NS)) {
                ebpfMonPlainProgramsNoteIoc(f->plain, ebpfMonProcProgramInode(pid));
                noteInterpreter(f, pid, ebpfMonProcProgramInode(pid));
                return pid;
            }
        }
        if (o && o->denied && f->deniedSoFar++ == 0)
            f->deniedFirstSoFar = pid;
    }
    return 0;
}

double ebpfMonIocFinderFindNext(ebpfMonIocFinder *f, uint64_t now, pid_t *pid, ebpfMonImage *image)
{
    double wait = HUGE_VAL, rescan;

    takeStarted(f, now);
    *pid = findNew(f, now, image, &wait);
    if (*pid)
        return 0;
    beginScan(f, now);
    *pid = findInScan(f, now, image);
    if (*pid || goOnWithScan(f))
        return 0;
    endScan(f);
    rescan = f->hasYoung ? (double)RESCAN_NS / 1e9 : HUGE_VAL; /* old ones are looked at when the caller wakes anyway */
    return rescan < wait ? rescan : wait;
}

unsigned ebpfMonIocFinderTakeEnded(ebpfMonIocFinder *f, pid_t *pid)
{
    unsigned count = f->endedCount;

    *pid = f->ended;
    f->endedCount = 0;
    return count;
}

unsigned ebpfMonIocFinderCountDenied(const ebpfMonIocFinder *f, pid_t *first)
{
    *first = f->deniedFirst;
    return f->denied;
}

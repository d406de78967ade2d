/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/capability.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "host/foreign.h"
#include "module/modules.h"
#include "probe/kernelEvents.h"
#include "probe/kernelTables.h"
#include "watch/followed.h"
#include "watch/follower.h"
#include "watch/iocFinder.h"
#include "watch/targetDatabase.h"
#include "watch/targetLife.h"

#define STOP_SECONDS 5.0
#define DETACH_SECONDS 4.0         /* part of STOP_SECONDS: for the kernel to remove all probes */
#define REFUSED_NS   60000000000ull /* for so long STATE says that there is no place for one more IOC */
#define TICK_IDLE    1.0
#define ADOPT_NS     EBPFMON_SECOND_NS /* so long new IOCs are looked for before those that were found are followed */
#define KEEP_NS      3000000000ull /* an IOC that ended keeps its names this long */
#define RELINK_NS    5000000000ull /* while events are lost all links are read this often */
#define LOOK_NS      4900000000ull /* between two looks for new records; in a silence each round is one */
#define BUDGET_NS    EBPFMON_SECOND_NS
#define ENDED_NS     10000000000ull /* between two lines about IOCs that crash when they start */

/* An IOC that this process may not look at: STATE says so, because nobody would miss it otherwise. */
typedef enum { blindNot, blindToMemory, blindToFiles } blindness;

struct ebpfMonFollower {
    ebpfMonTargetLife life; /* fixed, except isNested; the next two are fixed */
    ebpfMonFollowerSink sink;
    ebpfMonIocFinder *finder;
    ebpfMonWorker *worker;  /* for other threads: set while none of them uses the follower */

    /* the thread's own; times are monotonic ns */
    uint64_t  budgetAt, lookedAt, relinkedAt;
    uint64_t  ringLost;     /* events, when the links were read again for that */
    uint64_t  skipped;      /* programs that the kernel did not run, when ends of threads were looked for for that */
    uint64_t  capabilities; /* of this process */
    ebpfMonClockSteps clockSteps;
    uint64_t  refusedAt;    /* no place for an IOC; 0: never */
    uint64_t  endedAt;      /* IOCs that ended before they were found were reported; 0: never */
    int       hasSearched;  /* all processes that were there have been looked at */
    const ebpfMonTarget *busy; /* it is being looked at, and others are meanwhile; NULL: none */
    char      trouble[200]; /* as it was reported last */
};

/* What is to be done in one round of the thread. */
typedef struct {
    ebpfMonWorker *worker;  /* the thread's own */
    uint64_t now;
    double   wait;          /* s, until the next round */
    ebpfMonFilter filter;
    int      changed;       /* the filter, or a rule */
    int      relink;        /* all links are to be read again */
    int      budget, look;  /* due now: costs, and who is still there; new records */
    ebpfMonClockStep clockStep; /* of the clock of the host, since the last round … */
    uint64_t clockSince;        /* … which began then (ns since 1970) */
} followRound;

void ebpfMonFollowerNoteExec(ebpfMonFollower *f, pid_t pid, const struct ebpfMonProgram *program)
{
    int isKnown;

    ebpfMonTargetsLock(f->life.targets);
    isKnown = ebpfMonTargetsFindByPid(f->life.targets, pid) != NULL;
    ebpfMonTargetsUnlock(f->life.targets);
    ebpfMonIocFinderNoteExec(f->finder, pid, program, isKnown);
    ebpfMonWorkerWake(f->worker);
}

void ebpfMonFollowerNoteExit(ebpfMonFollower *f, pid_t pid)
{
    ebpfMonIocFinderNoteExit(f->finder, pid);
    ebpfMonWorkerWake(f->worker);
}

void ebpfMonFollowerEndSilence(ebpfMonFollower *f)
{
    ebpfMonWorkerWake(f->worker);
}

static void shortenWait(followRound *r, double wait)
{
    if (wait < r->wait)
        r->wait = wait;
}

/* Nonzero: some puts to links are not known: the list had no room for them, or their events were lost because the
 * ring was full. */
static int linksAreUnknown(ebpfMonFollower *f, uint64_t now)
{
    uint64_t lost[EBPFMON_LOST_KERNEL];
    int missed = ebpfMonRequestsTakeLinksMissed(f->life.requests);

    ebpfMonKernelGetLost(lost);
    if (lost[EBPFMON_LOST_RING] != f->ringLost && now - f->relinkedAt > RELINK_NS) {
        f->ringLost = lost[EBPFMON_LOST_RING];
        missed = 1;
    }
    if (missed)
        f->relinkedAt = now;
    return missed;
}

/* The kernel may not have told the end of a thread. (That of an IOC is found by followEnd, its start by the finder.) */
static void findUnseenEnds(ebpfMonFollower *f)
{
    uint64_t skipped = ebpfMonKernelCountSkipped();

    if (skipped == f->skipped)
        return;
    f->skipped = skipped;
    ebpfMonKernelRemoveEnded();
}

/* s. In a silence no IOC costs anything; who starts or ends wakes this thread, and so does the end of the silence. */
static double findLongestWait(uint64_t now)
{
    return ebpfMonKernelIsSilent() ? (double)(ebpfMonClockNextLook(now) - now) / 1e9 : TICK_IDLE;
}

static void beginRound(ebpfMonFollower *f, followRound *r)
{
    r->now = ebpfMonClockMonotonic();
    r->wait = findLongestWait(r->now);
    r->budget = r->now - f->budgetAt > BUDGET_NS;
    r->look = r->now - f->lookedAt > LOOK_NS;
    r->relink = linksAreUnknown(f, r->now);
    r->clockStep = ebpfMonClockStepsLook(&f->clockSteps, &r->clockSince);
    r->changed = ebpfMonRequestsTakeFilter(f->life.requests, &r->filter);
    if (r->budget) {
        f->budgetAt = r->now;
        findUnseenEnds(f);
    }
    if (r->look)
        f->lookedAt = r->now;
}

/* Ends the target if its process has ended, or runs another program: exec keeps pid and start time. The kernel tells
 * both. In case that an event was lost, or came while the process was not known yet, /proc is asked once a second; not
 * in each round, because each program that starts on this host makes one. */
static void followEnd(ebpfMonFollower *f, const followRound *r, ebpfMonTarget *t)
{
    if (ebpfMonIocFinderTakeExit(f->finder, t->pid))
        ebpfMonTargetLifeEnd(&f->life, t, r->now, 1);
    else if (ebpfMonIocFinderTakeExec(f->finder, t->pid) ||
             (r->budget && !ebpfMonProcRuns(t->pid, t->start, t->image.program)))
        ebpfMonTargetLifeEnd(&f->life, t, r->now, !ebpfMonProcLives(t->pid, t->start));
}

static void setOwesLinks(ebpfMonFollower *f, ebpfMonTarget *t, int owes)
{
    ebpfMonTargetsLock(f->life.targets);
    t->owesLinks = owes;
    ebpfMonTargetsUnlock(f->life.targets);
}

/* Each change of a link makes the chains of its IOC anew. Nonzero: its user has cost too much, so that is done later,
 * and the counts until then are lower bounds. */
static int mustWait(ebpfMonFollower *f, ebpfMonTarget *t)
{
    if (!ebpfMonForeignIsUserCharged(t->user))
        return 0;
    if (!t->owesLinks)
        ebpfMonRecordTablesMarkMissed(f->life.tables, t);
    setOwesLinks(f, t, 1);
    return 1;
}

static void readAllLinks(ebpfMonFollower *f, ebpfMonTarget *t)
{
    if (mustWait(f, t))
        return;
    setOwesLinks(f, t, 0);
    ebpfMonTargetLifeReadAllLinks(&f->life, t);
}

/* Nonzero: a client has connected over TLS, for the first time. */
static int takeTls(ebpfMonFollower *f, ebpfMonTarget *t)
{
    int before = t->followed->probes.hasTls;

    ebpfMonTargetsLock(f->life.targets);
    t->followed->probes.hasTls = t->packets.hasTls;
    ebpfMonTargetsUnlock(f->life.targets);
    return t->followed->probes.hasTls && !before;
}

static void followRunning(ebpfMonFollower *f, followRound *r, ebpfMonTarget *t)
{
    int mustApply;

    if (r->look)
        ebpfMonTargetLifeFindRecords(&f->life, t, r->now);
    if (r->relink || t->owesLinks)
        readAllLinks(f, t);
    if (r->budget) {
        if (t->level > ebpfMonLevelOff)
            ebpfMonTargetLifeFindBreakpoints(&f->life, t);
        ebpfMonTargetLifeTryTypes(&f->life, t, r->now);
        ebpfMonTargetLifeFollowSweeps(&f->life, t, r->now);
        ebpfMonTargetLifeLookAtClock(&f->life, t, r->now);
    }
    if (r->changed) /* the operator decided anew: so does the governor */
        ebpfMonBudgetReset(&t->followed->budget);
    mustApply = r->changed || (r->budget && t->followed->probes.noFiles);
    mustApply |= r->budget && takeTls(f, t);
    mustApply |= r->budget && ebpfMonGovernorCheckBudget(f->life.governor, t, &r->filter, r->now);
    if (mustApply) {
        ebpfMonTargetLifeApply(&f->life, t);
        f->sink.iocsChanged(f->sink.arg);
    }
    shortenWait(r, ebpfMonGovernorTakeTurn(f->life.governor, t, &r->filter, ebpfMonClockMonotonic()));
}

static void followStart(ebpfMonFollower *f, followRound *r, ebpfMonTarget *t)
{
    /* the cost of other processes of its user delays this IOC, but not the IOCs of other users */
    if (!t->cat && ebpfMonForeignIsCharged(t->pid) && !ebpfMonForeignIsAside(t->pid)) {
        if (r->now < t->followed->life.nextAt || !ebpfMonForeignTakeLook(t->pid)) {
            shortenWait(r, TICK_IDLE);
            return;
        }
        t->followed->life.nextAt = r->now + (r->now - t->foundAt); /* its other IOCs go first */
    }
    shortenWait(r, ebpfMonTargetLifeFollowStart(&f->life, t, r->now));
}

/* Nonzero: it is forgotten. */
static int followOne(ebpfMonFollower *f, followRound *r, ebpfMonTarget *t)
{
    if (!t->gone)
        followEnd(f, r, t);
    if (t->gone || t->followed->probes.noFiles)
        shortenWait(r, TICK_IDLE);
    if (t->gone) {
        if (r->now - t->followed->life.endedAt <= KEEP_NS)
            return 0;
        ebpfMonTargetLifeForget(&f->life, t);
        return 1;
    }
    if (r->changed)
        t->followed->life.levelApplied = 0;
    if (r->clockStep != ebpfMonClockGoesOn)
        ebpfMonTargetLifeNoteClock(t, r->clockStep, r->clockSince, r->now);
    if (t->running)
        followRunning(f, r, t);
    else
        followStart(f, r, t);
    return 0;
}

/* Its user pays for the CPU time of this IOC, and not for processes that were looked at meanwhile. If the monitor
 * is started when many IOCs run, their start is free. */
static void followTarget(ebpfMonFollower *f, followRound *r, ebpfMonTarget *t)
{
    uint64_t begin = ebpfMonForeignGetCpu(), paused = ebpfMonMemGetPaused(t->followed->mem);
    int isFree = t->followed->life.wasThere && !t->running;
    uid_t user = t->user;

    ebpfMonWorkerGiveSign(r->worker);
    f->busy = t;
    if (!followOne(f, r, t))
        begin += ebpfMonMemGetPaused(t->followed->mem) - paused;
    if (!isFree)
        ebpfMonForeignChargeCpu(user, ebpfMonForeignGetCpu() - begin);
}

/* Credible IOCs go first. An IOC may be forgotten meanwhile; then it was already handled in this list. */
static void followAll(ebpfMonFollower *f, followRound *r)
{
    ebpfMonTarget *list[EBPFMON_TARGETS_MAX];
    unsigned count = ebpfMonTargetsListByRank(f->life.targets, list, EBPFMON_TARGETS_MAX);

    ebpfMonRecordTablesReserve(f->life.tables);
    for (unsigned i = 0; i < count; i++)
        followTarget(f, r, list[i]);
    if (r->changed)
        ebpfMonRequestsSetApplied(f->life.requests);
}

static void readLinksOf(void *arg, uint32_t iocId, uint64_t precord)
{
    ebpfMonFollower *f = arg;
    ebpfMonTarget *t = ebpfMonTargetsFindById(f->life.targets, iocId);
    uint64_t begin = ebpfMonForeignGetCpu();

    if (!t || mustWait(f, t))
        return;
    ebpfMonTargetLifeReadLinks(&f->life, t, precord);
    ebpfMonForeignChargeCpu(t->user, ebpfMonForeignGetCpu() - begin);
}

static void noteThere(ebpfMonFollower *f, pid_t pid)
{
    ebpfMonTarget *t = ebpfMonTargetsFindByPid(f->life.targets, pid);

    if (t)
        t->followed->life.wasThere = 1;
}

/* IOCs that ended before their names were known. If only some IOCs are watched, they may be others. */
static void reportEnded(ebpfMonFollower *f, const followRound *r)
{
    char text[EBPFMON_MODULE_EVENT + 1];
    unsigned count;
    pid_t pid;

    if (f->endedAt && r->now - f->endedAt < ENDED_NS)
        return;
    count = ebpfMonIocFinderTakeEnded(f->finder, &pid);
    if (!count || (r->filter.ioc[0] && strcmp(r->filter.ioc, "*") != 0))
        return;
    f->endedAt = r->now;
    if (count == 1)
        snprintf(text, sizeof(text), "an IOC (pid %d) ended as soon as it had started: its name is not known",
                 (int)pid);
    else
        snprintf(text, sizeof(text), "%u IOCs ended as soon as they had started: their names are not known (the last: "
                 "pid %d)", count, (int)pid);
    ebpfMonModuleAddEvent(text);
}

static void adoptNew(ebpfMonFollower *f, followRound *r)
{
    uint64_t begin = ebpfMonClockMonotonic();
    ebpfMonImage image;
    pid_t pid;

    do {
        double due;

        ebpfMonWorkerGiveSign(r->worker);
        due = ebpfMonIocFinderFindNext(f->finder, r->now, &pid, &image);

        if (!pid) {
            shortenWait(r, due);
            if (due > 0) {
                ebpfMonTargetsSetSearched(f->life.targets, ebpfMonIocFinderGetScanned(f->finder));
                f->hasSearched = 1;
            }
            return;
        }
        if (ebpfMonTargetLifeAdopt(&f->life, pid, &image)) {
            f->refusedAt = r->now;
            ebpfMonIocFinderSetAside(f->finder, pid, "there is no place for one more IOC");
            continue;
        }
        if (!f->hasSearched)
            noteThere(f, pid);
        r->wait = 0; /* it is followed at once */
    } while (ebpfMonClockMonotonic() - begin < ADOPT_NS);
}

/* A large database is being read, which takes seconds: other IOCs go first, but those that are large, too. None is
 * forgotten, because the round that is under way goes on with its list. */
static void followOthers(void *arg)
{
    ebpfMonFollower *f = arg;
    ebpfMonTarget *list[EBPFMON_TARGETS_MAX];
    const ebpfMonTarget *busy = f->busy;
    unsigned count;
    followRound r = { .worker = f->worker, .now = ebpfMonClockMonotonic(), .wait = TICK_IDLE };

    if (f->life.isNested)
        return;
    f->life.isNested = 1;
    ebpfMonRequestsGetFilter(f->life.requests, &r.filter);
    ebpfMonRecordTablesReserve(f->life.tables);
    count = ebpfMonTargetsListByRank(f->life.targets, list, EBPFMON_TARGETS_MAX);
    for (unsigned i = 0; i < count; i++)
        if (list[i] != busy && !list[i]->gone && (!list[i]->cat || list[i]->cat->count <= EBPFMON_DATABASE_QUICK))
            followTarget(f, &r, list[i]);
    if (count < EBPFMON_TARGETS_MAX)
        adoptNew(f, &r);
    f->busy = busy;
    f->life.isNested = 0;
}

/* What keeps us from seeing IOCs, if anything. */
static void reportTrouble(ebpfMonFollower *f, uint64_t now)
{
    const uint64_t files = 1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_DAC_OVERRIDE;
    blindness blind = blindNot;
    char text[200] = "";
    pid_t first = 0;

    if (!(f->capabilities & 1ull << CAP_SYS_PTRACE))
        blind = blindToMemory;
    else if (!(f->capabilities & files) && ebpfMonIocFinderCountDenied(f->finder, &first))
        blind = blindToFiles;
    if (blind == blindToMemory)
        snprintf(text, sizeof(text), "no CAP_SYS_PTRACE: IOCs of others cannot be seen. Start ebpfMon as root, or "
                 "with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE");
    else if (blind == blindToFiles)
        snprintf(text, sizeof(text), "program files of some processes (pid %d) cannot be read, they may be "
                 "IOCs: give ebpfMon CAP_DAC_READ_SEARCH, or let its user read them", (int)first);
    else if (ebpfMonForeignLacksThreads())
        snprintf(text, sizeof(text),
                 "too few threads: processes wait until others have been looked at. Raise the limit (TasksMax, "
                 "ulimit -u)");
    else if (f->refusedAt && now - f->refusedAt < REFUSED_NS)
        snprintf(text, sizeof(text),
                 "%d IOCs are watched, and there are more: their users have most IOCs. Watch fewer, or "
                 "run a second monitor; ebpfMonIocs lists some that are not watched",
                 EBPFMON_TARGETS_MAX);
    else if (ebpfMonImageCacheIsFull(ebpfMonIocFinderGetFiles(f->finder)))
        snprintf(text, sizeof(text),
                 "the IOCs use nearly %u program files with code of EPICS: an IOC with other files may be missing. "
                 "Let IOCs share libraries, or run fewer", EBPFMON_KNOWN_MAX);
    if (strcmp(text, f->trouble) == 0)
        return;
    snprintf(f->trouble, sizeof(f->trouble), "%s", text);
    f->sink.trouble(f->sink.arg, text);
}

/* Forgets the files of programs that were replaced, or whose IOCs have ended. Between two rounds only targets point to
 * known files; other threads use these pointers only while they hold the lock and the target is in the list. */
static void forgetFiles(ebpfMonFollower *f)
{
    ebpfMonImageCache *files = ebpfMonIocFinderGetFiles(f->finder);

    if (!ebpfMonImageCacheIsCrowded(files))
        return;
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(f->life.targets); t; t = t->next) {
        const ebpfMonImageCallers *callers = &t->followed->att.callers;

        ebpfMonImageCacheKeep(t->image.core);
        ebpfMonImageCacheKeep(t->image.com);
        ebpfMonImageCacheKeep(t->image.server);
        ebpfMonImageCacheKeep(t->image.pvxs);
        for (unsigned i = 0; i < callers->count; i++)
            ebpfMonImageCacheKeep(callers->file[i].binary);
    }
    ebpfMonImageCacheForget(files);
}

static void runFollower(ebpfMonWorker *worker, void *arg)
{
    ebpfMonFollower *f = arg;
    ebpfMonTarget *t;

    f->capabilities = ebpfMonProcCapabilities();
    ebpfMonClockStepsBegin(&f->clockSteps);
    while (!ebpfMonWorkerIsStopping(worker)) {
        followRound r = { .worker = worker };

        forgetFiles(f);
        beginRound(f, &r);
        ebpfMonTargetPlaceFindListening(f->life.targets, r.now);
        followAll(f, &r);
        shortenWait(&r, ebpfMonRequestsTakeLinksDue(f->life.requests, r.now, readLinksOf, f));
        adoptNew(f, &r);
        reportEnded(f, &r);
        reportTrouble(f, r.now);
        if (r.wait > 0)
            ebpfMonWorkerWait(worker, r.wait);
    }
    ebpfMonTargetLifeDetachAll(&f->life, DETACH_SECONDS);
    while ((t = ebpfMonTargetsGetFirst(f->life.targets)) != NULL)
        ebpfMonTargetLifeForget(&f->life, t);
    ebpfMonClockStepsEnd(&f->clockSteps);
}

/* Nonzero: this process needs no look. The kernel tells the end of a process a moment before /proc does, and in that
 * moment the process still looks like an IOC. */
static int isWatched(void *arg, pid_t pid)
{
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(arg); t; t = t->next)
        if (t->pid == pid && (!t->gone || (t->followed->life.isOver && ebpfMonProcStart(pid) == t->start)))
            return 1;
    return 0;
}

static int isRunningIoc(void *arg, pid_t pid)
{
    const ebpfMonTarget *t = ebpfMonTargetsFindByPid(arg, pid);

    /* without symbols, nothing tells whether a launcher will ever run iocInit */
    return t && (t->running || t->image.interruptAccept) && ebpfMonTargetLifeHasStarted(t, ebpfMonClockMonotonic());
}

static void wakeThread(void *arg)
{
    ebpfMonWorkerWake(((ebpfMonFollower *)arg)->worker);
}

ebpfMonFollower *ebpfMonFollowerNew(ebpfMonTargets *targets, ebpfMonRequests *requests, ebpfMonRecordTables *tables,
                                    const ebpfMonGovernor *governor, int watchSelf, const ebpfMonFollowerSink *sink)
{
    ebpfMonFollower *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->sink = *sink;
    f->finder = ebpfMonIocFinderNew(watchSelf, isWatched, isRunningIoc, targets, ebpfMonKernelSetPlain);
    f->life = (ebpfMonTargetLife){ targets, requests, tables, governor, f->finder, sink->iocsChanged, sink->arg,
                                   followOthers, f, 0 };
    if (!f->finder) {
        free(f);
        return NULL;
    }
    return f;
}

int ebpfMonFollowerStart(ebpfMonFollower *f)
{
    f->worker = ebpfMonWorkerStart("ebpfMonFollow", epicsThreadPriorityLow, runFollower, f);
    if (!f->worker)
        return -1;
    ebpfMonRequestsSetWake(f->life.requests, wakeThread, f);
    return 0;
}

int ebpfMonFollowerStop(ebpfMonFollower *f)
{
    return ebpfMonWorkerStop(&f->worker, STOP_SECONDS);
}

void ebpfMonFollowerFree(ebpfMonFollower *f)
{
    if (!f)
        return;
    ebpfMonRequestsSetWake(f->life.requests, NULL, NULL);
    ebpfMonIocFinderFree(f->finder);
    free(f);
}

unsigned ebpfMonFollowerGetAside(ebpfMonFollower *f, ebpfMonAsideProcess *list, unsigned max)
{
    return ebpfMonIocFinderGetAside(f->finder, list, max);
}

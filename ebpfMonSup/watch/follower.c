/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target thread: finds IOCs when they start, at our own start and by looking
 * again; follows them through start-up; forgets them when they end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>

#include <epicsAtomic.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "watch/requests.h"
#include "watch/iocFinder.h"
#include "watch/governor.h"
#include "watch/recordTable.h"
#include "model/iocValues.h"
#include "publish/publisher.h"
#include "watch/target.h"
#include "watch/follower.h"

#define TICK_START  0.02 /* s between looks at an IOC that is starting */
#define TICK_IDLE   0.5
#define KEEP_NS     3000000000ull  /* a target that ended keeps its names this long */
#define TROUBLE_NS  5000000000ull  /* a database that cannot be read for this long is told of */
#define SETTLE_NS   2000000000ull  /* without interruptAccept: when iocInit is taken to be done */
#define RELINK_NS   5000000000ull  /* while events are lost all links are read this often */
#define PROBE_NS    5000000000ull
#define TICK_END    0.01           /* s between looks at one that is ending: that is told before it is done */
#define END_NS      300000000ull

static ebpfMonWorker *worker;
static int watchSelf;
static int ending; /* a target is about to end; atomic */

static uint64_t relinkedAt; /* ns; when all links were read again */

void ebpfMonFollowerNoteExec(pid_t pid)
{
    ebpfMonIocFinderNoteExec(pid);
    ebpfMonWorkerWake(worker);
}

void ebpfMonFollowerNoteExit(pid_t pid)
{
    (void)pid; /* the next looks find it gone */
    epicsAtomicSetIntT(&ending, 1);
    ebpfMonWorkerWake(worker);
}

/* --- the target thread ---------------------------------------------------------------------------- */

static void apply(ebpfMonTarget *t)
{
    ebpfMonFilter f;

    ebpfMonRequestsGetFilter(&f);
    t->asked = ebpfMonRequestsFindLevel(t->name, &f, &t->reference);
    ebpfMonRecordTableSetShown(t, f.record);
    ebpfMonGovernorApplyLevel(t, &f);
}

static void setNote(ebpfMonTarget *t, const char *note)
{
    if (strcmp(t->note, note) == 0)
        return;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    snprintf(t->note, sizeof(t->note), "%s", note);
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonPublisherWake(ebpfMonThePublisher);
    if (note[0])
        errlogSevPrintf(errlogMinor, "ebpfMon: IOC %s (pid %d): %s\n", t->name, (int)t->pid, note);
}

/* "EPICS R7.0.8.1" or "EPICS 7.0.10.1-DEV", as a string or behind a pointer, as releases differ. */
static void readVersion(ebpfMonTarget *t)
{
    char text[64] = "", *r;
    uint64_t at = t->image.epicsReleaseVersion;

    if (at && t->image.releaseIsPointer)
        at = ebpfMonMemPtr(t->mem, at);
    if (at)
        ebpfMonMemStr(t->mem, at, text, sizeof(text));
    r = strchr(text, ' ');
    r = r ? r + 1 : text;
    snprintf(t->version, sizeof(t->version), "%s", *r == 'R' ? r + 1 : r);
    t->version[strcspn(t->version, " \n")] = 0;
}

/* Two IOCs with one name are told apart by their pid. */
static void nameTarget(ebpfMonTarget *t)
{
    if (ebpfMonProcIocName(t->pid, t->name, sizeof(t->name)))
        snprintf(t->name, sizeof(t->name), "pid%d", (int)t->pid);
    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(ebpfMonTheTargets); o; o = o->next)
        if (o != t && !o->gone && strcmp(o->name, t->name) == 0) {
            char base[EBPFMON_IOCNAME_SIZE];

            snprintf(base, sizeof(base), "%s", t->name);
            snprintf(t->name, sizeof(t->name), "%.48s#%d", base, (int)t->pid);
            break;
        }
}

static void adopt(pid_t pid, const ebpfMonImage *image)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));
    unsigned count = 0;

    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(ebpfMonTheTargets); o; o = o->next)
        count++;
    if (!t || count >= EBPFMON_IOCS_MAX) {
        free(t);
        return; /* found again by the next look */
    }
    t->pid = pid;
    t->start = ebpfMonProcStart(pid);
    t->image = *image;
    t->mem = ebpfMonMemNew(pid);
    t->slot = t->closureAt = t->oldClosureAt = UINT32_MAX;
    t->ceiling = ebpfMonLevelTrace;
    t->bornAt = ebpfMonClockMonotonic();
    if (!t->mem || !t->start) {
        ebpfMonMemFree(t->mem);
        free(t);
        return;
    }
    nameTarget(t);
    readVersion(t);
    ebpfMonAttachInit(&t->att, pid, &t->image, ebpfMonProcSeccomp(pid) == 2);
    ebpfMonTargetsAdd(ebpfMonTheTargets, t);
}

static void forget(ebpfMonTarget *t)
{
    char note[8];

    ebpfMonAttachSet(&t->att, 0, note, sizeof(note));
    ebpfMonRecordTableRemove(t);
    ebpfMonTargetsRemove(ebpfMonTheTargets, t);
    ebpfMonCatalogueRelease(t->cat);
    ebpfMonMemFree(t->mem);
    free(t);
}

static void markGone(ebpfMonTarget *t, uint64_t now)
{
    char note[8];

    ebpfMonTargetsLock(ebpfMonTheTargets);
    t->gone = 1;
    t->goneAt = now;
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonRecordTableRemoveIndex(t);
    ebpfMonAttachSet(&t->att, 0, note, sizeof(note)); /* its probes went with it; ours are only handles */
    if (!ebpfMonTargetsFindByPid(ebpfMonTheTargets, t->pid))
        ebpfMonKernelRemoveTarget((uint32_t)t->pid);
    ebpfMonPublisherWake(ebpfMonThePublisher);
}

/* The same process, and still the same program? exec keeps pid and start time. */
static int alive(ebpfMonTarget *t)
{
    return ebpfMonProcStart(t->pid) == t->start && !ebpfMonIocFinderTakeExec(t->pid);
}

static void readCatalogue(ebpfMonTarget *t, uint64_t now)
{
    char why[160];
    ebpfMonCatalogue *cat, *old = t->cat;

    ebpfMonMemFlush(t->mem);
    cat = ebpfMonCatalogueRead(t->mem, t->image.pdbbase, why, sizeof(why));
    if (!cat) {
        if (why[0] && now - t->bornAt > TROUBLE_NS)
            setNote(t, why);
        return;
    }
    if (old)
        ebpfMonRecordTableRemove(t);
    ebpfMonTargetsLock(ebpfMonTheTargets);
    t->cat = cat;
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonRecordTableAddArrays(t);
    t->nodes = ebpfMonCatalogueProbe(t->mem, t->image.pdbbase);
    ebpfMonCatalogueRelease(old);
}

static int isRunning(ebpfMonTarget *t, uint64_t now)
{
    int accept = 0;

    if (!t->image.interruptAccept)
        return now - t->bornAt > SETTLE_NS;
    if (ebpfMonMemReadNow(t->pid, t->image.interruptAccept, &accept, sizeof(accept)))
        return 0;
    return accept != 0;
}

/* Brings an IOC that is starting forward. Nonzero: it still is. */
static int follow(ebpfMonTarget *t, uint64_t now)
{
    int running = isRunning(t, now);

    if (!t->cat || running || now - t->probedAt > PROBE_NS / 10) {
        long nodes;

        t->probedAt = now;
        ebpfMonMemFlush(t->mem);
        nodes = ebpfMonCatalogueProbe(t->mem, t->image.pdbbase);
        if (!t->cat || nodes != t->nodes)
            readCatalogue(t, now);
    }
    if (!t->cat)
        return 1;
    if (running) {
        t->running = 1;
        if (t->slot == UINT32_MAX && t->cat->count)
            ebpfMonRecordTableInstall(t);
        ebpfMonMemFlush(t->mem);
    }
    if (!t->applied || running) {
        t->applied = 1;
        apply(t);
        ebpfMonPublisherWake(ebpfMonThePublisher);
    }
    return !running;
}

static void lookAgain(ebpfMonTarget *t, uint64_t now)
{
    long nodes;

    ebpfMonMemFlush(t->mem);
    nodes = ebpfMonCatalogueProbe(t->mem, t->image.pdbbase);
    if (nodes > 0 && nodes != t->nodes) {
        readCatalogue(t, now);
        if (t->cat && t->slot == UINT32_MAX) {
            ebpfMonRecordTableInstall(t);
            apply(t); /* without room for its records: puts only */
        }
    }
    ebpfMonMemFlush(t->mem);
}

static void linksOf(uint32_t iocId, uint64_t precord)
{
    ebpfMonTarget *t = ebpfMonTargetsFindById(ebpfMonTheTargets, iocId);
    long index = t && t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    uint32_t trapped;

    if (index < 0 || t->gone || !t->running)
        return;
    trapped = t->trapped;
    ebpfMonMemFlush(t->mem);
    ebpfMonRecordTableUpdateLinks(t, (uint32_t)index);
    ebpfMonMemFlush(t->mem);
    if (!trapped != !t->trapped)
        apply(t);
}

/* What the rights of this process do not let us look at may be an IOC that nobody would miss. */
static void tellBlind(const ebpfMonIocFinder *finder, uint64_t may)
{
    const uint64_t files = 1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_DAC_OVERRIDE;
    static int wasBlind; /* 1: to memory, 2: to files */
    int blind = 0;
    pid_t first = 0;

    if (!(may & 1ull << CAP_SYS_PTRACE))
        blind = 1;
    else if (!(may & files) && ebpfMonIocFinderCountDenied(finder, &first))
        blind = 2;
    if (blind == wasBlind)
        return;
    wasBlind = blind;
    if (blind == 1) {
        ebpfMonPublisherSetTrouble(ebpfMonThePublisher, "no CAP_SYS_PTRACE: IOCs of others cannot be seen. Start ebpfMon as root, or "
                              "with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE");
    } else if (blind == 2) {
        char text[200];

        snprintf(text, sizeof(text), "program files of some processes (pid %d) cannot be read, they may be "
                 "IOCs: give ebpfMon CAP_DAC_READ_SEARCH, or let its user read them", (int)first);
        ebpfMonPublisherSetTrouble(ebpfMonThePublisher, text);
    } else {
        ebpfMonPublisherSetTrouble(ebpfMonThePublisher, "");
    }
}

/* Puts to links that we do not know of: more than could be remembered, or lost with a full ring. */
static int linksUnknown(void)
{
    static uint64_t ringBefore;
    uint64_t lost[EBPFMON_LOST_KERNEL];
    int missed = ebpfMonRequestsTakeLinksMissed();

    ebpfMonKernelGetLost(lost);
    if (lost[EBPFMON_LOST_RING] != ringBefore && ebpfMonClockMonotonic() - relinkedAt > RELINK_NS) {
        ringBefore = lost[EBPFMON_LOST_RING];
        missed = 1;
    }
    if (missed)
        relinkedAt = ebpfMonClockMonotonic();
    return missed;
}

static ebpfMonTarget *targetOf(pid_t pid)
{
    return ebpfMonTargetsFindByPid(ebpfMonTheTargets, pid);
}

static void runFollower(ebpfMonWorker *self, void *arg)
{
    ebpfMonIocFinder *finder = ebpfMonIocFinderNew(watchSelf);
    uint64_t lastBudget = 0, lastProbe = 0, endUntil = 0, may = ebpfMonProcCapabilities();

    (void)arg;
    while (finder && !ebpfMonWorkerIsStopping(self)) {
        uint64_t now = ebpfMonClockMonotonic();
        double wait = TICK_IDLE, due;
        int relink, changed, budget = now - lastBudget > 1000000000u, probe = now - lastProbe > PROBE_NS;
        ebpfMonTarget *t, *next;
        ebpfMonFilter f;
        ebpfMonImage image;
        pid_t pid;

        relink = linksUnknown();
        changed = ebpfMonRequestsTakeFilter(&f);
        if (epicsAtomicCmpAndSwapIntT(&ending, 1, 0))
            endUntil = now + END_NS;
        if (now < endUntil)
            wait = TICK_END;
        for (t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = next) {
            next = t->next;
            if (!t->gone && !alive(t))
                markGone(t, now);
            if (t->gone) {
                if (now - t->goneAt > KEEP_NS)
                    forget(t);
                continue;
            }
            if (changed)
                t->applied = 0;
            if (!t->running) {
                if (follow(t, now) && wait > TICK_START)
                    wait = TICK_START;
                continue;
            }
            if (probe)
                lookAgain(t, now);
            if (relink) {
                ebpfMonMemFlush(t->mem);
                ebpfMonRecordTableUpdateAllLinks(t);
                ebpfMonMemFlush(t->mem);
                apply(t);
            }
            if (changed) { /* the operator decided anew: so does the governor */
                t->ceiling = ebpfMonLevelTrace;
                t->noTrap = 0;
                t->over = t->retryAfter = 0;
            }
            if (changed || (budget && ebpfMonGovernorCheckBudget(t, f.budget, now))) {
                apply(t);
                ebpfMonPublisherWake(ebpfMonThePublisher);
            }
        }
        if (changed)
            ebpfMonRequestsSetApplied();
        if (budget)
            lastBudget = now;
        if (probe)
            lastProbe = now;
        due = ebpfMonRequestsTakeLinksDue(now, linksOf);
        if (due < wait)
            wait = due;
        due = ebpfMonIocFinderFindNext(finder, now, targetOf, &pid, &image);
        while (pid) {
            adopt(pid, &image);
            due = ebpfMonIocFinderFindNext(finder, now, targetOf, &pid, &image);
            wait = 0;
        }
        tellBlind(finder, may);
        if (due < wait)
            wait = due;
        if (wait > 0)
            ebpfMonWorkerWait(self, wait);
    }
    while (ebpfMonTargetsGetFirst(ebpfMonTheTargets))
        forget(ebpfMonTargetsGetFirst(ebpfMonTheTargets));
    ebpfMonIocFinderFree(finder);
}

static void wakeUp(void)
{
    ebpfMonWorkerWake(worker);
}

void ebpfMonFollowerStart(int self, const ebpfMonFilter *first)
{
    watchSelf = self;
    ebpfMonRequestsInit(first, wakeUp);
    ebpfMonIocFinderInit();
    worker = ebpfMonWorkerStart("ebpfMonFollow", epicsThreadPriorityLow, runFollower, NULL);
}

int ebpfMonFollowerStop(void)
{
    return ebpfMonWorkerStop(&worker, 5.0);
}

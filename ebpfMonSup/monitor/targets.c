/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of targets and the target thread: finds IOCs when they start, at our own start and by looking
 * again; follows them through start-up; forgets them when they end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <errlog.h>

#include "model/board.h"
#include "monitor/finder.h"
#include "monitor/governor.h"
#include "monitor/install.h"
#include "monitor/target.h"

#define TICK_START  0.02 /* s between looks at an IOC that is starting */
#define TICK_IDLE   0.5
#define KEEP_NS     3000000000ull  /* a target that ended keeps its names this long */
#define TROUBLE_NS  5000000000ull  /* a database that cannot be read for this long is told of */
#define SETTLE_NS   2000000000ull  /* without interruptAccept: when iocInit is taken to be done */
#define PROBE_NS    5000000000ull
#define RULES_MAX   64
#define DIRTY_MAX   1024

typedef struct {
    char pattern[EBPFMON_PATTERN_SIZE];
    int  level;     /* -1: none */
    int  reference; /* -1: none */
} rule;

/* A record whose links may have changed. The put is seen before it is done, so it is read several times. */
typedef struct {
    uint32_t iocId;
    uint64_t precord;
    uint64_t due;
    int      tries;
} dirty;

static const uint64_t dirtyAgain[] = { 0, 5000000, 50000000, 1000000000 };

static epicsMutexId listLock;   /* guards the list and what other threads read of targets */
static ebpfMonTarget *list;
static uint32_t lastId;

static epicsMutexId askLock;    /* guards what follows, which other threads ask of the target thread */
static ebpfMonFilter filter;
static int filterChanged;
static rule rules[RULES_MAX];
static int ruleCount;
static dirty dirtyList[DIRTY_MAX];
static unsigned dirtyCount;

static epicsEventId wake;
static epicsEventId ended;
static volatile int stopping;
static int watchSelf;

ebpfMonCosts ebpfMonCost;

static uint64_t nowNs(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ebpfMonTargetsLock(void)
{
    epicsMutexMustLock(listLock);
}

void ebpfMonTargetsUnlock(void)
{
    epicsMutexUnlock(listLock);
}

ebpfMonTarget *ebpfMonTargetsFirst(void)
{
    return list;
}

ebpfMonTarget *ebpfMonTargetById(uint32_t iocId)
{
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (t->iocId == iocId)
            return t;
    return NULL;
}

static ebpfMonTarget *byPid(pid_t pid)
{
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (t->pid == pid && !t->gone)
            return t;
    return NULL;
}

uint64_t ebpfMonTargetCount(const ebpfMonTarget *t, uint32_t i)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    volatile struct ebpfMonRecState *st;

    if (!tab || t->slot == UINT32_MAX)
        return 0;
    st = &tab->state[t->slot + i];
    if ((t->how[i] & (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST)) == EBPFMON_BY_TRAP)
        return st->trapped + (uint64_t)t->adjust[i];
    return st->count + (uint64_t)t->adjust[i];
}

/* --- what other threads ask ----------------------------------------------------------------------- */

void ebpfMonTargetsFilter(const ebpfMonFilter *f)
{
    epicsMutexMustLock(askLock);
    filter = *f;
    filterChanged = 1;
    epicsMutexUnlock(askLock);
    epicsEventMustTrigger(wake);
}

void ebpfMonTargetsFilterGet(ebpfMonFilter *f)
{
    epicsMutexMustLock(askLock);
    *f = filter;
    epicsMutexUnlock(askLock);
}

static int addRule(const char *pattern, int level, int reference)
{
    int i, rc = 0;

    epicsMutexMustLock(askLock);
    for (i = 0; i < ruleCount; i++)
        if (strcmp(rules[i].pattern, pattern) == 0 && (rules[i].reference < 0) == (reference < 0))
            break;
    if (i == RULES_MAX)
        rc = -1;
    else {
        if (i == ruleCount)
            ruleCount++;
        snprintf(rules[i].pattern, sizeof(rules[i].pattern), "%s", pattern);
        rules[i].level = level;
        rules[i].reference = reference;
        filterChanged = 1;
    }
    epicsMutexUnlock(askLock);
    epicsEventMustTrigger(wake);
    return rc;
}

int ebpfMonTargetsLevel(const char *pattern, int level)
{
    return addRule(pattern, level, -1);
}

int ebpfMonTargetsReference(const char *pattern, int on)
{
    return addRule(pattern, -1, on);
}

void ebpfMonTargetsLinkPut(uint32_t iocId, uint64_t precord)
{
    epicsMutexMustLock(askLock);
    if (dirtyCount < DIRTY_MAX)
        dirtyList[dirtyCount++] = (dirty){ .iocId = iocId, .precord = precord };
    epicsMutexUnlock(askLock);
    epicsEventMustTrigger(wake);
}

void ebpfMonTargetsExec(pid_t pid)
{
    ebpfMonFinderAdd(pid);
    epicsEventMustTrigger(wake);
}

void ebpfMonTargetsExit(pid_t pid)
{
    (void)pid; /* the next look finds it gone */
    epicsEventMustTrigger(wake);
}

/* --- the target thread ---------------------------------------------------------------------------- */

static int levelOf(const ebpfMonTarget *t, const ebpfMonFilter *f, int *reference)
{
    int level = epicsStrGlobMatch(t->name, f->ioc) ? (int)f->level : ebpfMonLevelOff;

    *reference = 0;
    epicsMutexMustLock(askLock);
    for (int i = 0; i < ruleCount; i++)
        if (epicsStrGlobMatch(t->name, rules[i].pattern)) {
            if (rules[i].level >= 0)
                level = rules[i].level;
            if (rules[i].reference >= 0)
                *reference = rules[i].reference;
        }
    epicsMutexUnlock(askLock);
    return level;
}

static void apply(ebpfMonTarget *t)
{
    ebpfMonFilter f;

    ebpfMonTargetsFilterGet(&f);
    t->asked = (ebpfMonLevel)levelOf(t, &f, &t->reference);
    ebpfMonInstallShown(t, f.record);
    ebpfMonGovernApply(t, &f);
}

static void setNote(ebpfMonTarget *t, const char *note)
{
    if (strcmp(t->note, note) == 0)
        return;
    ebpfMonTargetsLock();
    snprintf(t->note, sizeof(t->note), "%s", note);
    ebpfMonTargetsUnlock();
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
    for (ebpfMonTarget *o = list; o; o = o->next)
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

    for (ebpfMonTarget *o = list; o; o = o->next)
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
    t->bornAt = nowNs();
    if (!t->mem || !t->start) {
        ebpfMonMemFree(t->mem);
        free(t);
        return;
    }
    nameTarget(t);
    readVersion(t);
    ebpfMonAttachInit(&t->att, pid, &t->image, ebpfMonProcSeccomp(pid) == 2);
    ebpfMonTargetsLock();
    t->iocId = ++lastId;
    t->next = list;
    list = t;
    ebpfMonTargetsUnlock();
}

static void forget(ebpfMonTarget *t)
{
    char note[8];
    ebpfMonTarget **p;

    ebpfMonAttachSet(&t->att, 0, note, sizeof(note));
    ebpfMonInstallRemove(t);
    ebpfMonTargetsLock();
    for (p = &list; *p && *p != t; p = &(*p)->next)
        ;
    if (*p)
        *p = t->next;
    ebpfMonTargetsUnlock();
    ebpfMonCatalogueRelease(t->cat);
    ebpfMonMemFree(t->mem);
    free(t);
}

static void markGone(ebpfMonTarget *t, uint64_t now)
{
    char note[8];

    ebpfMonTargetsLock();
    t->gone = 1;
    t->goneAt = now;
    ebpfMonTargetsUnlock();
    ebpfMonAttachSet(&t->att, 0, note, sizeof(note)); /* its probes went with it; ours are only handles */
    if (!byPid(t->pid))
        ebpfMonTargetDel((uint32_t)t->pid);
    ebpfMonBoardChanged(ebpfMonGroupIocs);
}

/* The same process, and still the same program? exec keeps pid and start time. */
static int alive(ebpfMonTarget *t)
{
    return ebpfMonProcStart(t->pid) == t->start && !ebpfMonFinderExecd(t->pid);
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
        ebpfMonInstallRemove(t);
    ebpfMonTargetsLock();
    t->cat = cat;
    ebpfMonTargetsUnlock();
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
            ebpfMonInstall(t);
        ebpfMonMemFlush(t->mem);
    }
    if (!t->applied || running) {
        t->applied = 1;
        apply(t);
        ebpfMonBoardChanged(ebpfMonGroupIocs);
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
        if (t->cat && t->slot == UINT32_MAX && ebpfMonInstall(t) == 0)
            apply(t);
    }
    ebpfMonMemFlush(t->mem);
}

static double serveDirty(uint64_t now)
{
    dirty due[64];
    unsigned n = 0;
    double wait = TICK_IDLE;

    epicsMutexMustLock(askLock);
    for (unsigned i = 0; i < dirtyCount;) {
        dirty *d = &dirtyList[i];

        if (d->due == 0)
            d->due = now;
        if (d->due > now || n == 64) {
            double s = d->due > now ? (double)(d->due - now) / 1e9 : 0;

            if (s < wait)
                wait = s;
            i++;
            continue;
        }
        due[n++] = *d;
        if (++d->tries < (int)(sizeof(dirtyAgain) / sizeof(dirtyAgain[0]))) {
            d->due = now + dirtyAgain[d->tries];
            if ((double)dirtyAgain[d->tries] / 1e9 < wait)
                wait = (double)dirtyAgain[d->tries] / 1e9;
            i++;
        } else {
            *d = dirtyList[--dirtyCount];
        }
    }
    epicsMutexUnlock(askLock);
    for (unsigned i = 0; i < n; i++) {
        ebpfMonTarget *t = ebpfMonTargetById(due[i].iocId);
        long index = t && t->cat ? ebpfMonCatalogueFindAddr(t->cat, due[i].precord) : -1;
        uint32_t trapped;

        if (index < 0 || t->gone || !t->running)
            continue;
        trapped = t->trapped;
        ebpfMonMemFlush(t->mem);
        ebpfMonInstallLinks(t, index);
        ebpfMonMemFlush(t->mem);
        if (!trapped != !t->trapped)
            apply(t);
    }
    return wait;
}

static void targetThread(void *arg)
{
    ebpfMonFinder *finder = ebpfMonFinderNew(watchSelf);
    uint64_t lastBudget = 0, lastProbe = 0;

    (void)arg;
    while (finder && !stopping) {
        uint64_t now = nowNs();
        double wait = TICK_IDLE, due;
        int changed, budget = now - lastBudget > 1000000000u, probe = now - lastProbe > PROBE_NS;
        ebpfMonTarget *t, *next;
        ebpfMonFilter f;
        ebpfMonImage image;
        pid_t pid;

        epicsMutexMustLock(askLock);
        changed = filterChanged;
        filterChanged = 0;
        f = filter;
        epicsMutexUnlock(askLock);
        for (t = list; t; t = next) {
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
            if (changed) { /* the operator decided anew: so does the governor */
                t->ceiling = ebpfMonLevelTrace;
                t->noTrap = 0;
                t->over = t->retryAfter = 0;
            }
            if (changed || (budget && ebpfMonGovernBudget(t, f.budget, now))) {
                apply(t);
                ebpfMonBoardChanged(ebpfMonGroupIocs);
            }
        }
        if (budget)
            lastBudget = now;
        if (probe)
            lastProbe = now;
        due = serveDirty(now);
        if (due < wait)
            wait = due;
        due = ebpfMonFinderNext(finder, now, byPid, &pid, &image);
        while (pid) {
            adopt(pid, &image);
            due = ebpfMonFinderNext(finder, now, byPid, &pid, &image);
            wait = 0;
        }
        if (due < wait)
            wait = due;
        if (wait > 0)
            epicsEventWaitWithTimeout(wake, wait);
    }
    while (list)
        forget(list);
    ebpfMonFinderFree(finder);
    epicsEventMustTrigger(ended);
}

void ebpfMonTargetsStart(int self)
{
    watchSelf = self;
    listLock = epicsMutexMustCreate();
    askLock = epicsMutexMustCreate();
    wake = epicsEventMustCreate(epicsEventEmpty);
    ended = epicsEventMustCreate(epicsEventEmpty);
    filter = ebpfMonFilterDefault;
    ebpfMonFinderInit();
    epicsThreadMustCreate("ebpfMonTarget", epicsThreadPriorityLow,
                          epicsThreadGetStackSize(epicsThreadStackBig), targetThread, NULL);
}

void ebpfMonTargetsStop(void)
{
    if (!wake)
        return;
    stopping = 1;
    epicsEventMustTrigger(wake);
    epicsEventWaitWithTimeout(ended, 5.0);
}

unsigned ebpfMonTargetsTroubles(char *buf, size_t size)
{
    unsigned n = 0;

    buf[0] = 0;
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (!t->gone && t->note[0] && n++ == 0)
            epicsSnprintf(buf, size, "%s: %s", t->name, t->note);
    return n;
}

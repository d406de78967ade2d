/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <errlog.h>

#include "code/machine.h"
#include "host/foreign.h"
#include "host/procStat.h"
#include "host/procRead.h"
#include "model/published.h"
#include "probe/kernelTables.h"
#include "watch/followed.h"
#include "watch/targetDatabase.h"
#include "watch/targetLife.h"
#include "watch/target.h"
#include "watch/typeTrial.h"

#define TROUBLE_NS  5000000000ull  /* a database that cannot be read for this long is reported */
#define SETTLE_NS   2000000000ull  /* without interruptAccept: when iocInit is taken to be done */
#define CALLERS_NS  30000000000ull /* between two looks for modules that were loaded since, if it mapped more or less */
#define CALLERS_SAME_NS 600000000000ull /* … and if it has mapped as much as before */
#define CALLERS_TRIES 4    /* that failed in a row, because the host was busy perhaps: then they are not known any
                            * more */
#define STAMPS_AT_ONCE 512         /* records in one look at a clock: takes some 10 us */
#define NAMELESS_NS 10000000000ull /* between two looks for the symbols of a stripped program */
#define ODD_NS      10000000000ull /* between two looks at links that are like no known ones */
#define TICK_MIN_NS 20000000ull    /* between two looks whether iocInit is done: a fiftieth of the time since it was */
#define TICK_MAX_NS 500000000ull   /* found, within these limits */
#define TICK_OFF_NS 200000000ull   /* … the least at level off */
#define WAIT_OFF_NS 10000000000ull /* so long only the name is read at level off: who ends soon costs little */

/* Reads what only watching needs: its links, its code, its locks. Once; never for an IOC that is left at level off, of
 * which a host may have many. */
static void prepareTarget(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    if (t->followed->life.isPrepared || !t->running || t->gone || ebpfMonForeignIsAside(t->pid))
        return;
    t->followed->life.isPrepared = 1;
    if (t->slot == UINT32_MAX && t->cat->count)
        ebpfMonRecordTablesAdd(life->tables, t);
    t->followed->callers.pages = ebpfMonProcMappedPages(t->pid);
    ebpfMonIocFinderReadCallers(life->finder, t->pid, &t->followed->att.callers); /* its modules are loaded now */
    t->followed->callers.at = ebpfMonClockMonotonic();
    ebpfMonTargetLayoutsRead(t);
}

void ebpfMonTargetLifeApply(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    ebpfMonLevel level;
    ebpfMonFilter f;
    int reference;

    ebpfMonRequestsGetFilter(life->requests, &f);
    level = ebpfMonRequestsFindLevel(life->requests, t->name, &f, &reference);
    if (level > ebpfMonLevelOff) {
        prepareTarget(life, t);
        if (t->wantedLevel == ebpfMonLevelOff)
            t->followed->database.readAt = 0; /* records that were added meanwhile */
    }
    ebpfMonRecordTablesSetShown(life->tables, t, f.record);
    t->followed->timing.all = ebpfMonRequestsHasLevelRule(life->requests, t->name) ||
                             (t->shown && strcmp(f.record, "*") != 0);
    ebpfMonGovernorApplyLevel(life->governor, t, level, reference, &f);
}

/* By its name alone, before anything is known of its records. */
static ebpfMonLevel findWantedLevel(const ebpfMonTargetLife *life, const ebpfMonTarget *t)
{
    ebpfMonFilter f;
    int reference;

    ebpfMonRequestsGetFilter(life->requests, &f);
    return ebpfMonRequestsFindLevel(life->requests, t->name, &f, &reference);
}

/* The reason why an IOC is not watched, as long as there is no level for which the governor could give one. */
static void setTrouble(const ebpfMonTargetLife *life, ebpfMonTarget *t, const char *note)
{
    ebpfMonLevel wanted = findWantedLevel(life, t);

    ebpfMonTargetsLock(life->targets);
    t->wantedLevel = wanted;
    ebpfMonTargetsUnlock(life->targets);
    if (!ebpfMonTargetSetNote(life->targets, t, note, 0))
        return;
    life->changed(life->arg);
    if (t->wantedLevel > ebpfMonLevelOff && ebpfMonTargetIsCredible(life->targets, t))
        errlogSevPrintf(errlogMinor, "ebpfMon: IOC %s (pid %d): %s\n", t->name, (int)t->pid, note);
}

static void attachInit(ebpfMonTarget *t)
{
    int noReturn = !ebpfMonFeature.returnUnderSeccomp && ebpfMonProcSeccomp(t->pid) == 2;

    ebpfMonAttachInit(&t->followed->att, t->pid, &t->image, noReturn);
}

/* Its functions are not known, and what a level would be is not asked. Files with symbols can come later. */
static double followNameless(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    char note[EBPFMON_NOTE_SIZE];
    ebpfMonImage image;

    if (now >= t->followed->life.lookAt) {
        t->followed->life.lookAt = now + NAMELESS_NS;
        if (ebpfMonIocFinderReadAgain(life->finder, t->pid, &image) == 0 && !image.core->isNameless) {
            ebpfMonTargetsLock(life->targets);
            t->image = image;
            ebpfMonTargetsUnlock(life->targets);
            ebpfMonFollowedReadVersion(life->targets, t);
            attachInit(t);
            ebpfMonTargetSetNote(life->targets, t, "", 0);
            return 0;
        }
    }
    ebpfMonFollowedWriteNameless(t->image.core, ebpfMonMachineHost()->isRecognised, note);
    setTrouble(life, t, note);
    return (double)(t->followed->life.lookAt - now) / 1e9;
}

int ebpfMonTargetLifeAdopt(const ebpfMonTargetLife *life, pid_t pid, const ebpfMonImage *image)
{
    uid_t user = ebpfMonProcPayer(pid);
    ebpfMonTarget *t, *victim;

    if (ebpfMonTargetPlaceFind(life->targets, pid, user, &victim))
        return -1;
    if (victim && life->isNested)
        return -1; /* the round that is under way goes on with its list, and may be reading the victim */
    if (victim)
        ebpfMonTargetLifeForget(life, victim);
    t = ebpfMonFollowedNew();
    if (!t)
        return -1;
    t->pid = pid;
    t->uid = ebpfMonProcOwner(pid);
    t->user = user;
    t->start = ebpfMonProcStart(pid);
    t->putsSince = UINT64_MAX;
    t->image = *image;
    t->slot = t->closures.at = t->closures.oldAt = UINT32_MAX;
    t->followed->mem = ebpfMonMemNew(pid);
    t->foundAt = ebpfMonClockMonotonic();
    ebpfMonBudgetInit(&t->followed->budget);
    if (!t->followed->mem || !t->start) {
        ebpfMonMemFree(t->followed->mem);
        free(t);
        return 0;
    }
    ebpfMonMemSetPause(t->followed->mem, life->pause, life->follower);
    ebpfMonFollowedFindName(life->targets, t);
    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(life->targets); o; o = o->next) /* who asks by name must not get the
                                                                                    * old one */
        if (!o->gone && strcmp(o->name, t->name) == 0 && !ebpfMonProcLives(o->pid, o->start))
            ebpfMonTargetLifeEnd(life, o, t->foundAt, 1);
    ebpfMonFollowedReadVersion(life->targets, t);
    attachInit(t);
    t->wantedLevel = findWantedLevel(life, t);
    ebpfMonTargetsAdd(life->targets, t);
    ebpfMonKernelSetFound((uint32_t)pid, 1);
    if (t->wantedLevel > ebpfMonLevelOff)
        ebpfMonTargetsNoteChange(life->targets); /* packets are read before its first put is seen inside */
    return 0;
}

void ebpfMonTargetLifeForget(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    char note[8];

    ebpfMonAttachSet(&t->followed->att, 0, t->followed->att.way, note, sizeof(note));
    ebpfMonRecordTablesRemove(life->tables, t);
    ebpfMonTargetsRemove(life->targets, t);
    if (!ebpfMonTargetsFindByPid(life->targets, t->pid)) { /* its number may be in use again */
        ebpfMonKernelSetFound((uint32_t)t->pid, 0);
        ebpfMonKernelRemoveTarget((uint32_t)t->pid); /* one that loses its place still runs */
    }
    ebpfMonCatalogueRelease(t->cat);
    ebpfMonMemFree(t->followed->mem);
    free(t);
}

void ebpfMonTargetLifeEnd(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now, int isOver)
{
    char note[8];

    t->followed->life.endedAt = now;
    t->followed->life.isOver = isOver;
    ebpfMonTargetsLock(life->targets);
    t->gone = 1;
    ebpfMonTargetsUnlock(life->targets);
    life->changed(life->arg);
    ebpfMonRecordTablesRemoveIndex(life->tables, t);
    /* Its probes went with it, and what we have are handles; unless it runs another program now: that one's probes must
     * not come before these have gone, or each hit would be seen twice. */
    if (isOver)
        ebpfMonAttachForget(&t->followed->att);
    else
        ebpfMonAttachSet(&t->followed->att, 0, t->followed->att.way, note, sizeof(note));
    ebpfMonTargetsLock(life->targets);
    ebpfMonTargetSetProbes(t, 0);
    ebpfMonTargetsUnlock(life->targets);
    if (!ebpfMonTargetsFindByPid(life->targets, t->pid))
        ebpfMonKernelRemoveTarget((uint32_t)t->pid);
}

int ebpfMonTargetLifeHasStarted(const ebpfMonTarget *t, uint64_t now)
{
    int accept = 0;

    if (t->running)
        return 1;
    if (!t->image.interruptAccept)
        return now - t->foundAt > SETTLE_NS;
    if (ebpfMonMemReadNow(t->pid, t->image.interruptAccept, &accept, sizeof(accept)))
        return 0;
    return accept != 0;
}

/* Updates "silent" and the note. Nonzero: its memory does not answer. */
static int checkSilence(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    int silent = ebpfMonForeignIsAside(t->pid);

    if (silent == t->followed->life.silent)
        return silent;
    t->followed->life.silent = silent;
    if (t->followed->life.levelApplied)
        ebpfMonTargetLifeApply(life, t); /* it writes the note */
    else if (silent)
        setTrouble(life, t, EBPFMON_NOTE_SILENT);
    else
        ebpfMonTargetSetNote(life->targets, t, "", 0);
    life->changed(life->arg);
    return silent;
}

static void beginRunning(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    ebpfMonTargetsLock(life->targets);
    t->running = 1;
    ebpfMonTargetsUnlock(life->targets);
}

/* 0, or -1: it cannot be read, or not now. */
static int lookAtDatabase(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now, char why[EBPFMON_NOTE_SIZE])
{
    long most = life->isNested ? EBPFMON_DATABASE_QUICK : 0;

    return ebpfMonTargetDatabaseLook(life->targets, life->tables, t, most, now, why);
}

double ebpfMonTargetLifeFollowStart(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    uint64_t age = now - t->foundAt, tick = age / 50;
    char why[EBPFMON_NOTE_SIZE];
    int running, isOff;

    if (t->image.core->isNameless)
        return followNameless(life, t, now);
    if (now < t->followed->life.lookAt)
        return (double)(t->followed->life.lookAt - now) / 1e9;
    tick = tick < TICK_MIN_NS ? TICK_MIN_NS : tick > TICK_MAX_NS ? TICK_MAX_NS : tick;
    t->followed->life.lookAt = now + tick;
    isOff = t->wantedLevel == ebpfMonLevelOff && findWantedLevel(life, t) == ebpfMonLevelOff;
    running = (!isOff || age >= WAIT_OFF_NS) && ebpfMonTargetLifeHasStarted(t, now);
    if (checkSilence(life, t))
        return (double)tick / 1e9;
    if (!running && isOff) { /* until it runs, there is nothing to know of it */
        tick = tick < TICK_OFF_NS ? TICK_OFF_NS : tick;
        t->followed->life.lookAt = now + tick;
        return (double)tick / 1e9;
    }
    if (running && !t->followed->life.initDone) {
        /* once, whenever it was read last, and however many records it had: it may have met a record half made */
        t->followed->life.initDone = 1;
        t->followed->database.readAt = now;
        t->followed->database.nodes = 0;
    }
    if (now >= t->followed->database.readAt && lookAtDatabase(life, t, now, why) && why[0] && running &&
        age > TROUBLE_NS)
        setTrouble(life, t, why);
    if (!t->cat || t->followed->database.isShort)
        return (double)tick / 1e9;
    if (running)
        beginRunning(life, t);
    if (!t->followed->life.levelApplied || running) {
        t->followed->life.levelApplied = 1;
        ebpfMonTargetLifeApply(life, t);
        life->changed(life->arg);
    }
    return running ? HUGE_VAL : (double)tick / 1e9;
}

/* A module that was loaded since may process records at calls that are not probed. What could not be read now was
 * mostly not changed: to take away all probes for that would cost the IOC its counts. */
static void findCallers(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    ebpfMonImageCallers *found;
    uint64_t pages;
    char note[8];
    int failed;

    if (!t->followed->life.isPrepared || now - t->followed->callers.at < CALLERS_NS)
        return;
    pages = ebpfMonProcMappedPages(t->pid); /* before the look */
    if ((pages == t->followed->callers.pages && now - t->followed->callers.at < CALLERS_SAME_NS) ||
        !(found = malloc(sizeof(*found))))
        return;
    t->followed->callers.at = now;
    t->followed->callers.pages = pages;
    failed = ebpfMonIocFinderReadCallers(life->finder, t->pid, found);
    t->followed->callers.missed = failed ? t->followed->callers.missed + 1 : 0;
    if (failed)
        t->followed->callers.pages = 0;
    if ((!failed || t->followed->callers.missed >= CALLERS_TRIES) &&
        !ebpfMonImageCallersAreSame(found, &t->followed->att.callers)) {
        ebpfMonAttachSet(&t->followed->att, 0, t->followed->att.way, note, sizeof(note));
        if (t->followed->sweep.number) { /* threads that leave a group now are not seen: begin anew */
            ebpfMonRecordTablesEndSweeps(life->tables, t);
            t->followed->sweep.tryAt = 0;
        }
        t->followed->att.callers = *found;
        ebpfMonRecordTablesMarkMissed(life->tables, t);
        ebpfMonTargetLifeApply(life, t);
    }
    free(found);
}

/* What has an unknown layout keeps it; but a link that was read while it changed, or a lock that could not be read, is
 * right at the next look. */
static void lookAtOdd(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    if ((!t->followed->odd.links && !t->followed->odd.locks) || now < t->followed->odd.at || !t->running)
        return;
    t->followed->odd.at = now + ODD_NS;
    if (t->followed->odd.links)
        ebpfMonTargetLifeReadAllLinks(life, t);
    if (!t->followed->odd.locks)
        return;
    ebpfMonTargetLayoutsRead(t);
    if (!t->followed->odd.locks)
        ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeFindRecords(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    char why[EBPFMON_NOTE_SIZE];

    if (checkSilence(life, t) || now < t->followed->database.readAt)
        return;
    findCallers(life, t, now);
    lookAtOdd(life, t, now);
    if (ebpfMonTargetLayoutsLookAtServer(t))
        ebpfMonTargetLifeApply(life, t);
    if (lookAtDatabase(life, t, now, why) == 0 && t->followed->life.isPrepared && t->slot == UINT32_MAX) {
        ebpfMonRecordTablesAdd(life->tables, t);
        ebpfMonTargetLifeApply(life, t); /* without room for its records: puts only */
    }
}

void ebpfMonTargetLifeReadLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t precord)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    uint32_t trapped = t->followed->trapped, odd = t->followed->odd.links;

    if (index < 0 || t->gone || !t->running)
        return;
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(life->tables, t, (uint32_t)index);
    ebpfMonMemFlush(t->followed->mem);
    if (!odd && t->followed->odd.links)
        ebpfMonRecordTablesMarkMissed(life->tables, t);
    if (!trapped != !t->followed->trapped || !odd != !t->followed->odd.links || t->followed->sweep.lost)
        ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeFollowSweeps(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    if (ebpfMonRecordTablesFollowSweeps(life->tables, t) || ebpfMonGovernorTriesSweeps(t, now))
        ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeTryTypes(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    int trapOn = !!(t->followed->att.on & EBPFMON_BIT(ebpfMonProgCompleted));
    uint32_t trapped = t->followed->trapped;
    ebpfMonTrialResult result;

    if (!t->followed->trial || t->level < ebpfMonLevelCounts)
        return;
    ebpfMonRecordTablesFollowSleep(life->tables, t, trapOn, now);
    result = ebpfMonTypeTrialLook(t->followed->trial, t, trapOn, now);
    if (result == ebpfMonTrialLinks)
        ebpfMonTargetLifeReadAllLinks(life, t);
    ebpfMonRecordTablesReleaseTrap(life->tables, t);
    if (result == ebpfMonTrialProbes || !trapped != !t->followed->trapped)
        ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeFindBreakpoints(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    long lockSets = 0;

    if (t->image.breakpoints && !t->followed->life.hadBreakpoints &&
        ebpfMonMemReadNow(t->pid, t->image.breakpoints, &lockSets, sizeof(lockSets)) == 0 && lockSets) {
        t->followed->life.hadBreakpoints = 1;
        ebpfMonRecordTablesMarkMissed(life->tables, t);
    }
}

/* Its device support has set TSE, which no put shows. */
static int hasSetTse(const ebpfMonTarget *t, const ebpfMonRecord *rec)
{
    int16_t tse = 0;

    return rec->flags & EBPFMON_REC_SETS_TSE &&
           ebpfMonMemReadNow(t->pid, rec->addr + t->cat->common.tse, &tse, sizeof(tse)) == 0 && tse;
}

/*
 * Nonzero: a record has a time stamp that is later than now. Then the clock was set back since, perhaps before the
 * monitor began to count, and the next processing of this record has an earlier stamp; or the IOC repeats its last time
 * until its clock has caught up (epicsGeneralTime.c): time stamps do not show who processed. A clock that only runs
 * ahead looks the same.
 */
static int isClockAhead(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    uint32_t begin = t->followed->clock.next < t->cat->count ? t->followed->clock.next : 0;
    uint32_t end = t->cat->count - begin > STAMPS_AT_ONCE ? begin + STAMPS_AT_ONCE : t->cat->count;

    t->followed->clock.next = end;
    for (uint32_t i = begin; i < end; i++) { /* with TSE the device may say what it likes */
        if (hasSetTse(t, &t->cat->rec[i]))
            ebpfMonTargetLifeReadLinks(life, t, t->cat->rec[i].addr);
        if (t->recState[i].seen && !(t->cat->rec[i].flags & EBPFMON_REC_TSE) &&
            ebpfMonClockIsAhead(t->recState[i].time))
            return 1;
    }
    return 0;
}

void ebpfMonTargetLifeNoteClock(ebpfMonTarget *t, ebpfMonClockStep step, uint64_t since, uint64_t now)
{
    if (step == ebpfMonClockWentBack) {
        t->followed->clock.wentBack = 1;
        return;
    }
    if (!t->followed->clock.setSince || since < t->followed->clock.setSince)
        t->followed->clock.setSince = since;
    t->followed->clock.setAt = now;
}

/* The clock was set back by less than a second, more than a second ago. So each record that could lose a processing by
 * this step has processed since, and is marked; from now on counts are exact. */
static void markSinceStep(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    uint64_t since = t->followed->clock.setSince;
    uint32_t marked = t->followed->records.counted ? ebpfMonRecordTablesMarkSince(life->tables, t, since) : 0;

    if (marked)
        errlogPrintf("ebpfMon: the clock of the host was set back a little: %u counts of %s may be too low\n", marked,
                     t->name);
    t->followed->clock.setSince = 0;
}

void ebpfMonTargetLifeLookAtClock(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    if (t->slot == UINT32_MAX)
        return;
    if (t->followed->clock.setSince && !t->followed->clock.wentBack && !t->followed->life.silent &&
        now - t->followed->clock.setAt > EBPFMON_SECOND_NS)
        markSinceStep(life, t);
    if (!t->followed->clock.isAhead && t->level >= ebpfMonLevelCounts && isClockAhead(life, t))
        t->followed->clock.isAhead = t->followed->clock.wentBack = 1;
    if (!t->followed->clock.wentBack)
        return;
    errlogPrintf("ebpfMon: the clock of %s, or of its host, was set back, or runs ahead: its counts may be too low\n",
                 t->name);
    ebpfMonRecordTablesMarkMissed(life->tables, t);
    t->followed->clock.wentBack = 0;
}

void ebpfMonTargetLifeReadAllLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonRecordTablesUpdateLinks(life->tables, t, EBPFMON_ALL_RECORDS);
    if (t->followed->odd.links)
        ebpfMonRecordTablesMarkMissed(life->tables, t);
    ebpfMonMemFlush(t->followed->mem);
    ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeDetachAll(const ebpfMonTargetLife *life, double seconds)
{
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(life->targets); t; t = t->next) {
        ebpfMonKernelRemoveTarget((uint32_t)t->pid);
        ebpfMonAttachForget(&t->followed->att);
    }
    ebpfMonCloserFinish(seconds);
}

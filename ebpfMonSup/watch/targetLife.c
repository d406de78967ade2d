/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errlog.h>

#include "common/clock.h"
#include "model/iocValues.h"
#include "probe/kernelTables.h"
#include "watch/targetLife.h"
#include "watch/typeTrial.h"

#define TROUBLE_NS  5000000000ull  /* a database that cannot be read for this long is reported */
#define SETTLE_NS   2000000000ull  /* without interruptAccept: when iocInit is taken to be done */
#define LOOK_NS     500000000ull   /* between two looks for new records while it starts */

void ebpfMonTargetLifeApply(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    ebpfMonLevel level;
    ebpfMonFilter f;
    int reference;

    ebpfMonRequestsGetFilter(life->requests, &f);
    level = ebpfMonRequestsFindLevel(life->requests, t->name, &f, &reference);
    ebpfMonRecordTablesSetShown(life->tables, t, f.record);
    ebpfMonGovernorApplyLevel(life->governor, t, level, reference, &f);
}

static void setTrouble(const ebpfMonTargetLife *life, ebpfMonTarget *t, const char *note)
{
    if (!ebpfMonTargetSetNote(life->targets, t, note, 0))
        return;
    life->changed(life->arg);
    errlogSevPrintf(errlogMinor, "ebpfMon: IOC %s (pid %d): %s\n", t->name, (int)t->pid, note);
}

/* "EPICS R7.0.8.1" or "EPICS 7.0.10.1-DEV", as a string or behind a pointer, as releases differ. */
static void readVersion(ebpfMonTarget *t)
{
    char text[64] = "", *r;
    uint64_t at = t->image.epicsReleaseVersion;

    if (at && t->image.releaseIsPointer)
        at = ebpfMonMemPtr(t->follower.mem, at);
    if (at)
        ebpfMonMemStr(t->follower.mem, at, text, sizeof(text));
    r = strchr(text, ' ');
    r = r ? r + 1 : text;
    r += *r == 'R';
    ebpfMonTextCopyBytes(t->version, sizeof(t->version), r, strcspn(r, " \n"));
}

/* Of two IOCs with one name the second has its pid in the name. */
static void findName(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    if (ebpfMonProcIocName(t->pid, t->name, sizeof(t->name)))
        snprintf(t->name, sizeof(t->name), "pid%d", (int)t->pid);
    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(life->targets); o; o = o->next)
        if (!o->gone && strcmp(o->name, t->name) == 0) {
            char base[EBPFMON_IOCNAME_SIZE];

            snprintf(base, sizeof(base), "%s", t->name);
            snprintf(t->name, sizeof(t->name), "%.48s#%d", base, (int)t->pid);
            break;
        }
}

void ebpfMonTargetLifeAdopt(const ebpfMonTargetLife *life, pid_t pid, const ebpfMonImage *image)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));
    unsigned count = 0;

    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(life->targets); o; o = o->next)
        count++;
    if (!t || count >= EBPFMON_IOCS_MAX) {
        free(t);
        return;
    }
    t->pid = pid;
    t->start = ebpfMonProcStart(pid);
    t->image = *image;
    t->slot = t->closureAt = t->oldClosureAt = UINT32_MAX;
    t->follower.mem = ebpfMonMemNew(pid);
    t->follower.foundAt = ebpfMonClockMonotonic();
    ebpfMonBudgetInit(&t->follower.budget);
    if (!t->follower.mem || !t->start) {
        ebpfMonMemFree(t->follower.mem);
        free(t);
        return;
    }
    findName(life, t);
    readVersion(t);
    ebpfMonAttachInit(&t->follower.att, pid, &t->image, ebpfMonProcSeccomp(pid) == 2);
    ebpfMonTargetsAdd(life->targets, t);
}

void ebpfMonTargetLifeForget(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    char note[8];

    ebpfMonAttachSet(&t->follower.att, 0, note, sizeof(note));
    ebpfMonRecordTablesRemove(life->tables, t);
    ebpfMonTargetsRemove(life->targets, t);
    ebpfMonCatalogueRelease(t->cat);
    ebpfMonMemFree(t->follower.mem);
    free(t);
}

void ebpfMonTargetLifeEnd(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    char note[8];

    t->follower.endedAt = now;
    ebpfMonTargetsLock(life->targets);
    t->gone = 1;
    ebpfMonTargetsUnlock(life->targets);
    life->changed(life->arg); /* now, for to detach the probes may take a second */
    ebpfMonRecordTablesRemoveIndex(life->tables, t);
    ebpfMonAttachSet(&t->follower.att, 0, note, sizeof(note)); /* its probes went with it; ours are only handles */
    ebpfMonTargetsLock(life->targets);
    t->probesOn = 0;
    ebpfMonTargetsUnlock(life->targets);
    if (!ebpfMonTargetsFindByPid(life->targets, t->pid))
        ebpfMonKernelRemoveTarget((uint32_t)t->pid);
}

static void readCatalogue(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    char why[EBPFMON_NOTE_SIZE];
    ebpfMonCatalogue *cat, *old = t->cat;

    ebpfMonMemFlush(t->follower.mem);
    cat = ebpfMonCatalogueRead(t->follower.mem, t->image.pdbbase, why, sizeof(why));
    if (!cat) {
        if (why[0] && now - t->follower.foundAt > TROUBLE_NS)
            setTrouble(life, t, why);
        return;
    }
    if (old)
        ebpfMonRecordTablesRemove(life->tables, t);
    ebpfMonTargetsLock(life->targets);
    t->cat = cat;
    ebpfMonTargetsUnlock(life->targets);
    ebpfMonRecordTablesAddArrays(life->tables, t);
    t->follower.nodes = ebpfMonCatalogueCountNodes(t->follower.mem, t->image.pdbbase);
    ebpfMonCatalogueRelease(old);
}

static int isRunning(const ebpfMonTarget *t, uint64_t now)
{
    int accept = 0;

    if (!t->image.interruptAccept)
        return now - t->follower.foundAt > SETTLE_NS;
    if (ebpfMonMemReadNow(t->pid, t->image.interruptAccept, &accept, sizeof(accept)))
        return 0;
    return accept != 0;
}

int ebpfMonTargetLifeFollowStart(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    int running = isRunning(t, now);

    if (!t->cat || running || now - t->follower.lookedAt > LOOK_NS) {
        long nodes;

        t->follower.lookedAt = now;
        ebpfMonMemFlush(t->follower.mem);
        nodes = ebpfMonCatalogueCountNodes(t->follower.mem, t->image.pdbbase);
        if (!t->cat || nodes != t->follower.nodes)
            readCatalogue(life, t, now);
    }
    if (!t->cat)
        return 1;
    if (running) {
        ebpfMonTargetsLock(life->targets);
        t->running = 1;
        ebpfMonTargetsUnlock(life->targets);
        if (t->slot == UINT32_MAX && t->cat->count)
            ebpfMonRecordTablesAdd(life->tables, t);
        ebpfMonMemFlush(t->follower.mem);
    }
    if (!t->follower.levelApplied || running) {
        t->follower.levelApplied = 1;
        ebpfMonTargetLifeApply(life, t);
        life->changed(life->arg);
    }
    return !running;
}

void ebpfMonTargetLifeFindRecords(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    long nodes;

    ebpfMonMemFlush(t->follower.mem);
    nodes = ebpfMonCatalogueCountNodes(t->follower.mem, t->image.pdbbase);
    if (nodes > 0 && nodes != t->follower.nodes) {
        readCatalogue(life, t, now);
        if (t->cat && t->slot == UINT32_MAX) {
            ebpfMonRecordTablesAdd(life->tables, t);
            ebpfMonTargetLifeApply(life, t); /* without room for its records: puts only */
        }
    }
    ebpfMonMemFlush(t->follower.mem);
}

void ebpfMonTargetLifeReadLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t precord)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    uint32_t trapped = t->follower.trapped;

    if (index < 0 || t->gone || !t->running)
        return;
    ebpfMonMemFlush(t->follower.mem);
    ebpfMonRecordTablesUpdateLinks(life->tables, t, (uint32_t)index);
    ebpfMonMemFlush(t->follower.mem);
    if (!trapped != !t->follower.trapped)
        ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeTryTypes(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now)
{
    int trapOn = !!(t->follower.att.on & EBPFMON_BIT(ebpfMonProgCompleted));
    uint32_t trapped = t->follower.trapped;
    ebpfMonTrialResult result;

    if (!t->follower.trial || t->level < ebpfMonLevelCounts)
        return;
    result = ebpfMonTypeTrialLook(t->follower.trial, t, trapOn, now);
    if (result == ebpfMonTrialLinks)
        ebpfMonTargetLifeReadAllLinks(life, t);
    ebpfMonRecordTablesReleaseTrap(life->tables, t);
    if (result == ebpfMonTrialProbes || !trapped != !t->follower.trapped)
        ebpfMonTargetLifeApply(life, t);
}

void ebpfMonTargetLifeFindBreakpoints(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    long lockSets = 0;

    if (t->image.breakpoints && !t->follower.hadBreakpoints &&
        ebpfMonMemReadNow(t->pid, t->image.breakpoints, &lockSets, sizeof(lockSets)) == 0 && lockSets) {
        t->follower.hadBreakpoints = 1;
        ebpfMonRecordTablesMarkMissed(life->tables, t);
    }
}

void ebpfMonTargetLifeReadAllLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t)
{
    ebpfMonMemFlush(t->follower.mem);
    ebpfMonRecordTablesUpdateAllLinks(life->tables, t);
    ebpfMonMemFlush(t->follower.mem);
    ebpfMonTargetLifeApply(life, t);
}

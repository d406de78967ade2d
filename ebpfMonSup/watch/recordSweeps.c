/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of recordTables.h that is about passes of scan lists. */
#include <stdlib.h>

#include "common/clock.h"
#include "watch/recordTables.h"
#include "watch/recordTablesOwn.h"
#include "watch/sweeps.h"

#define UNSETTLED_NS 20000000000ull /* a pass that takes longer is not waited for */

/* Marks records that can process twice between two sweeps, and all records that they reach. */
static void markShared(ebpfMonRecordTables *r, ebpfMonTarget *t, const ebpfMonClosures *c, const ebpfMonSweepPlan *plan)
{
    for (uint32_t i = 0; i < t->cat->count; i++)
        if (plan->isShared[i])
            ebpfMonRecordTablesMarkReached(r, t, c, i);
}

/* Passes cannot be watched any more, and it is not known which records are the reason. */
static void loseSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    t->follower.sweep.lost = 1;
    ebpfMonSweepsRemove(&r->kernel, t);
    ebpfMonRecordTablesMarkMissed(r, t);
}

int ebpfMonRecordTablesInstall(ebpfMonRecordTables *r, ebpfMonTarget *t, ebpfMonClosures *c)
{
    ebpfMonSweepPlan *plan;

    if (!t->follower.sweep.number)
        return ebpfMonClosureTableInstall(r->closures, t, c);
    plan = ebpfMonSweepPlanMake(t, c, t->follower.sweep.serial);
    if (plan && !plan->fits) { /* it stays so until the governor has the chains watched */
        t->follower.sweep.lost = 1;
        markShared(r, t, c, plan);
    }
    if (ebpfMonClosureTableInstall(r->closures, t, c)) {
        ebpfMonSweepPlanFree(plan);
        return -1;
    }
    if (!plan || ebpfMonSweepsWrite(&r->kernel, t, plan))
        loseSweeps(r, t);
    return 0;
}

int ebpfMonRecordTablesBeginSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonClosures *c = ebpfMonClosureTableMakeClosures(t->cat);
    ebpfMonSweepPlan *plan;
    int rc = -1;

    ebpfMonMemFlush(t->follower.mem);
    plan = c ? ebpfMonSweepPlanMake(t, c, t->follower.sweep.serial) : NULL;
    if (!plan || !plan->fits || !plan->pays || r->kernel.beginMoved((uint32_t)t->pid)) {
        ebpfMonSweepPlanFree(plan);
        ebpfMonClosuresFree(c);
        return -1;
    }
    t->follower.sweep.number = ++r->sweepNumber ? r->sweepNumber : ++r->sweepNumber;
    t->follower.sweep.moved = t->follower.sweep.movedSeen = t->follower.sweep.missed = t->follower.sweep.unsure = 0;
    t->follower.sweep.slowBefore = t->follower.sweep.slowItself = 0;
    t->follower.sweep.since = ebpfMonClockMonotonic();
    t->follower.sweep.lost = t->follower.sweep.ends = t->follower.sweep.seesPuts = t->follower.sweep.hasQuick = 0;
    ebpfMonSweepsReset(t);
    ebpfMonClosureTableBeginChange(r->closures, t);
    if (ebpfMonClosureTableInstall(r->closures, t, c))
        ebpfMonSweepPlanFree(plan);
    else
        rc = ebpfMonSweepsWrite(&r->kernel, t, plan);
    ebpfMonClosureTableEndChange(r->closures, t);
    ebpfMonClosuresFree(c);
    ebpfMonMemFlush(t->follower.mem);
    if (rc)
        ebpfMonRecordTablesEndSweeps(r, t);
    return rc;
}

int ebpfMonRecordTablesSettleSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t, uint64_t now)
{
    uint8_t *unsettled;

    if (!t->follower.sweep.ends) {
        t->follower.sweep.ends = 1;
        t->follower.sweep.endsAt = now;
    }
    if (ebpfMonSweepsAreSettled(t))
        return 1;
    if (now - t->follower.sweep.endsAt < UNSETTLED_NS)
        return 0;
    unsettled = ebpfMonSweepsFindUnsettled(t);
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++)
        if (!unsettled || unsettled[i])
            t->how[i] |= EBPFMON_MISSED;
    ebpfMonTargetsUnlock(r->targets);
    free(unsettled);
    return 1;
}

/* Marks records of which two passes may have processed one at a time. */
static void markUnsure(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonClosures *c = ebpfMonClosureTableMakeClosures(t->cat);

    for (uint32_t i = 0; c && i < t->cat->count; i++)
        if (t->recState[i].unsure) {
            t->recState[i].unsure = 0;
            ebpfMonRecordTablesMarkReached(r, t, c, i);
        }
    if (!c)
        ebpfMonRecordTablesMarkMissed(r, t);
    ebpfMonClosuresFree(c);
}

/* Marks what sweeps may have missed since the last look. */
static void takeMissed(ebpfMonRecordTables *r, ebpfMonTarget *t, const struct ebpfMonMoved *moved)
{
    if (moved->missed != t->follower.sweep.missed)
        ebpfMonRecordTablesMarkMissed(r, t);
    if (moved->unsure != t->follower.sweep.unsure)
        markUnsure(r, t);
    t->follower.sweep.missed = moved->missed;
    t->follower.sweep.unsure = moved->unsure;
}

/* Back to the stretches of chains. */
void ebpfMonRecordTablesEndSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    struct ebpfMonMoved moved;
    ebpfMonClosures *c;

    ebpfMonSweepsRemove(&r->kernel, t);
    t->follower.sweep.number = 0;
    t->follower.sweep.ends = t->follower.sweep.lost = t->follower.sweep.hasQuick = 0;
    if (t->slot == UINT32_MAX)
        return;
    if (!r->kernel.getMoved((uint32_t)t->pid, &moved))
        takeMissed(r, t, &moved);
    c = ebpfMonClosureTableMakeClosures(t->cat);
    if (!c)
        return; /* without stretches all goes on */
    ebpfMonClosureTableBeginChange(r->closures, t);
    ebpfMonClosureTableInstall(r->closures, t, c);
    ebpfMonClosureTableEndChange(r->closures, t);
    ebpfMonClosuresFree(c);
}

void ebpfMonRecordTablesRenewSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonClosures *c;

    ebpfMonMemFlush(t->follower.mem);
    c = ebpfMonClosureTableMakeClosures(t->cat);
    ebpfMonClosureTableBeginChange(r->closures, t);
    if (!c || ebpfMonRecordTablesInstall(r, t, c))
        loseSweeps(r, t);
    ebpfMonClosureTableEndChange(r->closures, t);
    ebpfMonClosuresFree(c);
    ebpfMonMemFlush(t->follower.mem);
}

/* Nonzero: no put that was seen up to now can move a record any more. "before": as it was before. */
static int areDone(const ebpfMonRecordTables *r, const ebpfMonTarget *t, const struct ebpfMonMoved *before)
{
    struct ebpfMonMoved now;

    return !r->kernel.getMoved((uint32_t)t->pid, &now) && now.putsBegun == before->putsDone;
}

/* A put is seen before it is done, and may take as long as device support likes (get_ioint_info). So the lists are read
 * when no such put is under way. A record to which there was another put since the last look is among those of the next
 * look. That begins only when the lists were read for the last one: so the list of the kernel part has no record more
 * than twice, however long some put is under way. */
int ebpfMonRecordTablesFollowSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    struct ebpfMonMoved moved;
    int renewed = 0;

    if (!t->follower.sweep.number || r->kernel.getMoved((uint32_t)t->pid, &moved))
        return 0;
    takeMissed(r, t, &moved);
    t->follower.sweep.slow += moved.slow - t->follower.sweep.slowBefore;
    t->follower.sweep.slowBefore = moved.slow;
    t->follower.sweep.slowItself = moved.slowItself;
    if (moved.stuck && !t->follower.sweep.broken) {
        t->follower.sweep.broken = 1;
        loseSweeps(r, t);
    }
    if (t->follower.sweep.movedSeen != t->follower.sweep.moved && areDone(r, t, &moved)) {
        ebpfMonRecordTablesRenewSweeps(r, t);
        t->follower.sweep.moved = t->follower.sweep.movedSeen;
        renewed = 1;
    }
    if (t->follower.sweep.movedSeen == t->follower.sweep.moved && moved.added != t->follower.sweep.movedSeen) {
        for (uint32_t i = 0; i < t->cat->count; i++)
            t->recState[i].moved = 0;
        t->follower.sweep.movedSeen = moved.added;
    }
    return renewed || t->follower.sweep.lost || t->follower.sweep.ends;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of recordTables.h that is about passes of scan lists. */
#include <stdlib.h>

#include "common/clock.h"
#include "watch/followed.h"
#include "watch/recordTables.h"
#include "watch/recordTablesOwn.h"
#include "watch/sweeps.h"

#define UNSETTLED_NS 20000000000ull /* a pass that takes longer is not waited for */
#define LOOKS_REALTIME 40 /* more looks at records hold a real-time thread, and all who wait for its lock set, for too
                           * long: a chain of 100 took 50 instead of 20 µs. Chains have stretches */

/* Marks records that have moved to another scan list, and all records that they reach: until now no sweep has looked at
 * them after passes of that list. */
static void markMoved(ebpfMonRecordTables *r, ebpfMonTarget *t, const ebpfMonSweepPlan *plan)
{
    const ebpfMonSweepPlan *before = t->followed->sweep.plan;
    uint8_t *moved = calloc((size_t)t->cat->count + 1, 1);

    for (uint32_t i = 0; moved && before && i < before->records && i < plan->records; i++)
        moved[i] = before->listOf[i] != plan->listOf[i];
    ebpfMonRecordTablesMarkReached(r, t, moved);
    free(moved);
}

/* Passes cannot be watched any more, and it is not known which records are the reason. */
static void loseSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    t->followed->sweep.lost = 1;
    ebpfMonSweepsRemove(&r->kernel, t);
    ebpfMonRecordTablesMarkMissed(r, t);
}

int ebpfMonRecordTablesInstall(ebpfMonRecordTables *r, ebpfMonTarget *t, ebpfMonClosures *c)
{
    ebpfMonSweepPlan *plan;

    if (!t->followed->sweep.number)
        return ebpfMonClosureTableInstall(r->closures, t, c);
    plan = ebpfMonSweepPlanMake(t, c, t->followed->sweep.serial);
    if (plan)
        markMoved(r, t, plan);
    if (plan && !plan->fits) { /* it stays so until the governor has the chains watched */
        t->followed->sweep.lost = 1;
        ebpfMonRecordTablesMarkReached(r, t, plan->isShared); /* they can process twice between two sweeps */
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

    ebpfMonMemFlush(t->followed->mem);
    plan = c ? ebpfMonSweepPlanMake(t, c, t->followed->sweep.serial) : NULL;
    if (!plan || !plan->fits || !plan->pays || (r->kernel.isRealTime && plan->longest > LOOKS_REALTIME) ||
        r->kernel.beginPassNotes((uint32_t)t->pid)) {
        ebpfMonSweepPlanFree(plan);
        ebpfMonClosuresFree(c);
        return -1;
    }
    t->followed->sweep.number = ++r->sweepNumber ? r->sweepNumber : ++r->sweepNumber;
    t->followed->sweep.puts = t->followed->sweep.missed = t->followed->sweep.unsure = 0;
    t->followed->sweep.slowBefore = t->followed->sweep.slowItself = 0;
    t->followed->sweep.since = ebpfMonClockMonotonic();
    t->followed->sweep.lost = t->followed->sweep.ends = t->followed->sweep.isScanPutSeen = 0;
    ebpfMonSweepsReset(t);
    ebpfMonClosureTableBeginChange(r->closures, t);
    if (ebpfMonClosureTableInstall(r->closures, t, c))
        ebpfMonSweepPlanFree(plan);
    else
        rc = ebpfMonSweepsWrite(&r->kernel, t, plan);
    ebpfMonClosureTableEndChange(r->closures, t);
    ebpfMonClosuresFree(c);
    ebpfMonMemFlush(t->followed->mem);
    if (rc)
        ebpfMonRecordTablesEndSweeps(r, t);
    return rc;
}

int ebpfMonRecordTablesSettleSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t, uint64_t now)
{
    uint8_t *unsettled;

    if (!t->followed->sweep.ends) {
        t->followed->sweep.ends = 1;
        t->followed->sweep.endsAt = now;
    }
    if (ebpfMonSweepsAreSettled(t))
        return 1;
    if (now - t->followed->sweep.endsAt < UNSETTLED_NS)
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
    uint8_t *unsure = calloc((size_t)t->cat->count + 1, 1);

    for (uint32_t i = 0; unsure && i < t->cat->count; i++)
        if (t->recState[i].unsure) {
            t->recState[i].unsure = 0;
            unsure[i] = 1;
        }
    ebpfMonRecordTablesMarkReached(r, t, unsure);
    free(unsure);
}

/* Marks what sweeps may have missed since the last look. */
static void takeMissed(ebpfMonRecordTables *r, ebpfMonTarget *t, const struct ebpfMonPassNotes *notes)
{
    if (notes->missed != t->followed->sweep.missed)
        ebpfMonRecordTablesMarkMissed(r, t);
    if (notes->unsure != t->followed->sweep.unsure)
        markUnsure(r, t);
    t->followed->sweep.missed = notes->missed;
    t->followed->sweep.unsure = notes->unsure;
}

/* Back to the stretches of chains. */
void ebpfMonRecordTablesEndSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    struct ebpfMonPassNotes notes;
    ebpfMonClosures *c;

    ebpfMonSweepsRemove(&r->kernel, t);
    t->followed->sweep.number = 0;
    t->followed->sweep.ends = t->followed->sweep.lost = 0;
    if (t->slot == UINT32_MAX)
        return;
    if (!r->kernel.getPassNotes((uint32_t)t->pid, &notes))
        takeMissed(r, t, &notes);
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

    ebpfMonMemFlush(t->followed->mem);
    c = ebpfMonClosureTableMakeClosures(t->cat);
    ebpfMonClosureTableBeginChange(r->closures, t);
    if (!c || ebpfMonRecordTablesInstall(r, t, c))
        loseSweeps(r, t);
    ebpfMonClosureTableEndChange(r->closures, t);
    ebpfMonClosuresFree(c);
    ebpfMonMemFlush(t->followed->mem);
}

/* A put is seen before it is done, and may take as long as device support likes (get_ioint_info). So the lists are read
 * when no such put is under way. If one begins meanwhile, the next look reads them once more. */
int ebpfMonRecordTablesFollowSweeps(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    struct ebpfMonPassNotes notes;
    int renewed = 0;

    if (!t->followed->sweep.number || r->kernel.getPassNotes((uint32_t)t->pid, &notes))
        return 0;
    takeMissed(r, t, &notes);
    t->followed->sweep.slow += notes.slow - t->followed->sweep.slowBefore;
    t->followed->sweep.slowBefore = notes.slow;
    t->followed->sweep.slowItself = notes.slowItself;
    if (notes.stuck && !t->followed->sweep.broken) {
        t->followed->sweep.broken = 1;
        loseSweeps(r, t);
    }
    if (notes.putsBegun != t->followed->sweep.puts && notes.putsBegun == notes.putsDone) {
        ebpfMonRecordTablesRenewSweeps(r, t);
        t->followed->sweep.puts = notes.putsBegun;
        renewed = 1;
    }
    return renewed || t->followed->sweep.lost || t->followed->sweep.ends;
}

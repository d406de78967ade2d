/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "watch/governor.h"
#include "watch/recordTable.h"
#include "ioc/baseOffsets.h"
#include "ioc/procStat.h"

#define OVER_SECONDS  10.0 /* this long above the budget before something is done */
#define RETRY_SECONDS 60.0 /* this long below, and it is tried again; doubles each time that failed */
#define RETRY_MAX     3600.0
#define SMOOTH        0.2  /* of the last second in the published cost */

static void setConf(ebpfMonTarget *t, ebpfMonLevel level, const ebpfMonFilter *filter, int parallel)
{
    const ebpfMonBaseOffsets *o = ebpfMonBaseOffsetsOf(t->version);
    const ebpfMonCommon *c = &t->cat->common;
    struct ebpfMonTargetConf conf = {
        .asActive = t->image.asActive, .slowNs = (uint64_t)(filter->slowUs * 1000), .iocId = t->iocId,
        .sample = filter->sample, .level = (uint16_t)level,
        .time = c->time, .pact = c->pact, .ppn = c->ppn, .lset = c->lset, .disp = c->disp, .sevr = c->sevr,
        .stat = c->stat,
        .clAddr = o->clAddr, .clUser = o->clUser, .clHost = o->clHost, .clRecvBuf = o->clRecvBuf,
        .clRecvStk = o->clRecvStk, .clRecvCnt = o->clRecvCnt, .ciuClient = o->ciuClient, .ciuDbch = o->ciuDbch, .ciuAs = o->ciuAs,
        .asAccess = o->asAccess, .ppnChan = o->ppnChan, .ppnUsr = o->ppnUsr,
        .parallel = (uint16_t)parallel, .queuesSince = t->queuesSince,
    };

    if (ebpfMonKernelSetTarget((uint32_t)t->pid, &conf))
        snprintf(t->note, sizeof(t->note), "no room for one more IOC in the kernel's table");
}

/* The scheduler's tracepoints cost the whole host a little: only while somebody traces. */
static void watchSched(void)
{
    int on = 0;

    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next)
        on |= !t->gone && t->level == ebpfMonLevelTrace;
    ebpfMonKernelWatchScheduler(on);
}

void ebpfMonGovernorApplyLevel(ebpfMonTarget *t, const ebpfMonFilter *filter)
{
    ebpfMonLevel level = t->asked < t->ceiling ? t->asked : t->ceiling;
    uint32_t want, was = t->att.on;
    char note[sizeof(t->note)] = "";
    int remark, parallel;

    if (!t->cat || t->gone)
        level = ebpfMonLevelOff;
    if (t->slot == UINT32_MAX && level > ebpfMonLevelPuts)
        level = ebpfMonLevelPuts; /* iocInit is not done, or its records found no room */
    if (!ebpfMonFeature.loop && level > ebpfMonLevelPuts)
        level = ebpfMonLevelPuts;
    want = ebpfMonAttachLevel((int)level);
    /* callback.c, callbackInit: "cbLow-1" where callbackParallelThreads wants several, else "cbLow" */
    parallel = want & EBPFMON_BIT(ebpfMonProgPop) && ebpfMonProcHasThread(t->pid, "cb*-[0-9]*");
    if (parallel)
        want |= EBPFMON_BIT(ebpfMonProgPopReturn);
    if (level >= ebpfMonLevelCounts && t->trapped && !t->noTrap)
        want |= EBPFMON_BIT(ebpfMonProgCompleted);
    if (t->reference && level >= ebpfMonLevelCounts)
        want |= EBPFMON_BIT(ebpfMonProgProcess);
    /* Processed while nobody looked: not ours to count. */
    if ((want & EBPFMON_BIT(ebpfMonProgUnlock)) && !(was & EBPFMON_BIT(ebpfMonProgUnlock)) &&
        t->slot != UINT32_MAX) {
        const ebpfMonTables *tab = ebpfMonKernelTables();

        ebpfMonMemFlush(t->mem);
        for (uint32_t i = 0; i < t->cat->count; i++) {
            uint64_t time;
            uint8_t pact = 0;

            if (ebpfMonMemRead(t->mem, t->cat->rec[i].addr + t->cat->common.time, &time, sizeof(time)) == 0)
                tab->state[t->slot + i].time = time;
            tab->state[t->slot + i].pending = 0;
            ebpfMonMemRead(t->mem, t->cat->rec[i].addr + t->cat->common.pact, &pact, sizeof(pact));
            tab->state[t->slot + i].noted = pact ? EBPFMON_NOTED_BUSY : 0;
        }
        ebpfMonMemFlush(t->mem);
    }
    if (want & ~was & EBPFMON_BIT(ebpfMonProgCallback))
        t->queuesSince = ebpfMonClockMonotonic();
    if (level > ebpfMonLevelOff)
        setConf(t, level, filter, parallel);
    if ((want & EBPFMON_BIT(ebpfMonProgLock)) && !(was & EBPFMON_BIT(ebpfMonProgLock)))
        ebpfMonKernelRemoveThreads(t->pid); /* locks that were taken when we looked last are long released */
    ebpfMonAttachSet(&t->att, want, note, sizeof(note));
    if ((t->att.on & ~was) & (EBPFMON_BIT(ebpfMonProgPut) | EBPFMON_BIT(ebpfMonProgPutField))) {
        ebpfMonTargetsLock(ebpfMonTheTargets);
        t->putsSince = ebpfMonClockMonotonic();
        ebpfMonTargetsUnlock(ebpfMonTheTargets);
    }
    if (level == ebpfMonLevelOff && t->att.on == 0)
        ebpfMonKernelRemoveTarget((uint32_t)t->pid);
    if ((was ^ t->att.on) & EBPFMON_BIT(ebpfMonProgCompleted))
        ebpfMonRecordTableSetTrap(t, !!(t->att.on & EBPFMON_BIT(ebpfMonProgCompleted)));
    t->level = level;
    watchSched();
    if (t->ceiling < t->asked)
        snprintf(note, sizeof(note), "over its budget of %g %%: watched at level %s", filter->budget,
                 ebpfMonLevelName(t->ceiling));
    else if (t->noTrap && t->trapped)
        snprintf(note, sizeof(note), "over its budget of %g %%: %u records counted at least", filter->budget,
                 t->trapped);
    if (!ebpfMonFeature.loop && t->asked > ebpfMonLevelPuts)
        snprintf(note, sizeof(note), "puts only, nothing is counted: kernel %s has no bpf_loop, 5.17 or later does",
                 ebpfMonKernelRelease());
    remark = !note[0] && t->att.stepped && (t->slot != UINT32_MAX || level == ebpfMonLevelOff);
    if (remark)
        snprintf(note, sizeof(note), "some functions have no cheap place for a probe");
    ebpfMonTargetsLock(ebpfMonTheTargets);
    t->remark = remark;
    if (t->slot != UINT32_MAX || level == ebpfMonLevelOff || note[0])
        snprintf(t->note, sizeof(t->note), "%s", note); /* else it says why its records found no room */
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    if (was != t->att.on)
        ebpfMonTargetsNoteChange(ebpfMonTheTargets);
}

static double steppedPart(const ebpfMonAttached *att)
{
    /* The hot ones decide: lock, unlock, completed. */
    uint32_t hot = EBPFMON_BIT(ebpfMonProgLock) | EBPFMON_BIT(ebpfMonProgUnlock) |
                   EBPFMON_BIT(ebpfMonProgCompleted);
    int on = __builtin_popcount(att->on & hot), stepped = __builtin_popcount(att->stepped & hot);

    return on ? (double)stepped / on : 0;
}

int ebpfMonGovernorCheckBudget(ebpfMonTarget *t, double budget, uint64_t now)
{
    struct ebpfMonHits hits, delta;
    double seconds = (double)(now - t->costAt) / 1e9, cost;
    int change = 0;

    ebpfMonKernelGetHits((uint32_t)t->pid, &hits);
    for (int i = 0; i < EBPFMON_HIT_KINDS; i++)
        delta.n[i] = hits.n[i] >= t->hitsBefore.n[i] ? hits.n[i] - t->hitsBefore.n[i] : 0;
    t->hitsBefore = hits;
    if (t->costAt == 0 || seconds <= 0) {
        t->costAt = now;
        return 0;
    }
    t->costAt = now;
    cost = ebpfMonCostOf(&ebpfMonCost, &delta, steppedPart(&t->att)) / 1e7 / seconds;
    t->cost += SMOOTH * (cost - t->cost);
    if (budget <= 0) {
        if (t->ceiling != ebpfMonLevelTrace || t->noTrap) {
            t->ceiling = ebpfMonLevelTrace;
            t->noTrap = 0;
            change = 1;
        }
        t->over = 0;
        return change;
    }
    if (t->cost > budget)
        t->over += seconds;
    else
        t->over = 0;
    if (t->over >= OVER_SECONDS) {
        /* The trap first: it is the dearest. Never below puts: no write is missed for the sake of a figure. */
        if (t->att.on & EBPFMON_BIT(ebpfMonProgCompleted)) {
            t->noTrap = 1;
            change = 1;
        } else if (t->level > ebpfMonLevelPuts) {
            t->ceiling = (ebpfMonLevel)(t->level - 1);
            change = 1;
        }
        t->over = 0;
        if (change) {
            t->retryAfter = t->retryAfter ? t->retryAfter * 2 : RETRY_SECONDS;
            if (t->retryAfter > RETRY_MAX)
                t->retryAfter = RETRY_MAX;
            t->retryAt = now + (uint64_t)(t->retryAfter * 1e9);
        }
    } else if ((t->ceiling < t->asked || t->noTrap) && now >= t->retryAt && t->cost < budget / 2) {
        if (t->ceiling < t->asked)
            t->ceiling++;
        else
            t->noTrap = 0;
        t->retryAt = now + (uint64_t)(t->retryAfter * 1e9);
        change = 1;
    }
    return change;
}

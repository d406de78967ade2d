/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "common/clock.h"
#include "watch/costSample.h"
#include "watch/levelChoice.h"

/* Percent of the time in which chains of scan lists are timed, for the budget. 0: another level, or its passes are not
 * watched, so to time fewer chains would save nothing. */
static double findTimedPart(const ebpfMonTarget *t, const ebpfMonFilter *filter)
{
    return t->level == ebpfMonLevelChains && t->sweeps ? ebpfMonLevelChoiceFindPercent(t, filter) : 0;
}

/* What turns did to the seconds of this sample. */
static void addTurns(ebpfMonTarget *t, ebpfMonCostSample *sample)
{
    const ebpfMonTurns *turns = &t->follower.timing.turns;
    double timed, before = t->follower.timing.timedBefore;

    if (t->level != ebpfMonLevelChains || !t->sweeps || !turns->lookedAt)
        return;
    timed = ebpfMonTurnsTimed(turns, sample->now);
    t->follower.timing.timedBefore = timed;
    if (before < 0 || sample->seconds <= 0)
        return; /* for some of these seconds each chain was watched */
    sample->inTurns = ebpfMonTurnsExpect(turns, sample->now);
    sample->wasTimed = fmin(1, (timed - before) / sample->seconds);
}

/* Which part of the entry probes is single-stepped. The often hit ones decide: lock, unlock, completed. */
static double findSteppedPart(const ebpfMonAttached *att)
{
    uint32_t often = EBPFMON_BIT(ebpfMonProgLock) | EBPFMON_BIT(ebpfMonProgUnlock) | EBPFMON_BIT(ebpfMonProgCompleted);
    int on = __builtin_popcount(att->on & often), stepped = __builtin_popcount(att->stepped & often);

    return on ? (double)stepped / on : 0;
}

void ebpfMonCostSampleBegin(ebpfMonTarget *t, const struct ebpfMonHits *hits, uint64_t now)
{
    t->follower.hits = *hits;
    t->follower.hitsAt = now;
    t->follower.cpuBefore = ebpfMonClockProcessCpu(t->pid);
    t->follower.timing.timedBefore = -1;
}

/* The traps and the programs since the last look. A counter that is smaller than before is one of another IOC. */
static struct ebpfMonHits takeHits(ebpfMonTarget *t, const struct ebpfMonHits *hits)
{
    struct ebpfMonHits delta;

    for (int i = 0; i < EBPFMON_HIT_KINDS; i++)
        delta.n[i] = hits->n[i] >= t->follower.hits.n[i] ? hits->n[i] - t->follower.hits.n[i] : 0;
    t->follower.hits = *hits;
    return delta;
}

/* Percent of one core that the IOC took, all its threads. */
static double takeLoad(ebpfMonTarget *t, double seconds)
{
    uint64_t cpu = ebpfMonClockProcessCpu(t->pid), before = t->follower.cpuBefore;

    t->follower.cpuBefore = cpu;
    return cpu > before && seconds > 0 ? (double)(cpu - before) / 1e7 / seconds : 0;
}

int ebpfMonCostSampleTake(const ebpfMonCosts *costs, ebpfMonTarget *t, const ebpfMonFilter *filter,
                          const struct ebpfMonHits *hits, uint64_t now, ebpfMonCostSpent *spent,
                          ebpfMonCostSample *sample)
{
    uint64_t since = t->follower.hitsAt;
    double seconds = (double)(now - since) / 1e9;
    struct ebpfMonHits delta;

    spent->strange = 0;
    spent->traps = spent->cold = 0;
    if (now <= since) /* other probes were attached in this round: the sample begins later than it */
        return 0;
    delta = takeHits(t, hits);
    *sample = (ebpfMonCostSample){
        .now = now,
        .seconds = seconds,
        .limit = filter->budget,
        .wantedLevel = t->wantedLevel,
        .level = t->level,
        .load = takeLoad(t, seconds),
        .timed = findTimedPart(t, filter),
        .trapOn = !!(t->follower.att.on & EBPFMON_BIT(ebpfMonProgCompleted)),
    };
    t->follower.hitsAt = now;
    addTurns(t, sample);
    spent->strange = delta.n[EBPFMON_HIT_STRANGE];
    if (since == 0)
        return 0;
    spent->traps = (double)(delta.n[EBPFMON_HIT_ENTRY] + delta.n[EBPFMON_HIT_RETURN]) / seconds;
    spent->cold = (double)delta.n[EBPFMON_HIT_COLD] / EBPFMON_COLD_WHOLE / seconds;
    sample->cost = ebpfMonCostOf(costs, &delta, findSteppedPart(&t->follower.att)) / 1e7 / seconds;
    return 1;
}

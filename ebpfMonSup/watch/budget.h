/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how closely one IOC may be watched, from samples of what watching costs it. This module knows no IOC and no
 * clock. It has no lock: only the follower uses it.
 *
 * After ten seconds above the limit, or sooner if the cost is several times the limit: one step down. The trap of
 * recGblFwdLink goes first, because it costs most. Then chains of scan lists are timed in a smaller part of the time,
 * where this is possible. Then the level goes down, but never below puts: no put is missed to save time. A minute
 * later, if the cost is below half the limit: one step up. Each time that this fails, the monitor waits twice as long,
 * up to an hour. If the IOC has much less to do by then, it tries once earlier. If the cost is between half the limit
 * and four fifths of it, it tries an hour later.
 *
 * While chains are timed in turns, a second with a turn costs many times more than a second without. So both are
 * measured separately, and the cost is their mean, weighted by the part of the time that turns take. So the cost does
 * not go up and down with each turn.
 */
#ifndef EBPFMON_BUDGET_H
#define EBPFMON_BUDGET_H

#include <stdint.h>

#include "model/filter.h"

typedef struct {
    ebpfMonLevel ceiling;  /* no level above this one; ebpfMonLevelTrace: all are allowed */
    int      noTrap;       /* nonzero: the trap of recGblFwdLink is not allowed */
    double   timed;        /* percent of the time in which chains of scan lists may be timed; 100: always */
    double   cost;         /* percent of one core, over the last seconds */
    double   seconds;      /* since this mean began */
    double   costTimed, costUntimed; /* the same while chains are timed, and while not; below 0: not known */
    double   over;         /* seconds above the limit, without a break; they count more, the higher the cost is */
    uint64_t retryAt;      /* ns: no step up before this time */
    double   retryAfter;   /* s from a step down to retryAt; 0: no step down yet */
    uint64_t steppedUpAt;  /* ns; 0: there was a step down since, or no step up yet */
    double   loadSeconds;  /* since the last step down */
    double   loadBefore;   /* load of the IOC in the first of these seconds */
    double   less;         /* seconds with a much lower load, without a break */
    int      wasEarly;     /* nonzero: for this a step up was tried early, and none has lasted since */
} ebpfMonBudget;

typedef struct {
    uint64_t now;          /* ns, any clock that only grows */
    double   seconds;      /* since the sample before */
    double   cost;         /* percent of one core that watching took in these seconds */
    double   load;         /* percent of one core that the IOC took in these seconds, all its threads */
    double   limit;        /* percent; 0: no limit */
    ebpfMonLevel wantedLevel; /* by filter or command */
    ebpfMonLevel level;    /* in force now */
    int      trapOn;       /* the trap of recGblFwdLink is attached */
    double   timed;        /* percent of the time in which chains of scan lists are timed; 0: this step does not
                            * exist */
    double   inTurns;      /* percent of the time that their turns take now; 0: there are no turns */
    double   wasTimed;     /* part of these seconds that was in a turn, 0 to 1 */
} ebpfMonCostSample;

/* All is allowed, nothing was measured. */
void ebpfMonBudgetInit(ebpfMonBudget *budget);

/* All is allowed again: the operator decided anew. The measured cost stays. */
void ebpfMonBudgetReset(ebpfMonBudget *budget);

/* The IOC is watched in another way from now on: the cost is the mean of the samples to come. */
void ebpfMonBudgetBeginMean(ebpfMonBudget *budget);

/* Nonzero: "ceiling", "noTrap" or "timed" changed. */
int ebpfMonBudgetAddSample(ebpfMonBudget *budget, const ebpfMonCostSample *sample);

#endif

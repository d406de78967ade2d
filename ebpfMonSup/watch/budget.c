/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "watch/budget.h"

#define OVER_SECONDS  10.0 /* this long above the limit before something is done … */
#define OVER_FASTER   4.0  /* … and so many times faster at most, if the cost is as many times the limit */
#define RETRY_SECONDS 60.0 /* so long below half of the limit, then a step up is tried; doubles each time that a step
                            * up failed */
#define RETRY_MAX     3600.0
#define LOAD_LESS     0.5  /* times the load of then: it is another load, so a step up is worth a trial */
#define FAILED_NS     60000000000ull /* a step up that was taken back so soon has failed. Later the load has changed */
#define SMOOTH        0.2  /* the least part that the last sample has in the cost. The first ones have more: the cost is
                            * their mean */
#define NOTHING       1e-4 /* percent */
#define TIMED_LEAST   0.5  /* percent of the time: less is nothing */
#define TIMED_STEP    4.0  /* times as much is tried again at most */
#define MARGIN        0.8  /* of the limit is aimed at */
#define SURE          0.5  /* of the limit: below this, a step up has a good chance */
#define PART_LEAST    0.1  /* of the seconds of a sample: a turn that was shorter tells nothing */

void ebpfMonBudgetInit(ebpfMonBudget *b)
{
    memset(b, 0, sizeof(*b));
    b->ceiling = ebpfMonLevelTrace;
    b->timed = 100;
    b->costTimed = b->costUntimed = -1;
}

void ebpfMonBudgetReset(ebpfMonBudget *b)
{
    b->ceiling = ebpfMonLevelTrace;
    b->noTrap = 0;
    b->timed = 100;
    b->over = b->retryAfter = 0;
    b->steppedUpAt = 0;
    b->wasEarly = 0;
}

void ebpfMonBudgetBeginMean(ebpfMonBudget *b)
{
    b->seconds = 0;
    b->costTimed = b->costUntimed = -1;
}

static int allowAll(ebpfMonBudget *b)
{
    int change = b->ceiling != ebpfMonLevelTrace || b->noTrap || b->timed < 100;

    b->ceiling = ebpfMonLevelTrace;
    b->noTrap = 0;
    b->timed = 100;
    b->over = 0;
    return change;
}

/* Assumes that the whole cost comes from timing chains. If it does not, the next step down follows. After a slow pass,
 * all chains are timed for a while: this time costs more, and must not make the turns of other times
 * shorter. */
static double findTimed(const ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    double timed = fmax(s->timed, s->inTurns) * MARGIN * s->limit / b->cost;

    return timed < TIMED_LEAST ? 0 : timed;
}

/* A step up that failed doubles the wait for the next one. If the load has changed since, it begins anew. Steps down
 * that follow each other are one answer to one load. */
static void planRetry(ebpfMonBudget *b, uint64_t now)
{
    if (!b->steppedUpAt) {
        b->retryAfter = b->retryAfter > 0 ? b->retryAfter : RETRY_SECONDS;
    } else {
        int failed = now - b->steppedUpAt < FAILED_NS;

        b->retryAfter = failed ? fmin(2 * b->retryAfter, RETRY_MAX) : RETRY_SECONDS;
        b->wasEarly = b->wasEarly && failed;
        b->steppedUpAt = 0;
    }
    b->retryAt = now + (uint64_t)(b->retryAfter * 1e9);
    b->loadSeconds = 0;
}

/* The load is what it was in the first seconds after the last step down, with the cost of what is left. If it has
 * become much less since, nobody needs to wait for the end of a long pause. Only once, until a step up has not failed:
 * the load of an IOC may fall every minute. */
static void noteLoad(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    uint64_t soon = s->now + (uint64_t)(RETRY_SECONDS * 1e9);

    b->loadSeconds += s->seconds;
    if (b->loadSeconds - s->seconds < OVER_SECONDS) {
        b->loadBefore += (s->load - b->loadBefore) * s->seconds / b->loadSeconds;
        b->less = 0;
        return;
    }
    b->less = s->load < LOAD_LESS * b->loadBefore ? b->less + s->seconds : 0;
    if (b->less < OVER_SECONDS || b->wasEarly || b->retryAt <= soon)
        return;
    b->wasEarly = 1;
    b->retryAt = soon;
}

static int stepDown(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    b->over = 0;
    if (s->trapOn)
        b->noTrap = 1;
    else if (s->timed > 0 && (s->inTurns <= 0 || b->costUntimed < s->limit))
        b->timed = findTimed(b, s);
    else if (s->level > ebpfMonLevelPuts)
        b->ceiling = (ebpfMonLevel)(s->level - 1);
    else
        return 0;
    planRetry(b, s->now);
    return 1;
}

/* The chains of how much of the time may be timed next. Their part of the cost is known while there are turns. */
static double findTimedUp(const ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    double timing = b->cost - b->costUntimed, factor = TIMED_STEP;

    if (b->timed <= 0)
        return TIMED_STEP * TIMED_LEAST;
    if (s->inTurns > 0 && b->costUntimed >= 0 && timing > 0)
        factor = fmin(TIMED_STEP, (MARGIN * s->limit - b->costUntimed) / timing);
    return fmin(100, b->timed * factor);
}

static int stepUp(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    if (b->steppedUpAt && s->now - b->steppedUpAt >= FAILED_NS) { /* the last one has not failed */
        b->retryAfter = RETRY_SECONDS;
        b->wasEarly = 0;
    }
    b->retryAt = s->now + (uint64_t)(b->retryAfter * 1e9);
    if (b->ceiling < s->wantedLevel)
        b->ceiling++;
    else if (b->timed < 100)
        b->timed = findTimedUp(b, s);
    else
        b->noTrap = 0;
    b->steppedUpAt = s->now;
    return 1;
}

static void smoothMean(double *mean, double value)
{
    *mean += *mean < 0 ? value - *mean : SMOOTH * (value - *mean);
}

/* If the cost with turns or without them is not known yet, the other one is taken for both. */
static void addCostInTurns(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    double timed, untimed;

    if (s->wasTimed <= 0)
        smoothMean(&b->costUntimed, s->cost);
    else if (s->wasTimed >= PART_LEAST)
        smoothMean(&b->costTimed, fmax(0, s->cost - (1 - s->wasTimed) * fmax(0, b->costUntimed)) / s->wasTimed);
    timed = b->costTimed < 0 ? b->costUntimed : b->costTimed;
    untimed = b->costUntimed < 0 ? b->costTimed : b->costUntimed;
    if (timed >= 0)
        b->cost = untimed + s->inTurns / 100 * (timed - untimed);
}

static void addCost(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    if (s->inTurns > 0) {
        addCostInTurns(b, s);
    } else {
        b->costTimed = b->costUntimed = -1;
        b->seconds += s->seconds;
        b->cost += (b->seconds > 0 ? fmax(SMOOTH, s->seconds / b->seconds) : 1) * (s->cost - b->cost);
    }
    if (s->cost <= 0 && b->cost < NOTHING)
        b->cost = 0; /* else it would become smaller for ever, and its PVs with it */
}

/* The mean follows the load only after some seconds. So how far the cost is above the limit is taken from the sample,
 * if that is not one of a turn. */
static void noteOver(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    double cost = s->wasTimed > 0 ? b->cost : fmax(b->cost, s->cost);

    if (b->cost <= s->limit)
        b->over = 0;
    else if (s->inTurns > 0 && s->inTurns < 100 && b->costUntimed < 0)
        return; /* a turn has begun, and what the time between turns costs is not known yet */
    else if (s->inTurns > 0 || s->cost > s->limit) /* else only the mean is still above it */
        b->over += s->seconds * fmin(OVER_FASTER, cost / s->limit);
}

/* A step up that may well fail is tried, too, but seldom: else a load that has come once, and is gone, would decide for
 * ever. */
static int maySucceed(const ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    double most = s->now >= b->retryAt + (uint64_t)(RETRY_MAX * 1e9) ? MARGIN : SURE;

    return s->now >= b->retryAt && b->cost < most * s->limit;
}

int ebpfMonBudgetAddSample(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    addCost(b, s);
    if (s->limit <= 0)
        return allowAll(b);
    noteOver(b, s);
    if (b->over >= OVER_SECONDS)
        return stepDown(b, s);
    if (b->retryAfter > 0 && s->seconds > 0)
        noteLoad(b, s);
    if ((b->ceiling < s->wantedLevel || b->noTrap || b->timed < 100) && maySucceed(b, s))
        return stepUp(b, s);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "watch/budget.h"

#define OVER_SECONDS  10.0 /* this long above the limit before something is done */
#define RETRY_SECONDS 60.0 /* so long below half of the limit, then a step up is tried; doubles each time that a step
                            * up failed */
#define RETRY_MAX     3600.0
#define SMOOTH        0.2  /* the least part that the last sample has in the cost. The first ones have more: the cost is
                            * their mean */
#define NOTHING       1e-4 /* percent */
#define TIMED_LEAST   0.5  /* percent of the time: less is nothing */
#define TIMED_STEP    4.0  /* times as much is tried again */
#define MARGIN        0.8  /* of the limit is aimed at */
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

/* Assumes that the whole cost comes from timing chains. If it does not, the next step down follows. */
static double findTimed(const ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    double timed = s->timed * MARGIN * s->limit / b->cost;

    return timed < TIMED_LEAST ? 0 : timed;
}

static int stepDown(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    b->over = 0;
    if (s->trapOn)
        b->noTrap = 1;
    else if (s->timed > 0)
        b->timed = findTimed(b, s);
    else if (s->level > ebpfMonLevelPuts)
        b->ceiling = (ebpfMonLevel)(s->level - 1);
    else
        return 0;
    b->retryAfter = b->retryAfter ? b->retryAfter * 2 : RETRY_SECONDS;
    if (b->retryAfter > RETRY_MAX)
        b->retryAfter = RETRY_MAX;
    b->retryAt = s->now + (uint64_t)(b->retryAfter * 1e9);
    return 1;
}

static int stepUp(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    if (b->ceiling < s->wantedLevel)
        b->ceiling++;
    else if (b->timed < 100)
        b->timed = b->timed >= 100 / TIMED_STEP ? 100 : b->timed > 0 ? b->timed * TIMED_STEP : TIMED_STEP * TIMED_LEAST;
    else
        b->noTrap = 0;
    b->retryAt = s->now + (uint64_t)(b->retryAfter * 1e9);
    return 1;
}

static void smoothMean(double *mean, double value)
{
    *mean += *mean < 0 ? value - *mean : SMOOTH * (value - *mean);
}

/* As long as only one of both is known, it stands for both. */
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

int ebpfMonBudgetAddSample(ebpfMonBudget *b, const ebpfMonCostSample *s)
{
    addCost(b, s);
    if (s->limit <= 0)
        return allowAll(b);
    b->over = b->cost > s->limit ? b->over + s->seconds : 0;
    if (b->over >= OVER_SECONDS)
        return stepDown(b, s);
    if ((b->ceiling < s->wantedLevel || b->noTrap || b->timed < 100) && s->now >= b->retryAt && b->cost < s->limit / 2)
        return stepUp(b, s);
    return 0;
}

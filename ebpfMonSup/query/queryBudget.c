/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <epicsString.h>

#include "query/queryBudget.h"

#define OVER_SECONDS 10.0 /* as for watching (watch/budget.c): a short burst is allowed */

/* Sets what queries take from this IOC. Returns the number of the dearest one; -1: none takes anything. */
static int sumUp(ebpfMonTarget *t, ebpfMonQueryRun *const run[], unsigned count)
{
    double most = 0;
    int dearest = -1;

    t->queries.cost = 0;
    for (unsigned i = 0; i < count; i++) {
        double cost = run[i] ? ebpfMonQueryRunGetCostOf(run[i], t->iocId) : 0;

        t->queries.cost += cost;
        if (cost > most) {
            most = cost;
            dearest = (int)i;
        }
    }
    return dearest;
}

/* Nonzero: it is over its budget for too long, and its queries must save. If its asyn ports take more than they do,
 * that is stopped first (device/deviceBudget.c). */
static int isOver(ebpfMonTarget *t, double now)
{
    if (t->costLimit <= 0 || t->queries.cost <= 0 || t->queries.cost < t->portCost ||
        ebpfMonTargetGetCost(t) <= t->costLimit) {
        t->queries.overSince = 0;
        return 0;
    }
    if (t->queries.overSince <= 0)
        t->queries.overSince = now;
    return now - t->queries.overSince >= OVER_SECONDS;
}

int ebpfMonQueryBudgetCheck(ebpfMonTargets *targets, ebpfMonQueryRun *const run[], unsigned count, double now,
                            char *why, size_t size)
{
    int stop = -1;

    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        int dearest = t->gone ? -1 : sumUp(t, run, count);

        if (stop >= 0 || dearest < 0 || !isOver(t, now))
            continue;
        stop = dearest;
        t->queries.overSince = 0; /* the next query to be stopped gets the same time first */
        snprintf(why, size,
                 "stopped: IOC %.60s paid %.3g %% of a core, %.3g %% of it for this query, and FILTER_BUDGET is %.3g. "
                 "Choose other events or IOCs, or set a larger budget",
                 t->name, ebpfMonTargetGetCost(t), ebpfMonQueryRunGetCostOf(run[dearest], t->iocId), t->costLimit);
    }
    ebpfMonTargetsUnlock(targets);
    return stop;
}

int ebpfMonQueryBudgetRefuses(ebpfMonTargets *targets, const ebpfMonQuerySpec *spec, char *why, size_t size)
{
    int refuses = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t && !refuses; t = t->next) {
        refuses = !t->gone && t->level != ebpfMonLevelOff && t->costLimit > 0 &&
                  ebpfMonTargetGetCost(t) >= t->costLimit && epicsStrGlobMatch(t->name, spec->ioc);
        if (refuses)
            snprintf(why, size,
                     "not started: IOC %.60s pays %.3g %% of a core already, %.3g %% of it for queries%s, and "
                     "FILTER_BUDGET is %.3g. Stop another query, or set a larger budget",
                     t->name, ebpfMonTargetGetCost(t), t->queries.cost + t->portCost,
                     t->portCost > 0 ? " and asyn ports" : "", t->costLimit);
    }
    ebpfMonTargetsUnlock(targets);
    return refuses;
}

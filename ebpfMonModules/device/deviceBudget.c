/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "device/deviceBudget.h"

#define OVER_SECONDS 10.0 /* as for watching (watch/budget.c): a short burst is allowed */

void ebpfMonDeviceShareAdd(ebpfMonDeviceShare *share, const struct ebpfMonDeviceConf *now, const ebpfMonCosts *costs,
                           double seconds)
{
    const struct ebpfMonDeviceConf *before = &share->before;

    if (seconds > 0)
        share->cost = 100 / (seconds * 1e9) * ((double)(now->entries - before->entries) * costs->entryNs +
                                               (double)(now->returns - before->returns) * costs->returnNs +
                                               (double)(now->ns - before->ns));
    share->before = *now;
}

/* Nonzero: the IOC pays too much, and no query takes more than its ports. */
static int mustSave(const ebpfMonTarget *t)
{
    return t->costLimit > 0 && t->portCost > 0 && t->queries.cost < t->portCost &&
           ebpfMonTargetGetCost(t) > t->costLimit;
}

int ebpfMonDeviceShareIsOver(ebpfMonDeviceShare *share, ebpfMonTargets *targets, uint32_t iocId, double now, char *why,
                             size_t size)
{
    ebpfMonTarget *t;
    int isOver = 0;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        t->portCost = share->cost;
    if (!t || !mustSave(t))
        share->overSince = 0;
    else if (share->overSince <= 0)
        share->overSince = now;
    else
        isOver = now - share->overSince >= OVER_SECONDS;
    if (isOver)
        snprintf(why, size,
                 "stopped: it paid %.3g %% of a core, %.3g %% of it for its ports, and FILTER_BUDGET is %.3g",
                 ebpfMonTargetGetCost(t), t->portCost, t->costLimit);
    ebpfMonTargetsUnlock(targets);
    return isOver;
}

int ebpfMonDeviceShareRefuses(ebpfMonTargets *targets, uint32_t iocId, char *why, size_t size)
{
    const ebpfMonTarget *t;
    int refuses;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    refuses = t && t->costLimit > 0 && ebpfMonTargetGetCost(t) >= t->costLimit;
    if (refuses)
        snprintf(why, size, "not watched: it pays %.3g %% of a core already, and FILTER_BUDGET is %.3g",
                 ebpfMonTargetGetCost(t), t->costLimit);
    ebpfMonTargetsUnlock(targets);
    return refuses;
}

void ebpfMonDeviceShareClear(ebpfMonTargets *targets, uint32_t iocId)
{
    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (!iocId || t->iocId == iocId)
            t->portCost = 0;
    ebpfMonTargetsUnlock(targets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "probe/calibrate.h"
#include "watch/packetCost.h"

#define MEAN_SECONDS 10.0
#define NOTHING      1e-4 /* percent */

void ebpfMonPacketCostAdd(ebpfMonTargets *targets, uint32_t iocId, uint64_t ns)
{
    ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        t->packets.ns += ns;
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonPacketCostTick(ebpfMonTargets *targets, double seconds)
{
    double part = 1 - exp(-seconds / MEAN_SECONDS);

    if (seconds <= 0)
        return;
    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        t->packets.cost += part * (ebpfMonCostOfPrograms(t->packets.ns) / 1e7 / seconds - t->packets.cost);
        if (!t->packets.ns && t->packets.cost < NOTHING)
            t->packets.cost = 0; /* else its PVs would change for ever */
        t->packets.ns = 0;
    }
    ebpfMonTargetsUnlock(targets);
}

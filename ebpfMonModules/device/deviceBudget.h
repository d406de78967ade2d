/* SPDX-License-Identifier: BSD-3-Clause */
/* What watching the ports of an IOC takes from it, as a part of the budget of the IOC: FILTER_BUDGET. The device thread
 * only. */
#ifndef EBPFMON_DEVICEBUDGET_H
#define EBPFMON_DEVICEBUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "device/devicePrograms.h"
#include "watch/target.h"

/* What one IOC pays. Begins as all zeros. */
typedef struct {
    struct ebpfMonDeviceConf before; /* at the last look */
    double cost;      /* percent of one core, from the look before to the last look */
    double overSince; /* monotonic s; since then the IOC pays more than its limit. 0: it does not */
} ebpfMonDeviceShare;

/* Sets share->cost by what the programs counted for "seconds". */
void ebpfMonDeviceShareAdd(ebpfMonDeviceShare *share, const struct ebpfMonDeviceConf *now, const ebpfMonCosts *costs,
                           double seconds);

/* Publishes the cost in its IOC. Nonzero: the IOC has paid more than its limit for too long, and its ports cost
 * more than anything else that can be stopped; "why" says so. now: monotonic s. It takes the lock of the targets. */
int ebpfMonDeviceShareIsOver(ebpfMonDeviceShare *share, ebpfMonTargets *targets, uint32_t iocId, double now, char *why,
                             size_t size);

/* Nonzero: the IOC has nothing left to pay; "why" says so. It takes the lock of the targets. */
int ebpfMonDeviceShareRefuses(ebpfMonTargets *targets, uint32_t iocId, char *why, size_t size);

/* The ports of this IOC, or (0) of all IOCs, are not watched any more. It takes the lock of the targets. */
void ebpfMonDeviceShareClear(ebpfMonTargets *targets, uint32_t iocId);

#endif

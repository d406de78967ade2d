/* SPDX-License-Identifier: BSD-3-Clause */
/* The IOCs whose ports are watched: probes on and off. The thread of devices.h alone. */
#ifndef EBPFMON_DEVICEIOCS_H
#define EBPFMON_DEVICEIOCS_H

#include "common/worker.h"
#include "probe/devicePrograms.h"
#include "watch/target.h"

typedef struct ebpfMonDeviceIocs ebpfMonDeviceIocs;

/* NULL without memory. "programs" stays the caller's. */
ebpfMonDeviceIocs *ebpfMonDeviceIocsNew(ebpfMonDevicePrograms *programs);
/* Closes all probes. NULL does no harm. */
void ebpfMonDeviceIocsFree(ebpfMonDeviceIocs *iocs);

/* Follows the targets that match: they come and go; and sets probes at functions that requests have shown. */
void ebpfMonDeviceIocsFollow(ebpfMonDeviceIocs *iocs, ebpfMonTargets *targets, const char *pattern, ebpfMonWorker *worker);

/* How many are watched; why one of them is not: empty if all are, or have no asyn. */
unsigned ebpfMonDeviceIocsCount(const ebpfMonDeviceIocs *iocs);
const char *ebpfMonDeviceIocsGetTrouble(const ebpfMonDeviceIocs *iocs);

#endif

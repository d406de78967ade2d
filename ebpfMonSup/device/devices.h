/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for which port of asyn, and for how long: the thread that sets probes in IOCs that have asyn, and publishes
 * what they count. It runs while somebody wants it; until then nothing is loaded.
 */
#ifndef EBPFMON_DEVICES_H
#define EBPFMON_DEVICES_H

#include "common/textReport.h"
#include "probe/calibrate.h"
#include "watch/target.h"

typedef struct ebpfMonDevices ebpfMonDevices;

/* NULL without memory. One in a process; it is never freed, because a command may be in it. */
ebpfMonDevices *ebpfMonDevicesNew(void);

/* The IOCs to watch: a pattern of their names; empty: none. Any thread, also before Begin. */
void ebpfMonDevicesWatch(ebpfMonDevices *devices, const char *pattern);

/* The monitor runs: starts the thread. "targets" and "costs" stay the caller's, till Stop returned 0. 0, or -1. */
int ebpfMonDevicesBegin(ebpfMonDevices *devices, ebpfMonTargets *targets, const ebpfMonCosts *costs);
/* 0; -1: the thread did not end in time, and still uses the targets and the kernel's tables. */
int ebpfMonDevicesStop(ebpfMonDevices *devices, double seconds);

#endif

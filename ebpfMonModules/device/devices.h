/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for which port of asyn, and for how long. A thread sets probes in the IOCs that have asyn, and publishes
 * the counts of these probes. As long as no pattern is set (ebpfMonDeviceWatch), no program is loaded and no probe is
 * set.
 */
#ifndef EBPFMON_DEVICES_H
#define EBPFMON_DEVICES_H

#include "device/deviceValues.h"
#include "ebpfMonModule.h"
#include "probe/calibrate.h"
#include "watch/target.h"

typedef struct ebpfMonDevices ebpfMonDevices;

/* NULL without memory. There is one in a process. It is never freed, because a shell command may still use it. "module"
 * stays the caller's. */
ebpfMonDevices *ebpfMonDevicesNew(const ebpfMonModule *module);

/* The published values. Under the lock of ebpfMonModuleLock. */
const ebpfMonDeviceValues *ebpfMonDevicesGetValues(const ebpfMonDevices *devices);

/* Sets which IOCs to watch: a pattern of their names (glob), which is copied; "": none. Any thread, also before
 * Begin. */
void ebpfMonDevicesWatch(ebpfMonDevices *devices, const char *pattern);

/* Call this when the monitor runs: starts the thread. "targets" and "costs" stay the caller's, and must stay until
 * Stop has returned 0. 0, or -1: the thread cannot be started. */
int ebpfMonDevicesBegin(void *devices, const ebpfMonModuleCore *core);
/* Ends the thread; waits at most "seconds". 0, or -1: it did not end in time, and still uses the targets and the
 * tables of the kernel part. */
int ebpfMonDevicesStop(void *devices, double seconds);

#endif

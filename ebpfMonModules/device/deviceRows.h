/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes rows for people of what the kernel part counted of ports. Only the thread of devices.c uses this module. */
#ifndef EBPFMON_DEVICEROWS_H
#define EBPFMON_DEVICEROWS_H

#include <stdint.h>

#include "device/devicePrograms.h"
#include "device/deviceValues.h"
#include "device/ebpfMonDevice.h"
#include "watch/target.h"

/* --- ports that do not answer ---
 *
 * How often a device did not answer a record: the record ended with the alarm TIMEOUT, and that was not because its
 * request waited for the port too long. Both are counted from the first look at the record on. The thread of devices
 * only. */

typedef struct ebpfMonDeviceSilence ebpfMonDeviceSilence;

ebpfMonDeviceSilence *ebpfMonDeviceSilenceNew(void); /* NULL: no memory */
void ebpfMonDeviceSilenceFree(ebpfMonDeviceSilence *silence); /* NULL does no harm */

/* "ended": processings of the record that ended with the alarm; "left": requests of this user that left the queue.
 * Returns how often no answer came since the first call for this user. UINT64_MAX: it is not known, because there is no
 * room for more users, or no memory. */
uint64_t ebpfMonDeviceSilenceCount(ebpfMonDeviceSilence *silence, const struct ebpfMonDeviceKey *user, uint64_t ended,
                                   uint64_t left);

/* Forgets all users of a process. */
void ebpfMonDeviceSilenceForget(ebpfMonDeviceSilence *silence, uint32_t tgid);

/* --- rows --- */

typedef struct ebpfMonDeviceRows ebpfMonDeviceRows;

/* NULL without memory. */
ebpfMonDeviceRows *ebpfMonDeviceRowsNew(void);
void ebpfMonDeviceRowsFree(ebpfMonDeviceRows *rows);

/* Forgets what is known of a process and of its users, which the kernel part does not count any more. */
void ebpfMonDeviceRowsForget(ebpfMonDeviceRows *rows, pid_t pid);

/* Reads the tables of the kernel part, finds the names, and sets rows, requests and timeouts of "values". Takes the
 * targets lock for a short time. Returns how many rows were left out because the name of their port cannot be read:
 * then this asyn has another layout than asynLayout.h. */
unsigned ebpfMonDeviceRowsMake(ebpfMonDeviceRows *rows, ebpfMonDevicePrograms *programs, ebpfMonTargets *targets,
                               ebpfMonDeviceValues *values);

#endif

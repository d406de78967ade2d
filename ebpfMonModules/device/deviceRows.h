/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes rows for people of what the kernel part counted of ports. Only the thread of devices.c uses this module. */
#ifndef EBPFMON_DEVICEROWS_H
#define EBPFMON_DEVICEROWS_H

#include "device/deviceValues.h"
#include "device/devicePrograms.h"
#include "watch/target.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel part counted of ports, as rows for people. The thread of devices.h alone. */
#ifndef EBPFMON_DEVICEROWS_H
#define EBPFMON_DEVICEROWS_H

#include "model/deviceValues.h"
#include "probe/devicePrograms.h"
#include "watch/target.h"

typedef struct ebpfMonDeviceRows ebpfMonDeviceRows;

/* NULL without memory. */
ebpfMonDeviceRows *ebpfMonDeviceRowsNew(void);
void ebpfMonDeviceRowsFree(ebpfMonDeviceRows *rows);

/* Reads the tables and names what is in them: rows, requests and time-outs of "values". Returns how many ports have no name:
 * then their structs lie in another way than asynLayout.h says. */
unsigned ebpfMonDeviceRowsMake(ebpfMonDeviceRows *rows, ebpfMonDevicePrograms *programs, ebpfMonTargets *targets,
                               ebpfMonDeviceValues *values);

#endif

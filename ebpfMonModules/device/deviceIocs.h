/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets and removes the probes in the IOCs with watched ports. Only the thread of devices.c uses this module. */
#ifndef EBPFMON_DEVICEIOCS_H
#define EBPFMON_DEVICEIOCS_H

#include "common/worker.h"
#include "device/deviceRows.h"
#include "device/devicePrograms.h"
#include "watch/target.h"

typedef struct ebpfMonDeviceIocs ebpfMonDeviceIocs;

/* NULL without memory. All pointers stay the caller's. "rows" forgets each IOC that is not watched any more. */
ebpfMonDeviceIocs *ebpfMonDeviceIocsNew(ebpfMonDevicePrograms *programs, ebpfMonDeviceRows *rows,
                                        ebpfMonTargets *targets, const ebpfMonModule *module);
/* Closes all probes. NULL does no harm. */
void ebpfMonDeviceIocsFree(ebpfMonDeviceIocs *iocs);

/* Follows the IOCs that match: sets probes in new ones, and closes the probes of those that ended. Then it sets
 * probes at the functions that requests have shown. Takes the targets lock for a short time; it may take seconds,
 * and gives signs of progress for "worker" (may be NULL). */
void ebpfMonDeviceIocsFollow(ebpfMonDeviceIocs *iocs, ebpfMonTargets *targets, const char *pattern,
                             ebpfMonWorker *worker);

/* Charges each IOC for what the programs did in the last "seconds". An IOC that pays more than FILTER_BUDGET for too
 * long, most of it for its ports, is left for ten minutes. Returns what all IOCs paid, in percent of one core. */
double ebpfMonDeviceIocsCharge(ebpfMonDeviceIocs *iocs, const ebpfMonCosts *costs, double seconds);

/* The number of IOCs that are watched. */
unsigned ebpfMonDeviceIocsCount(const ebpfMonDeviceIocs *iocs);
/* Why an IOC, or a part of it, is not watched; "": all IOCs that have asyn are. */
const char *ebpfMonDeviceIocsGetTrouble(const ebpfMonDeviceIocs *iocs);

#endif

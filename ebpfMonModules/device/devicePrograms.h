/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs and tables of device/device.bpf.c. They watch the requests that go to ports of asyn. Use them
 * between ebpfMonKernelLoad and ebpfMonKernelUnload. One thread at a time. */
#ifndef EBPFMON_DEVICEPROGRAMS_H
#define EBPFMON_DEVICEPROGRAMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "device/ebpfMonDevice.h"
#include "probe/uprobe.h"

typedef struct ebpfMonDevicePrograms ebpfMonDevicePrograms;

typedef enum { ebpfMonDeviceQueue, ebpfMonDeviceServe, ebpfMonDeviceTimeout } ebpfMonDeviceSite;

/* Loads the programs. NULL: "why" (of "size" bytes) gets the reason. */
ebpfMonDevicePrograms *ebpfMonDeviceProgramsLoad(char *why, size_t size);
/* Close all probes before. NULL does no harm. */
void ebpfMonDeviceProgramsFree(ebpfMonDevicePrograms *programs);

/* Requests of this process count from now on, or no more. Add: 0 or errno. Remove: deletes also what was counted for
 * the process. */
int ebpfMonDeviceProgramsAddProcess(ebpfMonDevicePrograms *programs, pid_t pid, const struct ebpfMonDeviceConf *conf);
void ebpfMonDeviceProgramsRemoveProcess(ebpfMonDevicePrograms *programs, pid_t pid);
/* Reads the configuration of this process, and what it has paid since it was added. 0 or errno. */
int ebpfMonDeviceProgramsReadProcess(ebpfMonDevicePrograms *programs, pid_t pid, struct ebpfMonDeviceConf *conf);

/* Sets the probes of a site at this place: two for ebpfMonDeviceServe, else one. *count gets their number; the caller
 * closes them. The cookie is the number in the configuration of the process. 0; or an error of uprobe.h, and then no
 * probe is set. */
int ebpfMonDeviceProgramsProbe(ebpfMonDevicePrograms *programs, ebpfMonDeviceSite site,
                               const ebpfMonUprobePlaces *place, ebpfMonProbe probe[2], unsigned *count);

/* Calls "each" for each function of a driver that was seen to serve requests. "function" is valid during the call
 * only. */
void ebpfMonDeviceProgramsEachFunction(ebpfMonDevicePrograms *programs,
                                       void (*each)(void *arg, const struct ebpfMonDeviceFunction *function),
                                       void *arg);
/* Calls "each" for each user of a port that made requests, with what was counted. Both pointers are valid during the
 * call only. */
void ebpfMonDeviceProgramsEachUser(ebpfMonDevicePrograms *programs,
                                   void (*each)(void *arg, const struct ebpfMonDeviceKey *key,
                                                const struct ebpfMonDeviceStat *stat), void *arg);
/* What these programs counted of themselves, summed over the CPUs; zeros if it cannot be read. */
void ebpfMonDeviceProgramsReadCounts(ebpfMonDevicePrograms *programs, struct ebpfMonDeviceCounts *counts);

#endif

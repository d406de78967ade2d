/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs and tables of device.bpf.c: requests to ports of asyn. After ebpfMonKernelLoad; one thread at a time. */
#ifndef EBPFMON_DEVICEPROGRAMS_H
#define EBPFMON_DEVICEPROGRAMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonDevice.h"
#include "probe/closer.h"

typedef struct ebpfMonDevicePrograms ebpfMonDevicePrograms;

typedef enum { ebpfMonDeviceQueue, ebpfMonDeviceServe, ebpfMonDeviceTimeout } ebpfMonDeviceSite;

/* NULL: "why". */
ebpfMonDevicePrograms *ebpfMonDeviceProgramsLoad(char *why, size_t size);
/* After all its probes were closed. NULL does no harm. */
void ebpfMonDeviceProgramsFree(ebpfMonDevicePrograms *programs);

/* 0, or an errno. Removing a process removes what was counted for it, too. */
int ebpfMonDeviceProgramsAddProcess(ebpfMonDevicePrograms *programs, pid_t pid, const struct ebpfMonDeviceConf *conf);
void ebpfMonDeviceProgramsRemoveProcess(ebpfMonDevicePrograms *programs, pid_t pid);

/* Sets one probe, of ebpfMonDeviceServe two; *count says how many. 0, or an errno: then none. */
int ebpfMonDeviceProgramsProbe(ebpfMonDevicePrograms *programs, ebpfMonDeviceSite site, const char *path, uint64_t offset,
                               pid_t pid, ebpfMonProbe probe[2], unsigned *count);

void ebpfMonDeviceProgramsEachFunction(ebpfMonDevicePrograms *programs,
                                       void (*each)(void *arg, const struct ebpfMonDeviceFunction *function), void *arg);
void ebpfMonDeviceProgramsEachUser(ebpfMonDevicePrograms *programs,
                                   void (*each)(void *arg, const struct ebpfMonDeviceKey *key,
                                                const struct ebpfMonDeviceStat *stat), void *arg);
void ebpfMonDeviceProgramsReadCounts(ebpfMonDevicePrograms *programs, struct ebpfMonDeviceCounts *counts);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU use in percent, from readings of the CPU time of many things (IOCs, servers). Each thing has a number. One
 * thread. */
#ifndef EBPFMON_CPUMETERS_H
#define EBPFMON_CPUMETERS_H

#include <stdint.h>

typedef struct ebpfMonCpuMeters ebpfMonCpuMeters;

/* For up to "size" things, at least 1. If there are more, a new thing replaces the one with the oldest last reading.
 * "weight": of the newest reading in the moving average; 1: the average is the newest reading. NULL without memory. */
ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size, double weight);
void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters);

/* "id": the number of the thing, not 0; "cpu": its CPU time so far (s); "now": monotonic ns. Returns percent of one
 * core, as a moving average of the readings; NaN at the first reading. A CPU time that is less than before tells
 * nothing: the average stays. */
double ebpfMonCpuMetersAdd(ebpfMonCpuMeters *meters, uint32_t id, double cpu, uint64_t now);

/* What the last reading of this thing returned; *at: when that was; NaN and 0: there was none. */
double ebpfMonCpuMetersGet(const ebpfMonCpuMeters *meters, uint32_t id, uint64_t *at);

#endif

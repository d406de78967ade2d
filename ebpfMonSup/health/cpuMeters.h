/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU use in percent, from readings of the CPU time of many things (IOCs, servers). Each thing has a number. One
 * thread. */
#ifndef EBPFMON_CPUMETERS_H
#define EBPFMON_CPUMETERS_H

#include <stdint.h>

typedef struct ebpfMonCpuMeters ebpfMonCpuMeters;

/* For up to "size" things, at least 1. If there are more, a new thing replaces the one with the oldest last reading.
 * NULL without memory. */
ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size);
void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters);

/* "id": the number of the thing, not 0; "cpu": its CPU time so far (s); "now": monotonic ns. Returns percent of one
 * core, as a moving average of the readings; NaN at the first reading. */
double ebpfMonCpuMetersAdd(ebpfMonCpuMeters *meters, uint32_t id, double cpu, uint64_t now);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU use in percent, from readings of the CPU time of many things, each with a number. One thread. */
#ifndef EBPFMON_CPUMETERS_H
#define EBPFMON_CPUMETERS_H

#include <stdint.h>

typedef struct ebpfMonCpuMeters ebpfMonCpuMeters;

/* For up to "size" things; if there are more, the one that was not read for longest gives its place. NULL without
 * memory. */
ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size);
void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters);

/* "cpu": CPU time (s) so far of the thing "id"; "now": monotonic ns. Returns percent of one core, smoothed over some
 * seconds; 0 in the first call. */
double ebpfMonCpuMetersAdd(ebpfMonCpuMeters *meters, uint32_t id, double cpu, uint64_t now);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat maps: which records were how busy, and how long chains took, over the last ten minutes. They are made of what is
 * published once a second, so they cost no look at the kernel's tables.
 */
#ifndef EBPFMON_HEATMAPS_H
#define EBPFMON_HEATMAPS_H

#include <stdint.h>

#include "model/published.h"

typedef struct ebpfMonHeatMaps ebpfMonHeatMaps;

/* NULL: no memory. */
ebpfMonHeatMaps *ebpfMonHeatMapsNew(void);
void ebpfMonHeatMapsFree(ebpfMonHeatMaps *maps);

/* Takes over what was published; each EBPFMON_HEAT_SECONDS it publishes a column more. "now": monotonic, ns. Publishing
 * thread; takes the lock of the published values. */
void ebpfMonHeatMapsPublish(ebpfMonHeatMaps *maps, uint64_t now);

#endif

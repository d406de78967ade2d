/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat maps of the last ten minutes: how often each record processed, and how long chains took. They are calculated
 * from values that are published once a second, so they do not read the tables of the kernel part.
 */
#ifndef EBPFMON_HEATMAPS_H
#define EBPFMON_HEATMAPS_H

#include <stdint.h>

#include "model/published.h"

typedef struct ebpfMonHeatMaps ebpfMonHeatMaps;

/* Also clears the published heat maps. NULL: no memory. */
ebpfMonHeatMaps *ebpfMonHeatMapsNew(void);
void ebpfMonHeatMapsFree(ebpfMonHeatMaps *maps);

/* Call it once a second, after the rankings were published. Every EBPFMON_HEAT_SECONDS it adds a column. "now":
 * monotonic ns. Publishing thread only; takes the lock of the published values. */
void ebpfMonHeatMapsPublish(ebpfMonHeatMaps *maps, uint64_t now);

#endif

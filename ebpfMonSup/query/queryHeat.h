/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The history of a query's histogram, a heat map: how many values came into each bar in each of the last columns of
 * time. The query thread only.
 */
#ifndef EBPFMON_QUERYHEAT_H
#define EBPFMON_QUERYHEAT_H

#include "query/querySpec.h"

typedef struct ebpfMonQueryHeat ebpfMonQueryHeat;

/* "now": monotonic s, when the query began. "spec" stays the caller's, and has a histogram. NULL without memory. */
ebpfMonQueryHeat *ebpfMonQueryHeatNew(const ebpfMonQuerySpec *spec, double now);
void ebpfMonQueryHeatFree(ebpfMonQueryHeat *heat); /* NULL does no harm */

/* Adds a column if one is over. bar[]: the histogram since the begin, EBPFMON_QUERY_BARS_MAX bars (queryBars.h). */
void ebpfMonQueryHeatAdd(ebpfMonQueryHeat *heat, const uint64_t *bar, double now);

/* Writes the heat map into a result. The caller holds the lock of the results. */
void ebpfMonQueryHeatCopy(const ebpfMonQueryHeat *heat, ebpfMonQueryResult *result);

#endif

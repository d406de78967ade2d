/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distributions over puts. The kernel part has a cell for each put. When a put is over, this adds what it had in all,
 * the number of its events or the sum of their value, to the row of its other keys, as one value. The query thread
 * only.
 */
#ifndef EBPFMON_QUERYPUTS_H
#define EBPFMON_QUERYPUTS_H

#include "probe/queryPrograms.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryPuts ebpfMonQueryPuts;

/* "spec" stays the caller's; "keySize": bytes of a key of the kernel part, with the number of the put. NULL without
 * memory. */
ebpfMonQueryPuts *ebpfMonQueryPutsNew(const ebpfMonQuerySpec *spec, unsigned keySize);
void ebpfMonQueryPutsFree(ebpfMonQueryPuts *puts); /* NULL does no harm */

/* Bytes of the keys that Look passes on. */
unsigned ebpfMonQueryPutsGetKeySize(const ebpfMonQueryPuts *puts);

/* Takes the puts that are over at the time "now" (monotonic ns) out of the kernel part. Then calls "each" for each key,
 * with all its puts so far. 0, or -1: not all could be read. */
int ebpfMonQueryPutsLook(ebpfMonQueryPuts *puts, ebpfMonQueryPrograms *programs, uint64_t now, ebpfMonQueryCellFn each,
                         void *arg);

/* Returns the number of events that belong to puts for which there was no room. */
uint64_t ebpfMonQueryPutsGetLost(const ebpfMonQueryPuts *puts);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The last events of a query, one by one. The query thread only. */
#ifndef EBPFMON_QUERYEVENTS_H
#define EBPFMON_QUERYEVENTS_H

#include "query/queryKeyText.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryEvents ebpfMonQueryEvents;

ebpfMonQueryEvents *ebpfMonQueryEventsNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names); /* NULL: no memory */
void ebpfMonQueryEventsFree(ebpfMonQueryEvents *events); /* NULL does no harm */

void ebpfMonQueryEventsAdd(ebpfMonQueryEvents *events, const struct ebpfMonQueryEvent *event);

/* Writes the last events into a result, the newest first. */
void ebpfMonQueryEventsCopy(const ebpfMonQueryEvents *events, ebpfMonQueryResult *result);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the last events of a query (EBPFMON_QUERY_EVENTS_MAX), to show them one by one. The query thread only. */
#ifndef EBPFMON_QUERYEVENTS_H
#define EBPFMON_QUERYEVENTS_H

#include "query/queryKeyText.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryEvents ebpfMonQueryEvents;

/* "spec" and "names" stay the caller's. NULL without memory. */
ebpfMonQueryEvents *ebpfMonQueryEventsNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names);
void ebpfMonQueryEventsFree(ebpfMonQueryEvents *events); /* NULL does no harm */

/* Adds an event; it replaces the oldest if there is no room. Takes the targets lock to look up names. */
void ebpfMonQueryEventsAdd(ebpfMonQueryEvents *events, const struct ebpfMonQueryEvent *event);

/* Writes the last events into a result, the newest first. The caller holds the lock of the results. */
void ebpfMonQueryEventsCopy(const ebpfMonQueryEvents *events, ebpfMonQueryResult *result);

#endif

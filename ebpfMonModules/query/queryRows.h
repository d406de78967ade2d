/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of one query: one row for each key. The texts of a key are made when the key is first seen, because its
 * IOC may have ended later. The query thread only.
 */
#ifndef EBPFMON_QUERYROWS_H
#define EBPFMON_QUERYROWS_H

#include "shared/ebpfMonQuery.h"
#include "query/queryValues.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"

/* --- bars ---
 *
 * The bars of a histogram, as they are shown. The kernel part has four buckets for each power of two; one bar has all
 * four. A linear histogram has a bar for each bucket. No shared state.
 */

#define EBPFMON_QUERY_IN_BAR 4 /* buckets in a bar of a log2 histogram */

_Static_assert(EBPFMON_QUERY_BUCKETS / EBPFMON_QUERY_IN_BAR <= EBPFMON_QUERY_BARS_MAX, "bars");

/* The smallest value of a bar, not scaled. The first bar of a linear histogram has all values below "from", and its
 * edge is one step below. */
static inline double ebpfMonQueryBarEdge(const struct ebpfMonQueryPlan *plan, unsigned bar)
{
    return plan->hist == EBPFMON_QUERY_LOG2 ? ebpfMonQueryBucketEdge(bar * EBPFMON_QUERY_IN_BAR)
                                            : (double)plan->from + (double)plan->step * ((double)bar - 1);
}

/* --- heat maps ---
 *
 * The history of a query's histogram, a heat map: how many values came into each bar in each of the last columns of
 * time. The query thread only.
 */

typedef struct ebpfMonQueryHeat ebpfMonQueryHeat;

/* "now": monotonic s, when the query began. "spec" stays the caller's, and has a histogram. NULL without memory. */
ebpfMonQueryHeat *ebpfMonQueryHeatNew(const ebpfMonQuerySpec *spec, double now);
void ebpfMonQueryHeatFree(ebpfMonQueryHeat *heat); /* NULL does no harm */

/* Adds a column if one is over. bar[]: the histogram since the begin, EBPFMON_QUERY_BARS_MAX bars. */
void ebpfMonQueryHeatAdd(ebpfMonQueryHeat *heat, const uint64_t *bar, double now);

/* Writes the heat map into a result. The caller holds the lock of the results. */
void ebpfMonQueryHeatCopy(const ebpfMonQueryHeat *heat, ebpfMonQueryResult *result);

/* --- events ---
 *
 * Keeps the last events of a query (EBPFMON_QUERY_EVENTS_MAX), to show them one by one. The query thread only.
 */

typedef struct ebpfMonQueryEvents ebpfMonQueryEvents;

/* "spec" and "names" stay the caller's. NULL without memory. */
ebpfMonQueryEvents *ebpfMonQueryEventsNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names);
void ebpfMonQueryEventsFree(ebpfMonQueryEvents *events); /* NULL does no harm */

/* Adds an event; it replaces the oldest if there is no room. Takes the targets lock to look up names. */
void ebpfMonQueryEventsAdd(ebpfMonQueryEvents *events, const struct ebpfMonQueryEvent *event);

/* Writes the last events into a result, the newest first. The caller holds the lock of the results. */
void ebpfMonQueryEventsCopy(const ebpfMonQueryEvents *events, ebpfMonQueryResult *result);

/* --- rows --- */

typedef struct ebpfMonQueryRows ebpfMonQueryRows;

/* "spec" stays the caller's; "keySize": bytes of a key. NULL without memory. */
ebpfMonQueryRows *ebpfMonQueryRowsNew(const ebpfMonQuerySpec *spec, unsigned keySize);
void ebpfMonQueryRowsFree(ebpfMonQueryRows *rows); /* NULL does no harm */

/* To read the results, call Begin, then Add for each key that the kernel part has, then End. "seconds": the time
 * since the last End, for rates. End takes the targets lock to look up names. Keys for which there is no memory are
 * left out. */
void ebpfMonQueryRowsBegin(ebpfMonQueryRows *rows);
void ebpfMonQueryRowsAdd(ebpfMonQueryRows *rows, const uint8_t *key, const struct ebpfMonQueryCell *cell);
void ebpfMonQueryRowsEnd(ebpfMonQueryRows *rows, const ebpfMonQueryNames *names, double seconds);

/* The histogram over all keys, of the last look: EBPFMON_QUERY_BARS_MAX bars (queryRows.h). */
const uint64_t *ebpfMonQueryRowsGetBars(const ebpfMonQueryRows *rows);

/* Writes the rows, their number, and the histogram into a result. The caller holds the lock of the results. */
void ebpfMonQueryRowsCopy(const ebpfMonQueryRows *rows, ebpfMonQueryResult *result);

#endif

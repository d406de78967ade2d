/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cells that the monitor fills itself, by key, where the kernel part cannot: a value belongs to a function of a stack,
 * or is what a put had in all. The query thread only.
 */
#ifndef EBPFMON_QUERYCELLS_H
#define EBPFMON_QUERYCELLS_H

#include <stddef.h>
#include <stdint.h>
#include "shared/ebpfMonQuery.h"
#include "query/queryPrograms.h"
#include "query/querySpec.h"

typedef struct {
    uint8_t key[EBPFMON_QUERY_KEY_SIZE]; /* unused bytes are 0 */
    struct ebpfMonQueryCell cell;
} ebpfMonQueryKeyCell;

/* Begins as all zeros. */
typedef struct {
    ebpfMonQueryKeyCell **cell; /* sorted by key */
    size_t count, room;
} ebpfMonQueryCells;

/* Frees all cells, not "cells" itself. */
void ebpfMonQueryCellsClear(ebpfMonQueryCells *cells);

/* Returns the cell of a key of EBPFMON_QUERY_KEY_SIZE bytes. NULL: there is none. */
ebpfMonQueryKeyCell *ebpfMonQueryCellsFind(const ebpfMonQueryCells *cells, const uint8_t *key);

/* The same, and makes it if there are fewer than "most". NULL: there is no room. */
ebpfMonQueryKeyCell *ebpfMonQueryCellsGet(ebpfMonQueryCells *cells, const uint8_t *key, size_t most);

/* Nonzero: the sum of this cell may have wrapped while so many events came. Their values are between the least and the
 * greatest one that the cell has had. */
int ebpfMonQueryCellMayWrap(const struct ebpfMonQueryCell *cell, uint64_t events);

/* Adds a value, as the programs in the kernel do. at: monotonic ns. */
void ebpfMonQueryCellAdd(const struct ebpfMonQueryPlan *plan, struct ebpfMonQueryCell *cell, int64_t value,
                         uint64_t at);

/* --- puts ---
 *
 * Distributions over puts. The kernel part has a cell for each put. When a put is over, this adds what it had in all,
 * the number of its events or the sum of their value, to the row of its other keys, as one value. The query thread
 * only.
 */

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

/* --- sites ---
 *
 * The results of a query that has the key "site": the function from which an event comes. The kernel part cannot find
 * it, because libraries have no frame pointers. So it sends each event with its stack, and the events are counted here,
 * as the kernel part counts those of other queries. If events come faster than stacks can be sent, the kernel part has
 * counted more than there are stacks: the rest has no site. The query thread only.
 */

typedef struct ebpfMonQuerySites ebpfMonQuerySites;

/* "spec" stays the caller's; "keySize": bytes of a key. NULL without memory. */
ebpfMonQuerySites *ebpfMonQuerySitesNew(const ebpfMonQuerySpec *spec, unsigned keySize);
void ebpfMonQuerySitesFree(ebpfMonQuerySites *sites); /* NULL does no harm */

/* Counts an event: its key as the kernel part has sent it, the name of its site, its value, and when it was (monotonic
 * ns). 0, or -1: there are "maxKeys" different keys, or no memory. */
int ebpfMonQuerySitesAdd(ebpfMonQuerySites *sites, const uint64_t *key, const char *site, int64_t value, uint64_t at);

typedef void (*ebpfMonQuerySitesAddCell)(void *arg, const uint8_t *key, const struct ebpfMonQueryCell *cell);

/* Calls "add" for each key, with the number of its site in it. */
void ebpfMonQuerySitesRead(const ebpfMonQuerySites *sites, ebpfMonQuerySitesAddCell add, void *arg);

/* Takes all events with a known site off a cell of the kernel part. What is left has the site 0; least and greatest
 * value stay those of all. "cell" has room for a histogram. */
void ebpfMonQuerySitesSubtract(const ebpfMonQuerySites *sites, const uint8_t *key, struct ebpfMonQueryCell *cell);

/* Returns the name of a site by its number, until Free; "-": there is none. */
const char *ebpfMonQuerySitesGetName(const ebpfMonQuerySites *sites, uint64_t number);

#endif

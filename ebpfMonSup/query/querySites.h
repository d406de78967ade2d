/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of a query that has the key "site": the function from which an event comes. The kernel part cannot find
 * it, because libraries have no frame pointers. So it sends each event with its stack, and the events are counted here,
 * as the kernel part counts those of other queries. If events come faster than stacks can be sent, the kernel part has
 * counted more than there are stacks: the rest has no site. The query thread only.
 */
#ifndef EBPFMON_QUERYSITES_H
#define EBPFMON_QUERYSITES_H

#include <stdint.h>

#include "query/querySpec.h"

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

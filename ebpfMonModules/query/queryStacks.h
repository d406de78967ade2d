/* SPDX-License-Identifier: BSD-3-Clause */
/* The stacks of the events of a query, folded: one line for each different stack, and how often it occurred. The
 * query thread only. */
#ifndef EBPFMON_QUERYSTACKS_H
#define EBPFMON_QUERYSTACKS_H

#include <stdint.h>
#include "query/queryKeyText.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryStacks ebpfMonQueryStacks;

/* All pointers stay the caller's. "sites" gets each event with its site; NULL: the query has no such key. NULL without
 * memory. */
ebpfMonQueryStacks *ebpfMonQueryStacksNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names,
                                          ebpfMonQuerySites *sites);
void ebpfMonQueryStacksFree(ebpfMonQueryStacks *stacks); /* NULL does no harm */

/* Adds the stack of an event. It may take seconds, because it reads the files of the process. Takes the targets lock
 * to look up names. */
void ebpfMonQueryStacksAdd(ebpfMonQueryStacks *stacks, const struct ebpfMonQueryEvent *event);

/* Makes lines of all stacks that were added. Returns how many stacks were left out since the start, because there
 * was no room or no memory. */
uint64_t ebpfMonQueryStacksFinish(ebpfMonQueryStacks *stacks);

/* Returns the lines "IOC;thread;key;function;function COUNT", sorted; the caller frees the text by free(). NULL without
 * memory. */
char *ebpfMonQueryStacksGetText(const ebpfMonQueryStacks *stacks);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The stacks of a query's events, folded: a line for each different one, and how often it was. The query thread only. */
#ifndef EBPFMON_QUERYSTACKS_H
#define EBPFMON_QUERYSTACKS_H

#include "query/queryKeyText.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryStacks ebpfMonQueryStacks;

ebpfMonQueryStacks *ebpfMonQueryStacksNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names); /* NULL: no memory */
void ebpfMonQueryStacksFree(ebpfMonQueryStacks *stacks); /* NULL does no harm */

/* Takes the stack of an event. It may take seconds to read the files of its process. */
void ebpfMonQueryStacksAdd(ebpfMonQueryStacks *stacks, const struct ebpfMonQueryEvent *event);

/* Makes lines of all stacks that were added. Returns how many lines had no room, since the start. */
uint64_t ebpfMonQueryStacksFinish(ebpfMonQueryStacks *stacks);

/* The lines "IOC;thread;key;function;function COUNT", by name; free() it. NULL: no memory. */
char *ebpfMonQueryStacksGetText(const ebpfMonQueryStacks *stacks);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Publishes traces as text: to the published values, and to the shell if ebpfMonTrace asks for them. To write a text
 * takes longer than all else that is done for a trace, and when many come, nobody sees most of them. So traces are
 * held for some milliseconds, and only those are written that find room in the PV. Event thread only.
 */
#ifndef EBPFMON_SLOWCHAINS_H
#define EBPFMON_SLOWCHAINS_H

#include <stddef.h>
#include "publish/tracePrinter.h"
#include "trace/traceWalk.h"

typedef struct ebpfMonSlowChains ebpfMonSlowChains;

/* "targets", "printer" and "walk" stay the caller's. NULL without memory. */
ebpfMonSlowChains *ebpfMonSlowChainsNew(ebpfMonTargets *targets, ebpfMonTracePrinter *printer, ebpfMonTraceWalk *walk);
void ebpfMonSlowChainsFree(ebpfMonSlowChains *slow); /* NULL does no harm */

/* Takes a trace that is complete, or that cannot become complete any more, if the filter shows one of its records.
 * Nonzero: the trace is this module's now, which frees it. "unixOffset": what to add to monotonic time to get the time
 * since 1970, ns. Under the targets lock. */
int ebpfMonSlowChainsAdd(ebpfMonSlowChains *slow, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset);

/* Nonzero: ebpfMonSlowChainsAdd would print this trace. Under the targets lock. */
int ebpfMonSlowChainsPrints(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace);

/* Writes what is held, if it is due, or in any case; notifies the group ebpfMonGroupSlow. Call it when events were
 * read, and at the time that GetDue returns (monotonic ns; UINT64_MAX: never). Not under the targets lock. */
void ebpfMonSlowChainsTick(ebpfMonSlowChains *slow, uint64_t now, int all);
uint64_t ebpfMonSlowChainsGetDue(const ebpfMonSlowChains *slow);

/* Inserts "length" characters of text (whole traces, whose lines begin with spaces but for the first) at the beginning
 * of "buf". If there is no room for everything, the last traces of "buf" are dropped. */
void ebpfMonSlowChainsPrepend(char *buf, size_t size, const char *text, size_t length);

#endif

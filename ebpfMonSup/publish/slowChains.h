/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes traces as text: to the published values, and to the shell if ebpfMonTrace asks for them. Event thread
 * only. */
#ifndef EBPFMON_SLOWCHAINS_H
#define EBPFMON_SLOWCHAINS_H

#include <stddef.h>
#include "publish/tracePrinter.h"
#include "trace/traceWalk.h"

typedef struct ebpfMonSlowChains ebpfMonSlowChains;

/* "printer" and "walk" stay the caller's. NULL without memory. */
ebpfMonSlowChains *ebpfMonSlowChainsNew(ebpfMonTracePrinter *printer, ebpfMonTraceWalk *walk);
void ebpfMonSlowChainsFree(ebpfMonSlowChains *slow);

/* Publishes a trace that is complete, or that cannot become complete any more, if the filter shows one of its records.
 * Notifies the group ebpfMonGroupSlow. "unixOffset": what to add to monotonic time to get the time since 1970, ns.
 * Under the targets lock. */
void ebpfMonSlowChainsPublish(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace,
                              uint64_t unixOffset);

/* Nonzero: ebpfMonSlowChainsPublish would write this trace. Under the targets lock. */
int ebpfMonSlowChainsWrites(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace);

/* Inserts "length" characters of text (whole lines) at the beginning of "buf". If there is no room for everything, the
 * last lines of "buf" are dropped. */
void ebpfMonSlowChainsPrepend(char *buf, size_t size, const char *text, size_t length);

#endif

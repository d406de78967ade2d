/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces for people: as text to the published values, and to the shell where ebpfMonTrace asks for them. Event thread
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

/* A trace that is complete, or never will be. "unixOffset": from monotonic time to time since 1970, ns. Publishes the group ebpfMonGroupSlow, and tells the listener. Under the
 * targets lock. */
void ebpfMonSlowChainsPublish(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace,
                              uint64_t unixOffset);

/* Puts "length" characters of text, whole lines, before those in "buf". If there is no room for all, the last lines
 * go. */
void ebpfMonSlowChainsPrepend(char *buf, size_t size, const char *text, size_t length);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ids the traces and the spans of their chains have. Event thread only. */
#ifndef EBPFMON_TRACEIDS_H
#define EBPFMON_TRACEIDS_H

#include "trace/traces.h"

typedef struct ebpfMonTraceIds ebpfMonTraceIds;

/* "salt": random, so that the chains of each life of the monitor get other ids. "traces" and "messages" outlive it.
 * NULL without memory. */
ebpfMonTraceIds *ebpfMonTraceIdsNew(uint64_t salt, ebpfMonTraces *traces, ebpfMonLinkMessages *messages);
void ebpfMonTraceIdsFree(ebpfMonTraceIds *ids); /* NULL does no harm */

/* Span id of a chain ("number" 0), or of its records (from 1 on). */
void ebpfMonTraceIdsGetChainSpan(const ebpfMonTraceIds *ids, const ebpfMonChainId *chain, uint32_t number,
                                 uint8_t span[8]);

/* Chooses the id of the trace, and those of the open traces that caused it, unless they have one. */
void ebpfMonTraceIdsChoose(const ebpfMonTraceIds *ids, ebpfMonTrace *trace);

#endif

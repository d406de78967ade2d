/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces that ended a moment ago, by their chains. A chain that comes later may belong to such a trace: it
 * got a value through a CA link of that trace, its CP link watches one of its records, or it completes a record that
 * the trace left processing. Event thread only.
 */
#ifndef EBPFMON_FINISHEDTRACES_H
#define EBPFMON_FINISHEDTRACES_H

#include "model/chainId.h"

typedef struct ebpfMonFinishedTraces ebpfMonFinishedTraces;

typedef struct {
    ebpfMonChainId chain;
    ebpfMonChainId owner; /* the chain of the same trace that has the span of "chain" (ebpfMonTraceFindSpanOwner) */
    uint8_t traceId[16];
} ebpfMonFinishedChain;

ebpfMonFinishedTraces *ebpfMonFinishedTracesNew(void); /* NULL without memory */
void ebpfMonFinishedTracesFree(ebpfMonFinishedTraces *finished); /* NULL does no harm */

/* Copies what is known of a chain of such a trace. */
void ebpfMonFinishedTracesAdd(ebpfMonFinishedTraces *finished, const ebpfMonFinishedChain *chain);

/* Valid until the next call of …Add. NULL: the trace of this chain is still open, or had no id, or ended too long
 * ago. */
const ebpfMonFinishedChain *ebpfMonFinishedTracesFind(const ebpfMonFinishedTraces *finished,
                                                      const ebpfMonChainId *chain);

#endif

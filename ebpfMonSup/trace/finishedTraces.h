/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids of traces that ended a moment ago, by their chains. A chain that comes later may belong to such a trace: it
 * got a value through a CA link of that trace, its CP link watches one of its records, or it completes a record that
 * the trace left processing. Event thread only.
 */
#ifndef EBPFMON_FINISHEDTRACES_H
#define EBPFMON_FINISHEDTRACES_H

#include "model/chainId.h"

typedef struct ebpfMonFinishedTraces ebpfMonFinishedTraces;

ebpfMonFinishedTraces *ebpfMonFinishedTracesNew(void); /* NULL without memory */
void ebpfMonFinishedTracesFree(ebpfMonFinishedTraces *finished); /* NULL does no harm */

/* "chain" was one of a trace of this id. */
void ebpfMonFinishedTracesAdd(ebpfMonFinishedTraces *finished, const ebpfMonChainId *chain, const uint8_t traceId[16]);

/* The id of the trace that this chain was one of, valid until the next call of …Add. NULL: its trace is still open, or
 * had no id, or ended too long ago. */
const uint8_t *ebpfMonFinishedTracesFind(const ebpfMonFinishedTraces *finished, const ebpfMonChainId *chain);

#endif

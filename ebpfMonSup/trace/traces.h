/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes traces of chains: each chain that was kept, with all that belongs to it: the chains that completed its
 * asynchronous records, what it handed over to other threads, and the put that caused it. A trace is finished once all
 * of that has come, or will not come any more. Event thread only.
 */
#ifndef EBPFMON_TRACES_H
#define EBPFMON_TRACES_H

#include "put/threadPuts.h"
#include "trace/linkMessages.h"
#include "trace/trace.h"

typedef struct ebpfMonTraces ebpfMonTraces;

/* What it uses; all of it outlives the traces. */
typedef struct {
    ebpfMonTargets *targets;
    const ebpfMonThreadPuts *threadPuts;
    ebpfMonLinkMessages *linkMessages;
    int (*exportsSpans)(void); /* nonzero: spans are exported; then a trace waits for what its id depends on, too */
} ebpfMonTracesUses;

/* Gets each trace that is finished; may choose its id. The trace is freed afterwards. Under ebpfMonTargetsLock. */
typedef void (*ebpfMonTraceFn)(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace);

/* NULL without memory. */
ebpfMonTraces *ebpfMonTracesNew(const ebpfMonTracesUses *uses, ebpfMonTraceFn onTrace, void *arg);

/* Frees the open traces without finishing them; NULL does no harm. */
void ebpfMonTracesFree(ebpfMonTraces *traces);

/* A complete chain; "rec" in any order, with slots. Under ebpfMonTargetsLock. */
void ebpfMonTracesAddChain(ebpfMonTraces *traces, ebpfMonTarget *t, const struct ebpfMonChain *chain,
                           const struct ebpfMonChainRec *rec, uint32_t count);

/* A put is finished: it may be the one that a chain began with. "tid", "id": the thread that made it, and its number
 * among the puts of that thread (struct ebpfMonPutEvent). */
void ebpfMonTracesAddPut(ebpfMonTraces *traces, uint32_t iocId, uint32_t tid, uint64_t id,
                         const ebpfMonPutSummary *put);

/* A thread begins to work on what a chain handed over: its chain comes next. */
void ebpfMonTracesBeginHandOver(ebpfMonTraces *traces, const struct ebpfMonHandOverEvent *ev);

/* … and is done with it, or it never will be done. */
void ebpfMonTracesEndHandOver(ebpfMonTraces *traces, const struct ebpfMonHandOverEvent *ev);

/* Finishes the traces that have waited long enough; "all": every open one. "now": monotonic ns. */
void ebpfMonTracesTick(ebpfMonTraces *traces, uint64_t now, int all);

/* When to do that even if nothing comes (monotonic ns); UINT64_MAX: never. Whoever has an IOC that ends finishes the traces
 * of that IOC up to a second later, for nothing tells it. */
uint64_t ebpfMonTracesGetDue(const ebpfMonTraces *traces, uint64_t now);

/* The open trace that has this chain. NULL: none. */
ebpfMonTrace *ebpfMonTracesFindOpen(const ebpfMonTraces *traces, const ebpfMonChainId *chain);

/* The id of the finished trace that had this chain; valid until the next trace is finished. NULL: none that is known. */
const uint8_t *ebpfMonTracesFindFinishedId(const ebpfMonTraces *traces, const ebpfMonChainId *chain);

/* Open traces, and the records that they keep. */
unsigned ebpfMonTracesCountOpen(const ebpfMonTraces *traces);
uint32_t ebpfMonTracesCountRecords(const ebpfMonTraces *traces);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes traces of chains that were kept. A trace has a chain and all that belongs to it: the chains that completed its
 * asynchronous records, the chains of its hand-overs, and the put that caused it. A trace is finished when all of these
 * have come, or cannot come any more. Event thread only.
 */
#ifndef EBPFMON_TRACES_H
#define EBPFMON_TRACES_H

#include "ebpfMonEvent.h"
#include "ebpfMonTable.h"
#include "model/put.h"
#include "put/threadPuts.h"
#include "trace/linkMessages.h"
#include "trace/trace.h"
#include "trace/traceText.h"

/* --- chains that hand over ---
 *
 * Hand-overs of chains to other threads: callbacks, and records for scanOnce. The kernel part sends two kinds of
 * events. The first comes just before each chain to which a hand-over led, and tells the source chain. The second comes
 * when the thread has completed the hand-over; it can come before the event of the source chain. It has the number of
 * chains that the hand-over led to, so it shows if one of them did not arrive. Event thread only. */

typedef struct ebpfMonHandOvers ebpfMonHandOvers;

ebpfMonHandOvers *ebpfMonHandOversNew(void); /* NULL without memory */
void ebpfMonHandOversFree(ebpfMonHandOvers *handOvers); /* NULL does no harm */

/* The thread of "ev" works on a hand-over; its chain comes next. */
void ebpfMonHandOversNoteBegin(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev);

/* The hand-over that led to this chain. NULL: none is known. Valid until the next call of …NoteBegin. */
const struct ebpfMonHandOver *ebpfMonHandOversFind(const ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain);

/* This chain arrived, and a hand-over led to it. */
void ebpfMonHandOversCountChain(ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain);

/* The thread of "ev" has completed its hand-over. Nonzero: not all chains of this hand-over have arrived. */
int ebpfMonHandOversNoteEnd(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev);

/* One hand-over of this source chain was completed, and the event of the source chain has not come yet. "isPartial":
 * not all chains of this hand-over have arrived. */
void ebpfMonHandOversNoteEarlyEnd(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int isPartial);

/* Returns how many such hand-overs there were, and forgets them. Called when the event of the source chain comes.
 * *isPartial: one of them was partial. */
uint32_t ebpfMonHandOversTakeEarlyEnds(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int *isPartial);

/* --- traces that ended a moment ago ---
 *
 * Traces that ended a moment ago, by their chains. A chain that comes later may belong to such a trace: it
 * got a value through a CA link of that trace, its CP link watches one of its records, or it completes a record that
 * the trace left processing. Event thread only.
 */

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

/* Calls "each" for every thread of an IOC that was seen. */
typedef void (*ebpfMonEachThreadFn)(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg);

typedef struct ebpfMonTraces ebpfMonTraces;

/* What it uses; all of it outlives the traces. */
typedef struct {
    ebpfMonTargets *targets;
    const ebpfMonThreadPuts *threadPuts;
    ebpfMonLinkMessages *linkMessages;
    int (*exportsSpans)(void *exporter); /* nonzero: spans are exported; then a trace waits for what its id depends on,
                                          * too */
    void *exporter;
    uint64_t (*countLost)(void *arg); /* how many events were lost so far; gets the argument of ebpfMonTraceFn. Called
                                       * for each trace. NULL: nobody counts them */
    ebpfMonEachThreadFn eachThread; /* NULL: which chains are under way is not known */
    ebpfMonTraceTestFn isDescribed; /* nonzero: ebpfMonTraceFn, whose argument it gets, will describe this trace; NULL:
                                     * it describes none */
} ebpfMonTracesUses;

/* Gets each trace that is finished; may choose its id. Nonzero: the trace is its own now; 0: the trace is freed
 * afterwards. Under ebpfMonTargetsLock. */
typedef int (*ebpfMonTraceFn)(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace);

/* NULL without memory. */
ebpfMonTraces *ebpfMonTracesNew(const ebpfMonTracesUses *uses, ebpfMonTraceFn onTrace, void *arg);

/* Frees the open traces without finishing them; NULL does no harm. */
void ebpfMonTracesFree(ebpfMonTraces *traces);

/* A complete chain; "rec" in any order, with slots. Under ebpfMonTargetsLock. Without the lock,
 * ebpfMonTracesFinishChain follows: it finishes the trace of this chain if that is complete, and the oldest ones if
 * there are too many. */
void ebpfMonTracesAddChain(ebpfMonTraces *traces, ebpfMonTarget *t, const struct ebpfMonChain *chain,
                           const struct ebpfMonChainRec *rec, uint32_t count);
void ebpfMonTracesFinishChain(ebpfMonTraces *traces);

/* A put is finished: it may be the one that a chain began with. "tid", "id": the thread that made it, and its number
 * among the puts of that thread (struct ebpfMonPutEvent). */
void ebpfMonTracesAddPut(ebpfMonTraces *traces, uint32_t iocId, uint32_t tid, uint64_t id,
                         const ebpfMonPutSummary *put);

/* A thread begins to work on a hand-over: its chain comes next. */
void ebpfMonTracesBeginHandOver(ebpfMonTraces *traces, const struct ebpfMonHandOverEvent *ev);

/* The thread has completed the hand-over, or the hand-over will never be completed. */
void ebpfMonTracesEndHandOver(ebpfMonTraces *traces, const struct ebpfMonHandOverEvent *ev);

/* Finishes the traces that have waited long enough; "all": every open one. "now": monotonic ns. */
void ebpfMonTracesTick(ebpfMonTraces *traces, uint64_t now, int all);

/* When to call ebpfMonTracesTick even if nothing comes (monotonic ns); UINT64_MAX: never. When an IOC ends, its traces
 * are finished up to a second later, because no event tells it here. */
uint64_t ebpfMonTracesGetDue(const ebpfMonTraces *traces, uint64_t now);

/* The open trace that has this chain. NULL: none. */
ebpfMonTrace *ebpfMonTracesFindOpen(const ebpfMonTraces *traces, const ebpfMonChainId *chain);

/* The id of the finished trace that had this chain; valid until the next trace is finished. NULL: none that is
 * known. */
const uint8_t *ebpfMonTracesFindFinishedId(const ebpfMonTraces *traces, const ebpfMonChainId *chain);

/* The chain that has the span of this one (ebpfMonTraceFindSpanOwner), in an open or a finished trace; the chain itself
 * if no trace that is known has it. */
ebpfMonChainId ebpfMonTracesFindSpanOwner(const ebpfMonTraces *traces, const ebpfMonChainId *chain);

/* Open traces, and the records that they keep. */
unsigned ebpfMonTracesCountOpen(const ebpfMonTraces *traces);
uint32_t ebpfMonTracesCountRecords(const ebpfMonTraces *traces);

#endif

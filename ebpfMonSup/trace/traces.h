/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains that were kept whole, each with all that belongs to it: the chains that asynchronous records completed later,
 * what was handed over to other threads, and the put that set it going. Told once everything has come, or does not come any more. Event thread only.
 */
#ifndef EBPFMON_TRACES_H
#define EBPFMON_TRACES_H

#include "ebpfMonEvent.h"
#include "trace/cpLinkSources.h"
#include "trace/traceChain.h"
#include "put/threadPuts.h"
#include "watch/target.h"

#define EBPFMON_TRACE_CHAINS 64 /* of one trace; each may be below the one before */
#define EBPFMON_TRACE_BUSY 32 /* records of one trace whose completion is waited for */

typedef struct ebpfMonTrace {
    struct ebpfMonTrace *next;
    uint32_t iocId;
    ebpfMonCatalogue *cat; /* held: what the indexes are of */
    ebpfMonTraceChain *first, *last;
    unsigned chains;
    uint32_t records;      /* kept, in all chains */
    uint32_t busy[EBPFMON_TRACE_BUSY]; /* 1 + index; 0: free */
    uint32_t handed;       /* what its chains handed over and is not done */
    int      early;        /* the chain that handed over its first half is not known yet */
    uint8_t *caLink;       /* a CP link set it going: as in struct ebpfMonHandOver, until the source is found */
    ebpfMonCpLinkSource source;
    int      cut;          /* something belongs to it that is not in it */
    uint64_t since;        /* ns; the end of the last half */
    unsigned sends;        /* written through CA links */
    int      hasId;        /* "id" is chosen */
    uint8_t  id[16];       /* OpenTelemetry's trace id */
    int      wantsPut;     /* the put of this number, by the first half's thread, has not come yet */
    uint64_t putId;
    ebpfMonPutSummary *put;  /* NULL: no put set it going */
} ebpfMonTrace;

/* The one that wrote through a link to another channel, or whose record a CP link watches; iocId 0: none that is known. */
ebpfMonChainId ebpfMonTraceSender(const ebpfMonTrace *trace);

/* Called for each trace that is complete, or never will be; under ebpfMonTargetsLock. May choose its id. */
typedef void (*ebpfMonTraceFn)(ebpfMonTarget *t, ebpfMonTrace *trace);
void ebpfMonTracesStart(const ebpfMonThreadPuts *threadPuts, ebpfMonTraceFn tell);

/* The one that this chain is a half of, while it is open; NULL: none. */
ebpfMonTrace *ebpfMonTracesFindByChain(const ebpfMonChainId *chain);

/* A complete chain; "rec" in any order, with slots. Under ebpfMonTargetsLock. */
void ebpfMonTracesAddChain(ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                        uint32_t count);

/* A put that a chain may have begun with was published. */
void ebpfMonTracesAddPut(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonPutSummary *put);

/* Something that a chain handed over is done. */
void ebpfMonTracesEndHandOver(const struct ebpfMonHandOverEvent *ev);

/* Tells those that waited long enough; "all": everything. */
void ebpfMonTracesTick(uint64_t now, int all);

#endif

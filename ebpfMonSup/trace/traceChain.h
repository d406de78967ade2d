/* SPDX-License-Identifier: BSD-3-Clause */
/* One chain of a trace. Event thread only. */
#ifndef EBPFMON_TRACECHAIN_H
#define EBPFMON_TRACECHAIN_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "watch/target.h"

/* What one thread did with a lock set held. Records are given by their index in the catalogue. */
typedef struct ebpfMonTraceChain {
    struct ebpfMonTraceChain *next;
    struct ebpfMonTraceChain *same;  /* the next one of its hash … */
    struct ebpfMonTrace *trace; /* … and what it is a part of; traces.c sets it */
    struct ebpfMonChain chain; /* rootSlot an index, async and outer 1 + index */
    ebpfMonChainId by;         /* the chain that handed it over, as a callback or for scanOnce; iocId 0: none */
    uint32_t byRoot;           /* 1 + index of what that one began with; 0: not known */
    uint64_t delay;            /* ns that it was to wait before it came into its queue */
    uint32_t count;
    struct ebpfMonChainRec rec[]; /* in the order of their time stamps; slot an index */
} ebpfMonTraceChain;

/* A record's time stamp as one number: ns since 1990. */
static inline int64_t ebpfMonStampNs(uint64_t time)
{
    return (int64_t)((time & 0xffffffff) * 1000000000u + (time >> 32));
}

ebpfMonChainId ebpfMonTraceChainId(const ebpfMonTraceChain *half);
/* The one that left its root processing. */
ebpfMonChainId ebpfMonTraceChainBegunBy(const ebpfMonTraceChain *half);

/* "rec" in any order, with slots. NULL: no memory; free() ends it. */
ebpfMonTraceChain *ebpfMonTraceChainNew(const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                            const struct ebpfMonChainRec *rec, uint32_t count);

/* Those that are to be found: each chain, and each hand-over that is done, looks for one. Forget it before free(). */
void ebpfMonTraceChainRemember(ebpfMonTraceChain *half);
void ebpfMonTraceChainForget(const ebpfMonTraceChain *half);
ebpfMonTraceChain *ebpfMonTraceChainFind(const ebpfMonChainId *chain);

/* Another chain handed it over. */
void ebpfMonTraceChainSetSource(const ebpfMonTarget *t, ebpfMonTraceChain *half, const struct ebpfMonHandOver *from);

/* For the CP links that watch its records. */
void ebpfMonTraceChainNoteStamps(const ebpfMonTraceChain *half);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* One chain of a trace. Event thread only. */
#ifndef EBPFMON_HALF_H
#define EBPFMON_HALF_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "monitor/target.h"

/* What one thread did with a lock set held. Records are given by their index in the catalogue. */
typedef struct ebpfMonHalf {
    struct ebpfMonHalf *next;
    struct ebpfMonHalf *same;  /* the next one of its hash … */
    struct ebpfMonTrace *trace; /* … and what it is a part of; traces.c sets it */
    struct ebpfMonChain chain; /* rootSlot an index, async and outer 1 + index */
    ebpfMonChainId by;         /* the chain that handed it over, as a callback or for scanOnce; iocId 0: none */
    uint32_t byRoot;           /* 1 + index of what that one began with; 0: not known */
    uint64_t delay;            /* ns that it was to wait before it came into its queue */
    uint32_t count;
    struct ebpfMonChainRec rec[]; /* in the order of their time stamps; slot an index */
} ebpfMonHalf;

/* A record's time stamp as one number: ns since 1990. */
static inline int64_t ebpfMonStampNs(uint64_t time)
{
    return (int64_t)((time & 0xffffffff) * 1000000000u + (time >> 32));
}

ebpfMonChainId ebpfMonHalfId(const ebpfMonHalf *half);
/* The one that left its root processing. */
ebpfMonChainId ebpfMonBegunBy(const ebpfMonHalf *half);

/* "rec" in any order, with slots. NULL: no memory; free() ends it. */
ebpfMonHalf *ebpfMonHalfNew(const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                            const struct ebpfMonChainRec *rec, uint32_t count);

/* Those that are to be found: each chain, and each hand-over that is done, looks for one. Forget it before free(). */
void ebpfMonHalfRemember(ebpfMonHalf *half);
void ebpfMonHalfForget(const ebpfMonHalf *half);
ebpfMonHalf *ebpfMonHalfFind(const ebpfMonChainId *chain);

/* Another chain handed it over. */
void ebpfMonHalfOrigin(const ebpfMonTarget *t, ebpfMonHalf *half, const struct ebpfMonHanded *from);

/* For the CP links that watch its records. */
void ebpfMonHalfNote(const ebpfMonHalf *half);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks through a trace as one tree: the records of its first chain, each below the one that made it process; and below
 * the records the other chains: what completed an asynchronous record, and what was handed over. Event thread only.
 */
#ifndef EBPFMON_TRACEWALK_H
#define EBPFMON_TRACEWALK_H

#include "trace/trace.h"
#include "trace/traceShape.h"

/* A chain in the tree. */
typedef struct ebpfMonWalkChain {
    const ebpfMonTraceChain *chain;
    const ebpfMonTraceShape *shape; /* its records */
    const struct ebpfMonWalkChain *above; /* the chain below which it hangs; NULL: none, it is the first */
    uint32_t nodeAbove;  /* … below this record of that chain's shape; EBPFMON_NO_PARENT: below the chain itself */
    unsigned level;      /* chains above it; less than EBPFMON_TRACE_CHAINS */
    int      completes;  /* it completes the record above it; else, if it is not the first, it was handed over */
} ebpfMonWalkChain;

/* A record in the tree. */
typedef struct {
    uint32_t node;       /* in the shape of its chain */
    uint32_t index;      /* in the catalogue */
    uint32_t parent;     /* node that made it process; EBPFMON_NO_PARENT: the root, or it is not known which did */
    unsigned depth;      /* in the tree of the whole trace; of the root of the first chain 0 */
    int      isRoot;     /* of its chain */
    const char *via;     /* the field of the link by which "parent" made it process; "" without parent */
    const struct ebpfMonChainRec *rec; /* NULL: it still processes when its chain ends … */
    const ebpfMonTraceChain *completedBy; /* … and this is the last chain that completed it; NULL: none that is known */
    int      isRepeated; /* the root of a chain that completes it, and it still processes: it stands above, too */
} ebpfMonWalkRecord;

/* What is called for each part of the tree, from top to bottom. Nonzero from enterRecord or enterChain ends the
 * walk. */
typedef struct {
    int (*enterChain)(void *arg, const ebpfMonWalkChain *c); /* before its records; may be NULL */
    int (*enterRecord)(void *arg, const ebpfMonWalkChain *c, const ebpfMonWalkRecord *r);
    void (*skipChain)(void *arg, const ebpfMonTraceChain *c); /* no memory for its shape; may be NULL */
} ebpfMonTraceVisitor;

typedef struct ebpfMonTraceWalk ebpfMonTraceWalk;

/* Memory for one walk at a time. NULL without memory. */
ebpfMonTraceWalk *ebpfMonTraceWalkNew(void);
void ebpfMonTraceWalkFree(ebpfMonTraceWalk *walk); /* NULL does no harm */

/* Walks through the trace, whose indexes are of trace->cat. What a call of the visitor gets is valid during that call,
 * but for "above": as long as the chains below it are walked. */
void ebpfMonTraceWalkRun(ebpfMonTraceWalk *walk, const ebpfMonTrace *trace, const ebpfMonTraceVisitor *visitor,
                         void *arg);

#endif

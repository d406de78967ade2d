/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks through a trace as one tree: the records of its first chain, each below the one that made it process; and below
 * the records the other chains: what completed an asynchronous record, and what was handed over. Event thread only.
 */
#ifndef EBPFMON_TRACEWALK_H
#define EBPFMON_TRACEWALK_H

#include <stdint.h>
#include "trace/trace.h"

/* --- the tree of a chain ---
 *
 * Makes a tree of the records that one chain processed: below each record are those that it made process. The tree
 * follows from time stamps and links. FLNK makes its target process after its own record got its time stamp, an input
 * link before that; other links do it before or after, which depends on the record type (fanout gets its time stamp
 * when all its links are done). Works on numbers alone. Any thread.
 */

#define EBPFMON_NO_PARENT UINT32_MAX

typedef struct {
    int64_t  time;   /* ns: the time stamp of the record */
    uint32_t parent; /* node that made it process; EBPFMON_NO_PARENT: it is the root, or it is not known which did */
    uint32_t via;    /* of the link that made it process */
    uint32_t depth;  /* of the root 0; of the others without parent 1 */
} ebpfMonTreeNode;

typedef struct {
    uint32_t from, to; /* nodes: "from" has the link */
    uint32_t via;      /* a number of the caller's, which becomes the node's */
    enum { ebpfMonTreeAfter, ebpfMonTreeBefore, ebpfMonTreeEither } when; /* "to" gets its time stamp after or before
                                                                             "from" does */
} ebpfMonTreeEdge;

/* Sets parent, via and depth of the nodes, which are in the order of their times, and fills "order" with the nodes as
 * they are to be read: a record stands before those that it made process, which follow in the order of their times. Of
 * several links that could have made a record process it takes the one that is nearest in time. 0, or -1: no memory. */
int ebpfMonTreeMake(ebpfMonTreeNode *node, uint32_t nodes, uint32_t root, const ebpfMonTreeEdge *edge, uint32_t edges,
                    uint32_t *order);

/* --- the tree of its records ---
 *
 * The tree of the records of one chain: each record stands below the one that made it process. Event thread only.
 */

/* The kept records of a chain, its root, and the asynchronous records that it left processing. */
#define EBPFMON_TRACE_SHAPE_NODES (EBPFMON_CHAIN_RECORDS + 1 + EBPFMON_ASYNC)

typedef struct {
    uint32_t nodes;
    ebpfMonTreeNode node[EBPFMON_TRACE_SHAPE_NODES]; /* time: ns since 1970 */
    uint32_t order[EBPFMON_TRACE_SHAPE_NODES];  /* nodes as they are to be read: each before those that it made
                                                 * process */
    uint32_t record[EBPFMON_TRACE_SHAPE_NODES]; /* by node: index in the catalogue; each record once */
    const struct ebpfMonChainRec *rec[EBPFMON_TRACE_SHAPE_NODES]; /* by node; NULL: it still processes when the chain
                                                                   * ends */
} ebpfMonTraceShape;

/* --- the walk --- */

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
 * except "above": that is valid as long as the chains below it are walked. */
void ebpfMonTraceWalkRun(ebpfMonTraceWalk *walk, const ebpfMonTrace *trace, const ebpfMonTraceVisitor *visitor,
                         void *arg);

#endif

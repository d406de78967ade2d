/* SPDX-License-Identifier: BSD-3-Clause */
/* Who made whom process in one half of a trace. Event thread only. */
#ifndef EBPFMON_TRACESHAPE_H
#define EBPFMON_TRACESHAPE_H

#include "trace/chainTree.h"
#include "trace/traces.h"

#define EBPFMON_TRACE_SHAPE_NODES (2048 + 1 + EBPFMON_ASYNC) /* records of one chain that are kept, and those that it left processing */

typedef struct {
    uint32_t nodes;
    ebpfMonTreeNode node[EBPFMON_TRACE_SHAPE_NODES];
    uint32_t order[EBPFMON_TRACE_SHAPE_NODES];  /* as they are to be read */
    uint32_t record[EBPFMON_TRACE_SHAPE_NODES]; /* by node: index in the catalogue */
    const struct ebpfMonChainRec *rec[EBPFMON_TRACE_SHAPE_NODES]; /* NULL: it processes still, when this half ends */
} ebpfMonTraceShape;

/* 0, or -1: no memory. */
int ebpfMonTraceShapeMake(const ebpfMonTarget *t, const ebpfMonTraceChain *half, ebpfMonTraceShape *shape);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of the records of one chain: each record stands below the one that made it process. Event thread only. */
#ifndef EBPFMON_TRACESHAPE_H
#define EBPFMON_TRACESHAPE_H

#include "trace/chainTree.h"
#include "trace/traceChain.h"

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

/* Memory that making a shape needs; one for all shapes. */
typedef struct ebpfMonTraceShaper ebpfMonTraceShaper;

ebpfMonTraceShaper *ebpfMonTraceShaperNew(void); /* NULL without memory */
void ebpfMonTraceShaperFree(ebpfMonTraceShaper *shaper); /* NULL does no harm */

/* "cat": the catalogue that the chain's indexes are of. The shape points into the chain. 0, or -1: no memory. */
int ebpfMonTraceShaperMake(ebpfMonTraceShaper *shaper, const ebpfMonCatalogue *cat, const ebpfMonTraceChain *c,
                           ebpfMonTraceShape *shape);

#endif

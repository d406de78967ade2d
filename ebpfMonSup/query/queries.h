/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queries that are loaded, and the thread that runs them. The thread is made when the first query starts, and the
 * eBPF programs of each query when it starts. One lock guards the list; it is not held while programs are loaded or
 * tables are read.
 */
#ifndef EBPFMON_QUERIES_H
#define EBPFMON_QUERIES_H

#include "common/textReport.h"
#include "model/ops.h"
#include "model/queryValues.h"
#include "probe/calibrate.h"
#include "query/queryRun.h"
#include "watch/target.h"

typedef struct ebpfMonQueries ebpfMonQueries;

/* The caller frees "results" after the queries. NULL without memory. */
ebpfMonQueries *ebpfMonQueriesNew(ebpfMonQueryResults *results);

/* --- For the composition root --- */

/* From now on queries can run. "targets" and "costs" stay the caller's, and must stay until Stop has returned 0. */
void ebpfMonQueriesBegin(ebpfMonQueries *queries, ebpfMonTargets *targets, const ebpfMonCosts *costs);
/* Stops all queries for ever; waits at most "seconds". 0, or -1: the thread did not end in time, and still uses the
 * kernel part. */
int ebpfMonQueriesStop(ebpfMonQueries *queries, double seconds);

/* Sets the operations, which shell commands and records call. The table keeps the pointer "queries". */
void ebpfMonQueryOperationsFill(ebpfMonQueries *queries, ebpfMonQueryOps *ops);

#endif

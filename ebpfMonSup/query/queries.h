/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queries that are loaded, and the thread that runs them. The thread is made when the first query starts, and the
 * eBPF programs of each query when it starts. One lock guards the list; it is not held while programs are loaded or
 * tables are read.
 */
#ifndef EBPFMON_QUERIES_H
#define EBPFMON_QUERIES_H

#include "common/textReport.h"
#include "model/queryValues.h"
#include "probe/calibrate.h"
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

/* --- Any thread, without a lock. model/queryOps.h describes these functions. 0, or -1: the file is refused, or
 * there is no query of this name --- */

long ebpfMonQueriesLoad(ebpfMonQueries *queries, const char *file, char *text, size_t size);
long ebpfMonQueriesRun(ebpfMonQueries *queries, const char *name, int on);
void ebpfMonQueriesAddList(ebpfMonQueries *queries, ebpfMonTextReport *report);
long ebpfMonQueriesAddResult(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name);
long ebpfMonQueriesAddStacks(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queries that are loaded, and the thread that runs them. The thread is made when the first query starts, and the
 * eBPF programs of each query when it starts. One lock guards the list; it is not held while programs are loaded or
 * tables are read.
 */
#ifndef EBPFMON_QUERIES_H
#define EBPFMON_QUERIES_H

#include "ebpfMonModule.h"
#include "common/textReport.h"
#include "query/queryValues.h"

typedef struct ebpfMonQueries ebpfMonQueries;

/* Both arguments must stay as long as the queries do. NULL without memory. */
ebpfMonQueries *ebpfMonQueriesNew(const ebpfMonModule *module, ebpfMonQueryResults *results);

/* From now on queries can run. What "core" leads to must stay until Stop has returned 0. */
int ebpfMonQueriesBegin(void *queries, const ebpfMonModuleCore *core);
/* Stops all queries; waits at most "seconds". 0, or -1: the thread did not end in time, and still uses the kernel
 * part. */
int ebpfMonQueriesStop(void *queries, double seconds);

/* --- Any thread, without a lock --- */

/* Loads all queries of a file, or none. Queries of the same file that were loaded before are removed. 0 or -1; "text"
 * tells what was done, or what is wrong and where. */
int ebpfMonQueriesLoad(ebpfMonQueries *queries, const char *file, char *text, size_t size);

/* Starts or stops a query soon. 0, or -1: there is no query of this name. */
int ebpfMonQueriesRun(ebpfMonQueries *queries, const char *name, int on);

void ebpfMonQueriesAddList(ebpfMonQueries *queries, ebpfMonTextReport *report);

/* Add its rows and its histogram; its folded stacks. 0, or -1: there is no query of this name. */
int ebpfMonQueriesAddResult(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name);
int ebpfMonQueriesAddStacks(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name);

#endif

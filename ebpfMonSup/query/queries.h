/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queries that are loaded, and the thread that runs them. The thread and the eBPF programs are made when the first query
 * starts. One lock guards the list; it is not held while programs are loaded or tables are read.
 */
#ifndef EBPFMON_QUERIES_H
#define EBPFMON_QUERIES_H

#include "common/textReport.h"
#include "probe/calibrate.h"
#include "watch/target.h"

typedef struct ebpfMonQueries ebpfMonQueries;

ebpfMonQueries *ebpfMonQueriesNew(void); /* NULL without memory */

/* --- For the composition root. Begin: from now on queries can run. --- */
void ebpfMonQueriesBegin(ebpfMonQueries *queries, ebpfMonTargets *targets, const ebpfMonCosts *costs);
/* Stops all queries for good. 0, or -1: the thread did not end in time, and still uses the kernel part. */
int ebpfMonQueriesStop(ebpfMonQueries *queries, double seconds);

/* --- Any thread; see model/queryOps.h. --- */
long ebpfMonQueriesLoad(ebpfMonQueries *queries, const char *file, char *text, size_t size);
long ebpfMonQueriesRun(ebpfMonQueries *queries, const char *name, int on);
void ebpfMonQueriesAddList(ebpfMonQueries *queries, ebpfMonTextReport *report);
long ebpfMonQueriesAddResult(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name);
long ebpfMonQueriesAddStacks(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name);

#endif

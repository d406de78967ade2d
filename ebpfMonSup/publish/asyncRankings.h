/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from a table of the kernel part to the published values: the slowest asynchronous records, the histogram of
 * their times, and the values of the watched records. Publishing thread only. */
#ifndef EBPFMON_ASYNCRANKINGS_H
#define EBPFMON_ASYNCRANKINGS_H

#include "ebpfMonTable.h"
#include "watch/target.h"

typedef struct ebpfMonAsyncRankings ebpfMonAsyncRankings;

/* Calls "each" for every asynchronous record, as ebpfMonKernelEachAsync (probe/kernelTables.h) does. A test has a
 * function of its own. */
typedef void (*ebpfMonAsyncSource)(void (*each)(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *stat),
                                   void *arg);

/* "targets" stays the caller's. NULL without memory. */
ebpfMonAsyncRankings *ebpfMonAsyncRankingsNew(ebpfMonTargets *targets, ebpfMonAsyncSource eachAsync);
void ebpfMonAsyncRankingsFree(ebpfMonAsyncRankings *rankings);

/* Publishes the values of this second. Call ebpfMonRankingsPublishRecords before: it finds the watched records. "now":
 * monotonic ns. Takes the targets lock, then the lock of the published values. */
void ebpfMonAsyncRankingsPublish(ebpfMonAsyncRankings *rankings, uint64_t now);

#endif

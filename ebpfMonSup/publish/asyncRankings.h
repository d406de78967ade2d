/* SPDX-License-Identifier: BSD-3-Clause */
/* Slowest asynchronous records, their histogram, and the scalars of watched records: from the kernel part's table to the
 * published values. Publishing thread only. */
#ifndef EBPFMON_ASYNCRANKINGS_H
#define EBPFMON_ASYNCRANKINGS_H

#include "ebpfMonTable.h"
#include "watch/target.h"

typedef struct ebpfMonAsyncRankings ebpfMonAsyncRankings;

/* As ebpfMonKernelEachAsync (probe/kernelTables.h): a test can do without a kernel part. */
typedef void (*ebpfMonAsyncSource)(void (*each)(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *stat), void *arg);

/* "targets" stays the caller's. NULL without memory. */
ebpfMonAsyncRankings *ebpfMonAsyncRankingsNew(ebpfMonTargets *targets, ebpfMonAsyncSource eachAsync);
void ebpfMonAsyncRankingsFree(ebpfMonAsyncRankings *rankings);

/* After ebpfMonRankingsPublishRecords, which finds the watched records. "now": monotonic ns. Takes the targets lock, then
 * that of the published values. */
void ebpfMonAsyncRankingsPublish(ebpfMonAsyncRankings *rankings, uint64_t now);

#endif

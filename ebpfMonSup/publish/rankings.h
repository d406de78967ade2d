/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from the tables of the kernel part to the published values: the busiest records, the slowest chains, the
 * histogram of chains, and the values of the watched records. Publishing thread only. */
#ifndef EBPFMON_RANKINGS_H
#define EBPFMON_RANKINGS_H

#include "ebpfMonTable.h"
#include "watch/target.h"

typedef struct ebpfMonRankings ebpfMonRankings;

/* How the counts are read. A test has functions of its own. All are called under the targets lock. */
typedef struct {
    /* As ebpfMonTargetCountRecords (watch/target.h). */
    void (*countRecords)(const ebpfMonTarget *t, uint64_t *now);
    /* As ebpfMonKernelEachRoot (probe/kernelRoots.h). */
    void (*eachRoot)(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);
} ebpfMonRankingSources;

/* The kernel part's tables. */
extern const ebpfMonRankingSources ebpfMonRankingSourcesKernel;

/* All arguments stay the caller's. NULL without memory. */
ebpfMonRankings *ebpfMonRankingsNew(ebpfMonTargets *targets, const ebpfMonRankingSources *sources);
void ebpfMonRankingsFree(ebpfMonRankings *rankings);

/* Publish the values of this second. Both functions take the targets lock, release it, and then take the lock of the
 * published values. They notify nobody. */
void ebpfMonRankingsPublishRecords(ebpfMonRankings *rankings, double seconds); /* "seconds": time since the last call */
void ebpfMonRankingsPublishChains(ebpfMonRankings *rankings);

#endif

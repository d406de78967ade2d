/* SPDX-License-Identifier: BSD-3-Clause */
/* Busiest records, slowest chains, the histogram, and the scalars of watched records: from the kernel part's tables
 * to the published values. Publishing thread only. */
#ifndef EBPFMON_RANKINGS_H
#define EBPFMON_RANKINGS_H

#include "ebpfMonTable.h"
#include "watch/target.h"

typedef struct ebpfMonRankings ebpfMonRankings;

/* How the counts are read, so that a test can do without a kernel part. Both are called under the targets lock. */
typedef struct {
    /* As ebpfMonTargetCountRecords (watch/target.h). */
    void (*countRecords)(const ebpfMonTarget *t, uint64_t *now);
    /* As ebpfMonKernelEachRoot (probe/kernelTables.h). */
    void (*eachRoot)(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);
    /* As ebpfMonTargetCountSnapshots (watch/target.h). */
    uint64_t (*countSnapshots)(const ebpfMonTarget *t);
    /* Chains that no root was found for, because there were too many roots. */
    uint64_t (*countLostRoots)(void);
} ebpfMonRankingSources;

/* The kernel part's tables. */
extern const ebpfMonRankingSources ebpfMonRankingSourcesKernel;

/* "targets" and "sources" stay the caller's. NULL without memory. */
ebpfMonRankings *ebpfMonRankingsNew(ebpfMonTargets *targets, const ebpfMonRankingSources *sources);
void ebpfMonRankingsFree(ebpfMonRankings *rankings);

/* Both take the targets lock, then that of the published values, each for itself; they tell nobody. */
void ebpfMonRankingsPublishRecords(ebpfMonRankings *rankings, double seconds); /* "seconds": since the last call */
void ebpfMonRankingsPublishChains(ebpfMonRankings *rankings);

#endif

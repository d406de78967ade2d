/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from the tables of the kernel part to the published values: the busiest records, the slowest chains, the
 * histogram of chains, and the values of the watched records. Publishing thread only. */
#ifndef EBPFMON_RANKINGS_H
#define EBPFMON_RANKINGS_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonTable.h"
#include "model/published.h"
#include "watch/target.h"

/* --- heat maps ---
 *
 * The heat maps of the last ten minutes: how often each record processed, and how long chains took. They are calculated
 * from values that are published once a second, so they do not read the tables of the kernel part. */

typedef struct ebpfMonHeatMaps ebpfMonHeatMaps;

/* Also clears the published heat maps. NULL: no memory. */
ebpfMonHeatMaps *ebpfMonHeatMapsNew(void);
void ebpfMonHeatMapsFree(ebpfMonHeatMaps *maps);

/* Call it once a second, after the rankings were published. Every EBPFMON_HEAT_SECONDS it adds a column. "now":
 * monotonic ns. Publishing thread only; takes the lock of the published values. */
void ebpfMonHeatMapsPublish(ebpfMonHeatMaps *maps, uint64_t now);

/* --- names ---
 *
 * The names of records in lists.
 */

/* Writes the name of a record to "name". If another watched IOC has a record of this name, the name of the IOC follows:
 * RECORD@IOC. A part for which there is no room is cut, and ends with "...". "size": EBPFMON_NAME_SIZE or more. Under
 * the targets lock. */
void ebpfMonDisplayName(ebpfMonTargets *targets, const ebpfMonTarget *t, uint32_t index, char *name, size_t size);

/* --- asynchronous records ---
 *
 * Copies from a table of the kernel part to the published values: the slowest asynchronous records, the histogram of
 * their times, and the values of the watched records. Publishing thread only.
 */

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

/* --- records, chains and puts --- */

typedef struct ebpfMonRankings ebpfMonRankings;

/* How the counts are read. A test has functions of its own. All are called under the targets lock. */
typedef struct {
    /* As ebpfMonTargetCountRecords (watch/target.h). */
    void (*countRecords)(const ebpfMonTarget *t, uint64_t *now);
    /* As ebpfMonKernelEachRoot (probe/kernelTables.h). */
    void (*eachRoot)(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);
} ebpfMonRankingSources;

/* The kernel part's tables. */
extern const ebpfMonRankingSources ebpfMonRankingSourcesKernel;

/* All arguments stay the caller's. NULL without memory. */
ebpfMonRankings *ebpfMonRankingsNew(ebpfMonTargets *targets, const ebpfMonRankingSources *sources);
void ebpfMonRankingsFree(ebpfMonRankings *rankings);

/* What the publishing thread keeps of an IOC, from one second to the next. */
typedef struct {
    uint64_t processed;   /* processings of those of its records that are shown, since it was found */
    uint64_t slowUntimed; /* ebpfMonTarget.slowUntimed at the last publication */
} ebpfMonIocPart;

/* That of this IOC. It exists until the IOC is forgotten. Under the targets lock; NULL without memory. */
ebpfMonIocPart *ebpfMonRankingsFindIoc(ebpfMonRankings *rankings, const ebpfMonTarget *t);

/* Publish the values of this second. Both functions take the targets lock, release it, and then take the lock of the
 * published values. They notify nobody. */
void ebpfMonRankingsPublishRecords(ebpfMonRankings *rankings, double seconds); /* "seconds": time since the last call */
void ebpfMonRankingsPublishChains(ebpfMonRankings *rankings);

#endif

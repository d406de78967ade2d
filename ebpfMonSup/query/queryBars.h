/* SPDX-License-Identifier: BSD-3-Clause */
/* The bars of a histogram, as they are shown. The kernel part has four buckets for each power of two; one bar has all
 * four. A linear histogram has a bar for each bucket. No shared state. */
#ifndef EBPFMON_QUERYBARS_H
#define EBPFMON_QUERYBARS_H

#include "ebpfMonQuery.h"
#include "model/queryValues.h"

#define EBPFMON_QUERY_IN_BAR 4 /* buckets in a bar of a log2 histogram */

_Static_assert(EBPFMON_QUERY_BUCKETS / EBPFMON_QUERY_IN_BAR <= EBPFMON_QUERY_BARS_MAX, "bars");

/* 0: the query has no histogram. */
static inline unsigned ebpfMonQueryBarsCount(const struct ebpfMonQueryPlan *plan)
{
    return plan->hist == EBPFMON_QUERY_LOG2 ? EBPFMON_QUERY_BUCKETS / EBPFMON_QUERY_IN_BAR
         : plan->hist == EBPFMON_QUERY_LINEAR ? plan->steps + 2 : 0;
}

/* The smallest value of a bar, not scaled. The first bar of a linear histogram has all values below "from", and its
 * edge is one step below. */
static inline double ebpfMonQueryBarEdge(const struct ebpfMonQueryPlan *plan, unsigned bar)
{
    return plan->hist == EBPFMON_QUERY_LOG2 ? ebpfMonQueryBucketEdge(bar * EBPFMON_QUERY_IN_BAR)
                                            : (double)plan->from + (double)plan->step * ((double)bar - 1);
}

/* Adds the buckets of a cell to bar[EBPFMON_QUERY_BARS_MAX]. */
static inline void ebpfMonQueryBarsAdd(const struct ebpfMonQueryPlan *plan, const __u64 *bucket, uint64_t *bar)
{
    unsigned in = plan->hist == EBPFMON_QUERY_LOG2 ? EBPFMON_QUERY_IN_BAR : 1, bars = ebpfMonQueryBarsCount(plan);

    for (unsigned b = 0; b < bars * in; b++)
        bar[b / in] += bucket[b];
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What watching took from one IOC since the last look, and what else the budget needs to judge it. Only the follower
 * uses this module; it writes only the follower's own part of a target. */
#ifndef EBPFMON_COSTSAMPLE_H
#define EBPFMON_COSTSAMPLE_H

#include "probe/calibrate.h"
#include "watch/target.h"

/* What happened since the last look. */
typedef struct {
    double   traps;   /* a second */
    double   cold;    /* as many of them, a second, as if each had found its CPU wholly cold or warm */
    uint64_t strange; /* as EBPFMON_HIT_STRANGE */
} ebpfMonCostSpent;

/* The next sample has what happens from now on ("now": monotonic ns). "hits": of this IOC up to now. */
void ebpfMonCostSampleBegin(ebpfMonTarget *t, const struct ebpfMonHits *hits, uint64_t now);

/* Makes the sample of the time since the last call, or since Begin, and fills "spent". 0: there was neither, so there
 * is no sample. */
int ebpfMonCostSampleTake(const ebpfMonCosts *costs, ebpfMonTarget *t, const ebpfMonFilter *filter,
                          const struct ebpfMonHits *hits, uint64_t now, ebpfMonCostSpent *spent,
                          ebpfMonCostSample *sample);

#endif

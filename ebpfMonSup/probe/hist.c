/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "ebpfMonEvent.h"
#include "ebpfMonTable.h"
#include "probe/hist.h"

double ebpfMonHistEdge(unsigned bucket)
{
    if (bucket == 0)
        return 0;
    bucket--;
    return ldexp(1.0 + (bucket % 4) / 4.0, (int)(bucket / 4) + EBPFMON_OCTAVE0);
}

double ebpfMonHistQuantile(const uint64_t *hist, unsigned buckets, double q, double max)
{
    double total = 0, before = 0, want;

    for (unsigned i = 0; i < buckets; i++)
        total += (double)hist[i];
    if (total == 0)
        return NAN;
    want = q * total;
    for (unsigned i = 0; i < buckets; i++) {
        if (hist[i] && before + (double)hist[i] >= want) {
            double lo = ebpfMonHistEdge(i), hi = ebpfMonHistEdge(i + 1);
            double at = lo + (hi - lo) * (want - before) / (double)hist[i];

            return at < max ? at : max;
        }
        before += (double)hist[i];
    }
    return max;
}

void ebpfMonHistAdd(uint64_t *sum, const uint32_t *hist, unsigned buckets)
{
    for (unsigned i = 0; i < buckets; i++)
        sum[i] += hist[i];
}

double ebpfMonHistOctaveEdge(unsigned octave)
{
    return octave == 0 ? 0 : ldexp(1.0, (int)octave - 1 + EBPFMON_OCTAVE0);
}

void ebpfMonHistOctaves(const uint64_t *hist, unsigned buckets, double *out, unsigned octaves)
{
    for (unsigned i = 0; i < octaves; i++)
        out[i] = 0;
    for (unsigned i = 0; i < buckets; i++) {
        unsigned o = i == 0 ? 0 : (i - 1) / 4 + 1;

        out[o < octaves ? o : octaves - 1] += (double)hist[i];
    }
}

double ebpfMonHistFindRecent(const struct ebpfMonRecent *recent, uint64_t now, uint64_t *who)
{
    uint64_t window = now >> EBPFMON_WINDOW_BITS, max = 0, whose = 0;

    if (recent->window == window || recent->window + 1 == window) {
        max = recent->max;
        whose = recent->who;
    }
    if (recent->window == window && recent->maxBefore > max) {
        max = recent->maxBefore;
        whose = recent->whoBefore;
    }
    if (who)
        *who = whose;
    return (double)max / 1e6;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares probe/hist.h with the bucket that the kernel part computes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "ebpfMonTable.h"
#include "probe/hist.h"
#include "randomTest.h"

#define RANDOM  1000000
#define SAMPLES 200000
#define OCTAVES ((EBPFMON_BUCKETS - 2) / 4 + 2) /* of all buckets */

static double random1(void)
{
    return ((double)(random64() >> 12) + 0.5) / (double)(1ull << 52);
}

/* True if a time is between the edges of its bucket. The last bucket has no upper edge. */
static int inBucket(uint64_t ns)
{
    uint32_t b = ebpfMonBucket(ns);

    return b < EBPFMON_BUCKETS && ebpfMonHistEdge(b) <= (double)ns
        && (b == EBPFMON_BUCKETS - 1 || (double)ns < ebpfMonHistEdge(b + 1));
}

static void testBuckets(void)
{
    uint32_t wrong = 0;

    for (int i = 0; i < RANDOM; i++)
        wrong += !inBucket(random64() >> (random64() & 63)); /* as many in each octave */
    testOk(wrong == 0, "%u of %d random times are outside of their bucket", wrong, RANDOM);
    wrong = 0;
    for (uint32_t b = 1; b < EBPFMON_BUCKETS; b++) {
        uint64_t edge = (uint64_t)ebpfMonHistEdge(b);

        wrong += (double)edge != ebpfMonHistEdge(b) || ebpfMonBucket(edge) != b || ebpfMonBucket(edge - 1) != b - 1
            || ebpfMonHistEdge(b) <= ebpfMonHistEdge(b - 1);
    }
    testOk(wrong == 0, "%u edges are not between two buckets", wrong);
    testOk(ebpfMonHistEdge(0) == 0 && ebpfMonBucket(0) == 0 && ebpfMonHistEdge(1) == 1 << EBPFMON_OCTAVE0,
        "bucket 0 has all times below the first octave");
    testOk(ebpfMonBucket(UINT64_MAX) == EBPFMON_BUCKETS - 1, "the last bucket has all longer times");
}

static double spread(double p) /* by the same number in each octave, 1 µs to 1 s */
{
    return 1e3 * pow(1e6, p);
}

static double uniform(double p)
{
    return 5e4 + p * 4.5e5;
}

static double falling(double p) /* exponential, mean 200 µs */
{
    return -2e5 * log(1 - p);
}

static void testQuantiles(const char *what, double inverse(double p))
{
    static const double want[] = { 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999 };
    uint64_t hist[EBPFMON_BUCKETS] = { 0 };
    double max = 0, before = 0;
    int rising = 1;

    for (int i = 0; i < SAMPLES; i++) {
        double ns = floor(inverse(random1()));

        hist[ebpfMonBucket((uint64_t)ns)]++;
        max = ns > max ? ns : max;
    }
    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        double q = ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, want[i], max), is = inverse(want[i]);

        testOk(fabs(q / is - 1) < 0.1, "%s: quantile %g is %.0f, computed as %.0f", what, want[i], is, q);
        rising &= q >= before && q <= max;
        before = q;
    }
    testOk(rising, "%s: quantiles rise, and none is above the maximum", what);
    testOk(ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 1, max) <= max &&
               ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 1, max) > max * 0.75,
           "%s: the last quantile is in the bucket of the maximum", what);
}

static void testFew(void)
{
    uint64_t hist[EBPFMON_BUCKETS] = { 0 };

    testOk(isnan(ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.5, 0)), "an empty histogram has no quantile");
    hist[ebpfMonBucket(1024)] = 1;
    testOk(ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.99, 1024) == 1024,
           "with a single entry the quantile is the maximum");
    testOk(ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0, 1200) == 1024, "quantile 0 is the lower edge");
    memset(hist, 0, sizeof(hist));
    hist[0] = 1000;
    testOk(ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.5, 250) == 128, "a quantile in the middle of bucket 0");
    memset(hist, 0xff, sizeof(hist)); /* more in sum than 64 bits hold */
    testOk(ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.5, 1e15) == ebpfMonHistEdge(EBPFMON_BUCKETS / 2),
        "full buckets do not overflow");
}

static void testOctaves(void)
{
    uint64_t hist[EBPFMON_BUCKETS] = { 0 };
    uint32_t wrong = 0;
    double direct[OCTAVES] = { 0 }, out[OCTAVES + 8], sum = 0, few[4];

    for (int i = 0; i < SAMPLES; i++) {
        uint64_t ns = random64() >> (24 + random64() % 40);
        unsigned o = 0;

        hist[ebpfMonBucket(ns)]++;
        while (o + 1 < OCTAVES && (double)ns >= ebpfMonHistOctaveEdge(o + 1))
            o++;
        direct[o]++;
    }
    ebpfMonHistOctaves(hist, EBPFMON_BUCKETS, out, OCTAVES + 8);
    for (unsigned i = 0; i < OCTAVES + 8; i++) {
        sum += out[i];
        wrong += out[i] != (i < OCTAVES ? direct[i] : 0);
    }
    testOk(sum == SAMPLES, "the sum of the octaves is the count: %g", sum);
    testOk(wrong == 0, "each octave counts the times between its edges; %u do not", wrong);
    ebpfMonHistOctaves(hist, EBPFMON_BUCKETS, few, 4);
    testOk(few[0] == direct[0] && few[2] == direct[2] && few[0] + few[1] + few[2] + few[3] == SAMPLES,
        "with few octaves the last one has the rest");
    wrong = ebpfMonHistOctaveEdge(0) != 0;
    for (unsigned o = 1; o <= OCTAVES; o++)
        wrong += ebpfMonHistOctaveEdge(o) != ebpfMonHistEdge((o - 1) * 4 + 1);
    testOk(wrong == 0, "the octaves' edges are edges of buckets");
}

MAIN(testHist)
{
    testPlan(0);
    testBuckets();
    testQuantiles("spread", spread);
    testQuantiles("uniform", uniform);
    testQuantiles("exponential", falling);
    testFew();
    testOctaves();
    return testDone();
}

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The logarithm of the histograms. Kernel part and user part include this header. */
#ifndef EBPFMON_LOG2_H
#define EBPFMON_LOG2_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* The number of the highest bit that is set; 0 if none is. It halves the number of bits again and again, because BPF
 * has no instruction for it, and clang 14 does not finish with __builtin_clzll. Each step is arithmetic: with
 * conditions the verifier would follow 64 paths, each with all that comes behind it. */
static inline __u32 ebpfMonLog2(__u64 v)
{
    __u64 e = 0;

    for (int half = 5; half >= 0; half--) { /* unrolled by the compiler */
        __u64 more = 0 - (v >> (1 << half)); /* its highest bit: a bit of the upper half is set */

        __asm__("" : "+r"(more)); /* else the compiler makes a condition of it */
        more = more >> 63 << half;
        e += more;
        v >>= more;
    }
    return (__u32)e;
}

#endif

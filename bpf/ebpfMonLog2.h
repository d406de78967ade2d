/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The logarithm of the histograms. Kernel part and user part include this header. */
#ifndef EBPFMON_LOG2_H
#define EBPFMON_LOG2_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* The number of the highest bit that is set; 0 if none is. It halves the number of bits again and again, because BPF
 * has no instruction for it, and clang 14 does not finish with __builtin_clzll. */
static inline __u32 ebpfMonLog2(__u64 v)
{
    __u32 e = 0;

    if (v >> 32) { e += 32; v >>= 32; }
    if (v >> 16) { e += 16; v >>= 16; }
    if (v >> 8) { e += 8; v >>= 8; }
    if (v >> 4) { e += 4; v >>= 4; }
    if (v >> 2) { e += 2; v >>= 2; }
    if (v >> 1) e += 1;
    return e;
}

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The histograms of roots. */
#ifndef EBPFMON_ROOTS_BPF_H
#define EBPFMON_ROOTS_BPF_H

#include "common/maps.bpf.h"

/* Returns the number of this root in "roots". A record that is a root for the first time gets one. 0: there is no free
 * one; it is counted as lost. A global function, so the verifier checks it only once, and its callers have room on the
 * stack. */
int ebpfmon_get_root(__u32 slot);

static __always_inline struct ebpfMonRootStat *findRootStat(__u32 number)
{
    return findInBlocks(&roots, number - 1, EBPFMON_ROOT_BLOCK);
}

static __always_inline struct ebpfMonRootStat *getRootStat(__u32 slot)
{
    __u32 number = ebpfmon_get_root(slot);

    return number ? findRootStat(number) : 0;
}

#endif

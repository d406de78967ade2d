/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about sweeps. Global functions, as in passChain.bpf.h. */
#ifndef EBPFMON_SWEEP_BPF_H
#define EBPFMON_SWEEP_BPF_H

#include "common/probe.bpf.h"

/* values of "how" */
#define SWEEP_UNSAFE 0 /* a pass has ended; because of a put, another list may be processing some of its records */
#define SWEEP_LOCKED 1 /* this thread holds the lock of the records */
#define SWEEP_PASS   2 /* its pass has ended */
#define SWEEP_WHOLE  3 /* the same, and the last record of a stretch tells of all. Threads that took their locks
                        * unseen have released them, because this pass had all locks of its list after that */

/* Counts what the records at these places of the table of closures have processed so far; those of this record's
 * closure; those of the scan list with this mutex. */
int ebpfmon_sweep_places(__u32 first, __u32 len, __u64 now, __u32 how);
int ebpfmon_sweep_closure(__u32 slot, __u64 now, __u32 how);
int ebpfmon_sweep_list(__u64 mutex, __u64 now);

/* A pass of the scan list with this mutex begins. */
int ebpfmon_begin_list(__u64 mutex, __u64 now);

/* Sweeps may have missed something: all counts of this IOC are lower bounds. */
static __always_inline void noteMissed(__u32 tgid)
{
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &tgid);

    if (notes)
        ADD_ATOMICALLY(&notes->missed, 1);
}

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about sweeps. Global functions, as in passChain.bpf.h. */
#ifndef EBPFMON_SWEEP_BPF_H
#define EBPFMON_SWEEP_BPF_H

#include "probe.bpf.h"

/* values of "how" */
#define SWEEP_MOVED  0 /* not their list's own sweep: another thread may be processing them */
#define SWEEP_LOCKED 1 /* this thread holds the lock of the records */
#define SWEEP_PASS   2 /* its pass has ended: the times of its quick chains are added to their roots, too */
#define SWEEP_WHOLE  3 /* the same, and the last record of a stretch tells of all, as does the last steady one. Threads
                        * that took their locks unseen have released them, because this pass had all locks of its list
                        * after that */

/* Counts what the records at these places of the table of closures have processed so far ("mutex": of their scan list,
 * at the end of its pass); those of this record's closure; those of the scan list with this mutex. */
int ebpfmon_sweep_places(__u32 first, __u32 len, __u64 now, __u32 how, __u64 mutex);
int ebpfmon_sweep_closure(__u32 slot, __u64 now, __u32 how);
int ebpfmon_sweep_list(__u64 mutex, __u64 now);

/* A pass of the scan list with this mutex begins. */
int ebpfmon_begin_list(__u64 mutex, __u64 now);

/* Takes out the quick chains that this sweep did not, after all records of the pass were counted. */
int ebpfmon_fold_rest(__u64 now);

/* Brings the times that the roots of this list have kept into the map "roots", where the user part reads them. These
 * elements are far away in memory: so it is done for several passes at a time. */
int ebpfmon_flush_list(__u64 mutex, __u64 now);

/* Sweeps may have missed something: all counts of this IOC are lower bounds. */
static __always_inline void noteMissed(__u32 tgid)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &tgid);

    if (m)
        ADD_ATOMICALLY(&m->missed, 1);
}

#endif

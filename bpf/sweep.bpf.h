/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about sweeps. Global functions, as in passChain.bpf.h. */
#ifndef EBPFMON_SWEEP_BPF_H
#define EBPFMON_SWEEP_BPF_H

#include "probe.bpf.h"

#define ANY_GROUP (~0u)

/* Leaves groups before the thread releases the lock, and after its own processings were counted. If a sweep had left out one
 * of the groups, it returns the slot of this group + 1; if several, ANY_GROUP. Then also call ebpfmon_sweep_moved, because the
 * lists that were read do not have all records of a group. */
__u32 ebpfmon_leave(__u64 lock, __u64 now, __u32 isMany);

/* Looks at records that moved to another list after the user part read the lists: at those of this group (its slot + 1, or
 * ANY_GROUP), and of these, if "mutex" is not 0, only at those that are in its scan list or in none. Another list may be
 * processing its records at this moment. */
int ebpfmon_sweep_moved(__u64 now, __u64 mutex, __u32 group);

/* This record may have moved. The caller holds its lock. */
int ebpfmon_add_moved(__u64 precord, __u64 now);

/* The thread has done all its puts to fields that control scanning, so these records are in their new lists. Returns how many. */
__u32 ebpfmon_end_scan_puts(void);

/* Counts what the records of this record's closure have processed so far. "isLocked": this thread holds their lock. */
int ebpfmon_sweep_closure(__u32 slot, __u64 now, __u32 isLocked);

/* Sweeps may have missed something: all counts of this IOC are lower bounds. */
static __always_inline void noteMissed(__u32 tgid)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &tgid);

    if (m)
        __sync_fetch_and_add(&m->missed, 1);
}

#endif

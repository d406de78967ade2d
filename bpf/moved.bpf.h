/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about records that move to another scan list. */
#ifndef EBPFMON_MOVED_BPF_H
#define EBPFMON_MOVED_BPF_H

#include "core.bpf.h"

#define ANY_GROUP (~0u)

/* Looks at records that moved to another list after the user part read the lists: at those of this group (its slot + 1,
 * or ANY_GROUP), and of these, if "mutex" is not 0, only at those that are in its scan list or in none. Another list
 * may be processing its records at this moment. */
int ebpfmon_sweep_moved(__u64 now, __u64 mutex, __u32 group);

/* This record may have moved. The caller holds its lock. */
int ebpfmon_add_moved(__u64 precord, __u64 now);

/* This thread begins a put to a field that controls scanning. The record may move to another list, or to another place
 * in its list. The caller holds its lock. */
int ebpfmon_begin_scan_put(__u64 precord, __u64 now);

/* The thread has done all its puts to fields that control scanning, so these records are in their new lists.
 * "isLocked": it still holds their locks. Returns how many. */
__u32 ebpfmon_end_scan_puts(__u32 isLocked);

#endif

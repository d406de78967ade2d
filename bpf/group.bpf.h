/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about threads that leave a group of records. */
#ifndef EBPFMON_GROUP_BPF_H
#define EBPFMON_GROUP_BPF_H

#include "core.bpf.h"

/* Leaves groups before the thread releases the lock, and after its own processings were counted. If a sweep had left out one
 * of the groups, it returns the slot of this group + 1; if several, ANY_GROUP. Then also call ebpfmon_sweep_moved, because the
 * lists that were read do not have all records of a group. */
__u32 ebpfmon_leave(__u64 lock, __u64 now, __u32 isMany);

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about sweeps. Global functions, as in passChain.bpf.h. */
#ifndef EBPFMON_SWEEP_BPF_H
#define EBPFMON_SWEEP_BPF_H

#include "core.bpf.h"

/* Leaves groups before the thread releases the lock, and after its own processings were counted. Nonzero: also call
 * ebpfmon_sweep_moved, because the lists that were read do not have all records of a group. */
int ebpfmon_leave(__u64 lock, __u64 now, __u32 isMany);

/* Looks at the records that moved to another list after the user part read the lists. This is done with each list. */
int ebpfmon_sweep_moved(__u64 now);

#endif

/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about records that leave their scan list during a pass. */
#ifndef EBPFMON_LEFTLIST_BPF_H
#define EBPFMON_LEFTLIST_BPF_H

#include "core.bpf.h"

/* This thread begins a put that may take the record out of its scan list. It holds the record's lock. */
int ebpfmon_leave_list(__u64 precord);

/* All such puts of this thread are over: the records are in their new lists. "isLocked": it still holds their locks. */
int ebpfmon_end_leaving(__u32 isLocked);

/* A pass of the list with this mutex has ended now. */
int ebpfmon_check_left(__u64 mutex, __u64 now);

#endif

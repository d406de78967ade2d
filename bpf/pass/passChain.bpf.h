/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about chains of scan lists. These functions are global: so their stack is not added to the
 * stack of their callers, and the verifier goes through them once. */
#ifndef EBPFMON_PASSCHAIN_BPF_H
#define EBPFMON_PASSCHAIN_BPF_H

#include "common/core.bpf.h"

/* A scan list begins, and its first chain. "list": address of the scan_list. "sp": the stack pointer, not below that at
 * the entry of scanList(). */
int ebpfmon_begin_pass(__u64 list, __u64 sp);

/* Begins the chain of the next record of the list, after the one of "precord". "sp": the stack pointer. */
int ebpfmon_begin_next(__u64 precord, __u64 sp);

/* Ends a pass with chains that are not timed, when one of its chains ends and its begin is not known. */
int ebpfmon_end_untimed(__u64 now);

/* Ends the passes of a thread when scanList() is at its end. "sp": the stack pointer, which is that of its entry. */
int ebpfmon_end_pass(__u64 sp, __u64 now);

#endif

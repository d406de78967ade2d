/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about puts to fields that control scanning. */
#ifndef EBPFMON_SCANPUT_BPF_H
#define EBPFMON_SCANPUT_BPF_H

#include "common/core.bpf.h"

/* This thread begins such a put, to this field ("pfield": its address). It holds the lock of the record. */
int ebpfmon_begin_scan_put(__u64 precord, __u64 pfield, __u64 now);

/* All such puts of this thread are over: their records are in their new lists. */
int ebpfmon_end_scan_puts(__u64 now);

/* A thread of this IOC releases a lock that it took before such puts were seen: there may have been one. */
int ebpfmon_note_unseen_put(__u32 tgid);

#endif

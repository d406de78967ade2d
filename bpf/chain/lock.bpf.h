/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about threads that request a lock set. Global functions, as in passChain.bpf.h. */
#ifndef EBPFMON_LOCK_BPF_H
#define EBPFMON_LOCK_BPF_H

#include "common/core.bpf.h"

/* dbPutField() requests the lock set of this record. "sp": the stack pointer at its entry. */
int ebpfmon_request_put_lock(__u64 precord, __u64 sp, __u64 now);

#endif

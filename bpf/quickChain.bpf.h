/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about quick chains. Global functions, as in passChain.bpf.h. */
#ifndef EBPFMON_QUICKCHAIN_BPF_H
#define EBPFMON_QUICKCHAIN_BPF_H

#include "probe.bpf.h"

/* An entry of struct quickTimes has what a chain took (ns) and the address of its root. */
#define QUICK_ADDRESS_BITS 48
#define QUICK_ENTRY(precord, took) ((__u64)(took) << QUICK_ADDRESS_BITS | (precord))
#define QUICK_RECORD(entry) ((entry) & ((1ull << QUICK_ADDRESS_BITS) - 1))
#define QUICK_TOOK(entry) ((entry) >> QUICK_ADDRESS_BITS)

/* A pass of the scan list with this mutex begins. */
int ebpfmon_begin_quick(__u64 mutex, __u64 now);

/* The chain of "precord" ends, in scanList(). Nonzero: it is noted as a quick one, and the next chain has begun. 0: it
 * is none. */
int ebpfmon_note_quick(__u64 precord, __u64 now);

/* Nonzero: this is the present chain of a pass, after a quick one. Its root and lock set are not known. */
static __always_inline int isAfterQuick(const struct ebpfMonHeld *h)
{
    return h->sp && !h->root && h->turn;
}

/* Those of this thread; NULL: it had none so far. */
static __always_inline struct quickTimes *findQuickTimes(void)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();

    return bpf_map_lookup_elem(&quick, &tid);
}

#endif

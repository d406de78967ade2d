// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Counts each processing by a trap: for records that a snapshot cannot count, and to check the snapshots.
 */
#include "common/probe.bpf.h"

/* Finds the record that caused the trap. NULL: it is not watched. */
static __always_inline struct ebpfMonRecState *enterRecord(void *ctx, __u64 precord)
{
    struct caller c;
    __u32 slot;

    if (isTakenAway(ctx) || !enterProbe(&c, EBPFMON_HIT_ENTRY) || !findSlot(c.tgid, precord, &slot))
        return 0;
    return findState(slot);
}

/* recGblFwdLink(dbCommon *): a record has completed, synchronously or not. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_completed, __u64 precord)
{
    struct ebpfMonRecState *st;

    KEEP_THREAD_STACK(ctx);
    st = enterRecord(ctx, precord);
    if (st)
        st->trapped++;
    return 0;
}

/* dbProcess(dbCommon *): every attempt to process, also of a record that is busy or disabled. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_process, __u64 precord)
{
    struct ebpfMonRecState *st;

    KEEP_THREAD_STACK(ctx);
    st = enterRecord(ctx, precord);
    if (st)
        st->entered++;
    return 0;
}

// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Processings counted one by one, by a trap for each: for records that a snapshot cannot count, and to compare
 * the snapshots with.
 */
#include "maps.bpf.h"

/* The state of the record that a trap was for; NULL: it is not watched. */
static __always_inline struct ebpfMonRecState *trapped(struct pt_regs *ctx)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32, slot;

    if (!bpf_map_lookup_elem(&targets, &tgid))
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    if (!recordSlot(tgid, PT_REGS_PARM1(ctx), &slot))
        return 0;
    return bpf_map_lookup_elem(&recState, &slot);
}

/* recGblFwdLink(precord): a completion, synchronous or not. */
SEC("uprobe")
int ebpfmon_completed(struct pt_regs *ctx)
{
    struct ebpfMonRecState *st = trapped(ctx);

    if (st)
        st->trapped++;
    return 0;
}

/* dbProcess(precord): every attempt, also of a record that is busy or disabled. */
SEC("uprobe")
int ebpfmon_process(struct pt_regs *ctx)
{
    struct ebpfMonRecState *st = trapped(ctx);

    if (st)
        st->entered++;
    return 0;
}

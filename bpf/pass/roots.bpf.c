// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
#include "common/probe.bpf.h"
#include "pass/roots.bpf.h"

/* Nonzero: the root has this number now. 0: another thread was faster. Before kernel 5.12 there is no such operation;
 * there, all chains of a root end while its lock set is held. */
static __always_inline int setNumber(struct ebpfMonRecState *st, __u32 number)
{
#ifdef EBPFMON_OLD_KERNEL
    st->root = number;
    return 1;
#else
    return __sync_bool_compare_and_swap(&st->root, 0, number);
#endif
}

static __always_inline __u32 takeRoot(struct ebpfMonRecState *st, __u32 slot)
{
    struct ebpfMonRootStat *rs;
    __u32 number = 0;

    rs = bpf_map_pop_elem(&freeRoots, &number) ? 0 : findRootStat(number);
    if (!rs) {
        countLost(EBPFMON_LOST_ROOTS);
        return 0;
    }
    __sync_fetch_and_add(&rootsUsed, 1);
    if (setNumber(st, number)) {
        rs->owner = (__u64)slot + 1;
        return number;
    }
    __sync_fetch_and_add(&rootsUsed, -1);
    bpf_map_push_elem(&freeRoots, &number, BPF_ANY);
    return st->root;
}

__attribute__((noinline)) int ebpfmon_get_root(__u32 slot)
{
    struct ebpfMonRecState *st = findState(slot);

    if (!st || !st->addr)
        return 0;
    return st->root ? st->root : takeRoot(st, slot);
}

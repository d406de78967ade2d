/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Finds the root of the chain that a thread is in, also in a pass with chains that are not timed. */
#ifndef EBPFMON_PASSROOT_BPF_H
#define EBPFMON_PASSROOT_BPF_H

#include "thread/heldLocks.bpf.h"

int ebpfmon_find_root(__u64 sp);

/* Nonzero: the begin of the present chain is not known, and "begin" of its pass stands for it. */
static __always_inline int isInUntimedPass(const struct caller *c, const struct ebpfMonHeld *h)
{
    return h->sp && (c->conf->untimed || h->turn != c->conf->turn);
}

/* The root of the chain; 0: not known. */
static __always_inline __u64 findChainRoot(const struct caller *c, const struct thread *th, const struct ebpfMonHeld *h)
{
    if (!isInUntimedPass(c, h))
        return h->root;
    ebpfmon_find_root(h->sp);
    return th->passRoot;
}

#endif

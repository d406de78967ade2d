// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Who began an asynchronous record, if a pass with untimed chains did: nobody looked at the end of that chain. The
 * chains that are timed note it themselves (ebpfmon_note_cause in chain.bpf.c).
 */
#include "pass/group.bpf.h"
#include "pass/look.bpf.h"

/* Nonzero: links connect this record with the record of this state. */
static __always_inline int isInGroup(__u32 tgid, __u64 precord, const struct ebpfMonRecState *st)
{
    struct ebpfMonRecState *other;
    __u32 slot;

    return findSlot(tgid, precord, &slot) && (other = findState(slot)) != 0 && other->group == st->group;
}

/* The thread has the lock of the record, and goes on with it by a callback. If the chain that requested this callback
 * can reach the record, it has processed it; else the callback may be one of a driver, about anything. */
__attribute__((noinline)) int ebpfmon_note_beginner(__u32 slot)
{
    struct ebpfMonRecState *st = findState(slot);
    const struct ebpfMonSourceChain *source;
    struct window win;
    struct thread *th;
    struct caller c;

    if (!findCaller(&c) || !st || !(th = bpf_map_lookup_elem(&threads, &c.tid)) || th->popping != POPPING ||
        !th->from.source.begin || !isInGroup(c.tgid, th->from.source.root, st) ||
        readWindow(&win, st->addr, c.conf->time) ||
        !isBusy(&win, c.conf->pact - (c.conf->time - EBPFMON_TIME_WINDOW)))
        return 0;
    source = &th->from.source;
    __builtin_memset(&th->cause, 0, sizeof(th->cause));
    th->cause.head.tgid = c.tgid;
    th->cause.head.tid = source->tid;
    th->cause.head.ktime = bpf_ktime_get_ns();
    th->cause.root = source->root;
    th->cause.begin = source->begin;
    th->cause.byMain = source->isMain;
    __builtin_memcpy(th->cause.who.comm, source->comm, sizeof(th->cause.who.comm));
    if (!bpf_map_update_elem(&causes, &slot, &th->cause, BPF_ANY))
        st->noted = EBPFMON_NOTED_CAUSE;
    return 0;
}

// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Steady records: each pass of their scan list processes them. The user part finds them (ioc/steadyRecords.c): nothing
 * can disable them, and they never process asynchronously. So if a pass has processed the last one of its list, it has
 * processed all of them, and the sweep need not look at each (sweep.bpf.c). That is true until there is a put that may
 * disable a record. A put to VAL or PROC does not. Which other fields can do so depends on the record type and on the
 * release of Base, so a put to any other one ends it. Then each sweep looks at the record.
 */
#include "ebpfMonBase.h"
#include "look.bpf.h"
#include "steady.bpf.h"
#include "walk.bpf.h"

struct unsteady {
    __u32 first, len;
    __u32 next; /* as in struct sweep */
    __u32 pad;
};

static __always_inline long endSteady(__u32 i, struct unsteady *u)
{
    struct ebpfMonRecState *st;
    __u32 n = u->next, entry;

    if (n >= u->len || !readClosureEntry(u->first + n, &entry))
        return 1;
    u->next = n + 1;
    st = findState(EBPFMON_ENTRY_SLOT(entry));
    if (st)
        st->steady = EBPFMON_STEADY_NOT;
    return 0;
}

DEFINE_WALK(endSteady, struct unsteady, unsteady)

__attribute__((noinline)) int ebpfmon_note_unsteady(__u64 precord, __u64 pfield)
{
    struct ebpfMonRecState *st;
    struct ebpfMonRecConf *rc;
    struct unsteady u = {};
    struct caller c;
    __u32 slot;

    if (!findCaller(&c) || !findSlot(c.tgid, precord, &slot) || !(st = findState(slot)) || !(rc = findConf(slot)) ||
        st->steady == EBPFMON_STEADY_NOT || pfield == precord + rc->valOff || pfield == precord + c.conf->proc)
        return 0;
    u.first = rc->first;
    u.len = rc->len < EBPFMON_CLOSURE_MAX ? rc->len : EBPFMON_CLOSURE_MAX;
    u.next = rc->zero;
    st->steady = EBPFMON_STEADY_NOT;
    WALK(endSteady, u.len, &u);
    return 0;
}

// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/* Scan lists whose passes are watched: where a pass begins, how its sweep looks, and when the times of its chains are
 * brought to their roots. */
#include "ebpfMonBase.h"
#include "look.bpf.h"
#include "quickChain.bpf.h"
#include "sweep.bpf.h"
#include "walk.bpf.h"

#define FLUSH_NS 500000000ull /* ns; so old are the times of quick chains at most */
#define DOUBT_NS 300000000000ull /* ns; so long after a put the user part has read links and lists again for sure … */
#define UNREAD_NS   500000000ull /* ns; … also after puts from before their probes were attached */

/* The walk of ebpfmon_flush_list. */
struct flush {
    __u32 first, len, next; /* as in struct sweep */
    __u32 pad;
};

/* Nonzero: a lock set has a breakpoint (dbBkpt.c). A pass leaves out its records while it is stopped there. */
static __always_inline int hasBreakpoints(const struct ebpfMonTargetConf *conf)
{
    return conf->breakpoints && readPtr(conf->breakpoints);
}

__attribute__((noinline)) int ebpfmon_begin_list(__u64 mutex, __u64 now)
{
    struct ebpfMonListKey key = { .mutex = mutex };
    struct ebpfMonList *list, first = {};
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps)
        return 0;
    key.tgid = c.tgid;
    list = bpf_map_lookup_elem(&lists, &key);
    if (list) {
        list->begin = now;
        list->isWhole = c.conf->seesScanPuts /* all probes are attached */ && !hasBreakpoints(c.conf);
        return 0;
    }
    first.begin = now; /* it had no records when the lists were read */
    bpf_map_update_elem(&lists, &key, &first, BPF_NOEXIST);
    return 0;
}

/* Nonzero: this pass may have processed other records than the user part has read, or with other time stamps, or other
 * lists may have processed some of them, because of a put. Or there is a breakpoint. */
static __always_inline int isPassInDoubt(const struct caller *c, const struct ebpfMonList *list)
{
    struct ebpfMonMoved *m = bpf_map_lookup_elem(&moved, &c->tgid);
    __u64 put;

    if (!list->isWhole || hasBreakpoints(c->conf) || !m || m->added != c->conf->movedTaken ||
        list->begin < c->conf->sweepsSince + UNREAD_NS)
        return 1;
    put = stretchPuts[ebpfMonShareOf(c->conf->iocId)];
    if (put < m->lastPut)
        put = m->lastPut;
    return put && list->begin < put + DOUBT_NS;
}

__attribute__((noinline)) int ebpfmon_sweep_list(__u64 mutex, __u64 now)
{
    struct ebpfMonListKey key = { .mutex = mutex };
    struct ebpfMonList *list;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !c.conf->sweeps)
        return 0;
    key.tgid = c.tgid;
    list = bpf_map_lookup_elem(&lists, &key);
    if (list && ebpfmon_sweep_places(list->first, list->len, now,
                                     isPassInDoubt(&c, list) ? SWEEP_PASS : SWEEP_WHOLE, mutex))
        list->hasAsync = 1;
    return 0;
}

static __always_inline long flushNext(__u32 i, struct flush *f)
{
    struct ebpfMonRecState *st;
    __u32 n = f->next, len = f->len, entry, slot;

    FORGET_ORIGIN(n);
    FORGET_ORIGIN(len);
    if (n >= len || !readClosureEntry(f->first + n, &entry))
        return 1;
    f->next = n + 1;
    slot = EBPFMON_ENTRY_SLOT(entry);
    st = findState(slot);
    if (st)
        flushRoot(st, slot);
    return 0;
}

DEFINE_WALK(flushNext, struct flush, flush)

__attribute__((noinline)) int ebpfmon_flush_list(__u64 mutex, __u64 now)
{
    struct ebpfMonListKey key = { .mutex = mutex };
    struct quickTimes *q = findQuickTimes();
    struct ebpfMonList *list;
    struct flush f = {};
    struct caller c;

    if (!q || !q->kept || (q->kept < EBPFMON_QUICK_KEPT && now - q->flushed < FLUSH_NS) || !findCaller(&c))
        return 0;
    q->kept = 0;
    q->flushed = now;
    key.tgid = c.tgid;
    list = bpf_map_lookup_elem(&lists, &key);
    if (!list)
        return 0;
    f.first = list->first;
    f.len = list->len;
    f.next = c.conf->zero;
    WALK(flushNext, f.len, &f);
    return 0;
}

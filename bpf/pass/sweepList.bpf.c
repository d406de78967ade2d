// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/* Scan lists whose passes are watched: where a pass begins, and how its sweep looks. */
#include "ebpfMonBase.h"
#include "pass/look.bpf.h"
#include "pass/sweep.bpf.h"

#define DOUBT_NS 300000000000ull /* ns; so long after a put the user part has read links and lists again for sure … */
#define UNREAD_NS   500000000ull /* ns; … also after puts from before their probes were attached */

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
        list->isWhole = c.conf->isScanPutSeen /* all probes are attached */ && !hasBreakpoints(c.conf);
        return 0;
    }
    first.begin = now; /* it had no records when the lists were read */
    bpf_map_update_elem(&lists, &key, &first, BPF_NOEXIST);
    return 0;
}

/* How the sweep of this pass may look. In doubt the last record of a stretch does not tell of all: the pass may have
 * processed other records than the user part has read, or with other time stamps, because of a put or a breakpoint. */
static __always_inline __u32 chooseSweep(const struct caller *c, const struct ebpfMonList *list)
{
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &c->tgid);
    __u64 put = stretchPuts[ebpfMonShareOf(c->conf->iocId)];

    if (!notes || notes->putsBegun != c->conf->putsTaken)
        return SWEEP_UNSAFE;
    return !list->isWhole || hasBreakpoints(c->conf) || list->begin < c->conf->sweepsSince + UNREAD_NS ||
           (put && list->begin < put + DOUBT_NS) ? SWEEP_PASS : SWEEP_WHOLE;
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
    if (list)
        ebpfmon_sweep_places(list->first, list->len, now, chooseSweep(&c, list));
    return 0;
}

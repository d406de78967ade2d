// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Measures how long an asynchronous record takes in all: from the begin of the chain that left it processing (PACT set)
 * to the end of the chain that completed it. The snapshot sees both (judgeRecord in snapshot.bpf.h).
 */
#include "common/probe.bpf.h"

static __always_inline void beginAsync(const struct caller *c, __u32 slot)
{
    static const struct ebpfMonAsyncStat none;
    struct ebpfMonAsyncStat *as = bpf_map_lookup_elem(&asyncs, &slot);
    struct ebpfMonHeld *h;
    struct thread *th;

    if (!as) {
        hasAsyncs = 1;
        if (bpf_map_update_elem(&asyncs, &slot, &none, BPF_NOEXIST))
            countLost(EBPFMON_LOST_ROOTS);
        return;
    }
    th = bpf_map_lookup_elem(&threads, &c->tid);
    h = th ? getLastHeld(th) : 0;
    /* if the record was never found idle since the probes were attached, it may have begun before that, in another
     * chain */
    as->since = h && as->idle >= c->conf->queuesSince ? h->begin : 0;
}

/* Nonzero: the record ended with the alarm status TIMEOUT. recGblResetAlarms() has set it. */
static __always_inline int isTimeout(const struct caller *c, __u32 slot)
{
    struct ebpfMonRecState *st = findState(slot);
    __u16 stat = 0;

    return st && !bpf_probe_read_user(&stat, sizeof(stat), (void *)(st->addr + c->conf->stat)) &&
           stat == EBPFMON_ALARM_TIMEOUT;
}

static __always_inline void endAsync(const struct caller *c, __u32 slot, __u64 now)
{
    struct ebpfMonAsyncStat *as = bpf_map_lookup_elem(&asyncs, &slot);
    __u64 since, took;

    if (!as)
        return;
    since = as->since;
    as->since = 0;
    as->idle = now;
    /* if the record began before the probes were attached, it may have completed and begun again unseen */
    if (!since || since < c->conf->queuesSince || since > now)
        return;
    took = now - since;
    as->count++;
    as->last = took;
    as->sum += took;
    if (took > as->max)
        as->max = took;
    if (isTimeout(c, slot))
        as->timeouts++;
    ebpfMonRecentAdd(&as->recent, now, took, 0);
    as->hist[ebpfMonBucket(took) & (EBPFMON_BUCKETS - 1)]++;
}

/* The record began to process asynchronously ("busy"), or completed. This thread holds its lock set, so no other thread
 * uses its element of the table. A global function, so that the verifier checks it only once. */
__attribute__((noinline)) int ebpfmon_note_async(__u32 slot, __u64 now, __u32 busy)
{
    struct caller c;

    if (!findCaller(&c) || c.conf->level < EBPFMON_CHAINS)
        return 0;
    if (busy)
        beginAsync(&c, slot);
    else
        endAsync(&c, slot, now);
    return 0;
}

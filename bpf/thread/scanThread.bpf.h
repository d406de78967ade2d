/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Measures the real period of a periodic scan thread, from the locks that it takes. */
#ifndef EBPFMON_SCANTHREAD_BPF_H
#define EBPFMON_SCANTHREAD_BPF_H

#include "common/probe.bpf.h"

/* Finds the period (ns) of a periodic scan thread from its name, "scan-0.1" (dbScan.c, spawnPeriodic). 0: it is no such
 * thread. If sprintf() writes a period with an exponent, no thread could keep it. */
static __always_inline __u64 parseScanPeriod(const char comm[EBPFMON_COMM_MAX])
{
    __u64 ns = 0, digit = 1000000000u;
    int i, point = 0;

    if (comm[0] != 's' || comm[1] != 'c' || comm[2] != 'a' || comm[3] != 'n' || comm[4] != '-')
        return 0;
#pragma unroll
    for (i = 5; i < EBPFMON_COMM_MAX - 1; i++) {
        char c = comm[i];

        if (!c)
            break;
        if (c == '.') {
            point = 1;
            continue;
        }
        if (c < '0' || c > '9')
            return 0;
        if (point)
            digit /= 10;
        else
            ns *= 10;
        ns += (__u64)(c - '0') * digit;
    }
    return ns;
}

static __always_inline int isOnceThread(const char comm[EBPFMON_COMM_MAX])
{
    return comm[0] == 's' && comm[1] == 'c' && comm[2] == 'a' && comm[3] == 'n' && comm[4] == 'O' && comm[5] == 'n' &&
           comm[6] == 'c' && comm[7] == 'e' && !comm[8];
}

static __always_inline int isScanThread(struct ebpfMonThread *seen)
{
    char comm[EBPFMON_COMM_MAX];

    if (!seen->named) {
        seen->named = 1;
        if (!bpf_get_current_comm(comm, sizeof(comm))) {
            seen->scan.period = parseScanPeriod(comm);
            seen->isOnce = isOnceThread(comm);
        }
    }
    return seen->scan.period != 0;
}

/* Begins a pass of a scan thread. "timed": its chains are timed. */
static __always_inline void beginScanPass(struct ebpfMonScan *s, __u64 root, __u64 now, __u32 timed)
{
    __u64 idle = now - s->end, period = now - s->begin;

    /* after a longer pause there was nothing to scan, or the IOC was paused: such a period does not count */
    if (s->begin && !s->partial && idle <= 4 * s->period + 1000000000u) {
        s->passes++;
        s->sum += period;
        s->busy += s->end - s->begin;
        if (period > s->max)
            s->max = period;
        if (s->timed)
            s->topRoot = s->root;
        if (period > s->period + s->period / 2) {
            s->late++;
            s->lateTopRoot = s->timed ? s->root : 0;
        }
    }
    s->partial = !s->begin; /* when we see a thread for the first time, it may be in the middle of a pass */
    s->timed = timed;
    s->begin = s->end = now;
    s->first = s->root = root;
    s->noted = 0;
    s->longest = 0;
}

/* The thread requests a lock. Nonzero: a pass begins: the first record of the last pass comes again; or, if that record
 * has left the list, after a pause. A pause alone is not enough, because a late thread makes almost none (dbScan.c,
 * periodicTask). Nor is a pause certain: so in a pass that takes long, one record is noted. If it comes again before
 * the first one does, the list has begun anew without the first one, and the passes until then cannot be told
 * apart. */
static __always_inline int isScanBegin(struct ebpfMonScan *s, __u64 root, __u64 now)
{
    if (!s->begin || root == s->first || now - s->end >= s->period / 4)
        return 1;
    if (now - s->begin < 2 * s->period)
        return 0;
    if (!s->noted)
        s->noted = root;
    else if (s->noted == root)
        return s->partial = 1;
    return 0;
}

static __always_inline void endScanChain(struct ebpfMonScan *s, const struct ebpfMonHeld *h, __u64 now)
{
    s->end = now;
    if (now - h->begin > s->longest) {
        s->longest = now - h->begin;
        s->root = h->root;
    }
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/clock.h"
#include "host/memory.h"
#include "ioc/catalogue.h"
#include "watch/stuckClock.h"

#define READS_MAX 16 /* pairs of records whose stamps are read in one look. The same stamp is noted for all that a pass
                      * processed (bpf/pass/sweep.bpf.c), so if the clock runs ahead there may be hundreds */
#define AT_ONCE 512 /* records in one look: takes some 10 us, so a hundred IOCs can be looked at each second */

/* Nonzero: these two records have the same stamp. The one that is noted for a record may be that of the stretch that it
 * has left. */
static int haveSameStamp(const ebpfMonTarget *t, uint32_t i, uint32_t k)
{
    uint64_t a, b;

    return !ebpfMonMemReadNow(t->pid, t->cat->rec[i].addr + t->cat->common.time, &a, sizeof(a)) &&
           !ebpfMonMemReadNow(t->pid, t->cat->rec[k].addr + t->cat->common.time, &b, sizeof(b)) && a == b;
}

int ebpfMonStuckClockIsSeen(const ebpfMonTarget *t, uint32_t *from, uint64_t now)
{
    uint32_t begin = *from < t->cat->count ? *from : 0, end = t->cat->count;
    uint64_t latest = now;
    uint32_t latestAt = UINT32_MAX;
    int isSame = 0, reads = 0;

    if (end - begin > AT_ONCE)
        end = begin + AT_ONCE;
    *from = end;
    for (uint32_t i = begin; i < end; i++) {
        uint64_t at;

        if (!t->recState[i].seen || t->cat->rec[i].flags & EBPFMON_REC_TSE || t->recState[i].last != t->slot + i)
            continue; /* in a stretch, another record's stamp may stand for its own */
        at = ebpfMonClockRealOfStamp(t->recState[i].time);
        if (at == latest && latestAt != UINT32_MAX && !isSame && reads++ < READS_MAX)
            isSame = haveSameStamp(t, latestAt, i);
        if (at > latest) {
            latest = at;
            latestAt = i;
            isSame = 0;
        }
    }
    return isSame;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsTime.h>

#include "common/clock.h"
#include "ioc/catalogue.h"
#include "watch/stuckClock.h"

#define AT_ONCE 512 /* records in one look: takes some 10 us, so a hundred IOCs can be looked at each second */

/* A time stamp as it lies in the record: seconds since 1990 in the lower half, ns in the upper half. In ns since
 * 1970. */
static uint64_t convertStamp(uint64_t stamp)
{
    return ((stamp & 0xffffffff) + POSIX_TIME_AT_EPICS_EPOCH) * EBPFMON_SECOND_NS + (stamp >> 32);
}

int ebpfMonStuckClockIsSeen(const ebpfMonTarget *t, uint32_t *from, uint64_t now)
{
    uint32_t begin = *from < t->cat->count ? *from : 0, end = t->cat->count;
    uint64_t latest = now, number = 0;

    if (end - begin > AT_ONCE)
        end = begin + AT_ONCE;
    *from = end;
    for (uint32_t i = begin; i < end; i++) {
        uint64_t at;

        if (!t->recState[i].seen || t->cat->rec[i].flags & EBPFMON_REC_TSE || t->recState[i].last != t->slot + i)
            continue; /* in a stretch, another record's stamp may stand for its own */
        at = convertStamp(t->recState[i].time);
        if (at > latest)
            number = 0;
        if (at >= latest) {
            latest = at;
            number++;
        }
    }
    return latest > now && number > 1;
}

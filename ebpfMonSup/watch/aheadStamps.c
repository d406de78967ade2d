/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "host/memory.h"
#include "watch/aheadStamps.h"

#define AT_ONCE 512 /* records in one look: each takes one read of the IOC's memory, some 1 us */
#define SURE_NS (2 * EBPFMON_SECOND_NS) /* a stamp that is less ahead can be passed before the first look */

struct ebpfMonAheadStamp {
    uint32_t index;
    uint64_t at; /* ns since 1970 */
};

typedef enum { stampWaits, stampWentOn, stampWentBack } stampVerdict;

void ebpfMonAheadStampsAdd(ebpfMonAheadStamps *ahead, uint32_t index, uint64_t stamp)
{
    uint64_t at = ebpfMonClockRealOfStamp(stamp);

    if (at < ebpfMonClockReal() + SURE_NS)
        return;
    if (ahead->count == ahead->room) {
        uint32_t room = ahead->room ? 2 * ahead->room : 64;
        struct ebpfMonAheadStamp *of = realloc(ahead->of, room * sizeof(*of));

        if (!of) {
            ahead->isFull = 1;
            return;
        }
        ahead->of = of;
        ahead->room = room;
    }
    ahead->of[ahead->count++] = (struct ebpfMonAheadStamp){ index, at };
}

/* The clock of the host is read after the stamp. So if the stamp went on and is later than that, the clock of the IOC
 * runs ahead. If the host has passed the first stamp meanwhile, there may have been an earlier stamp between both. */
static stampVerdict judgeStamp(ebpfMonAheadStamps *ahead, uint64_t first, uint64_t stamp)
{
    uint64_t at = ebpfMonClockRealOfStamp(stamp), now = ebpfMonClockReal();

    if (at < first)
        return stampWentBack;
    if (now >= first)
        return at > first && first > ahead->latest ? stampWentBack : stampWentOn;
    if (at > first && at > ahead->latest)
        ahead->latest = at;
    return at > first ? stampWentOn : stampWaits;
}

int ebpfMonAheadStampsWentBack(ebpfMonAheadStamps *ahead, pid_t pid, const ebpfMonCatalogue *cat)
{
    uint32_t looks = ahead->count < AT_ONCE ? ahead->count : AT_ONCE;
    int wentBack = ahead->isFull;

    for (; looks && !wentBack; looks--) {
        struct ebpfMonAheadStamp *a = &ahead->of[ahead->next < ahead->count ? ahead->next : (ahead->next = 0)];
        stampVerdict verdict;
        uint64_t stamp;

        if (a->index >= cat->count ||
            ebpfMonMemReadNow(pid, cat->rec[a->index].addr + cat->common.time, &stamp, sizeof(stamp))) {
            ahead->next++;
            break; /* it may have ended, or not answer */
        }
        verdict = judgeStamp(ahead, a->at, stamp);
        wentBack = verdict == stampWentBack;
        if (verdict == stampWaits)
            ahead->next++;
        else
            *a = ahead->of[--ahead->count];
    }
    if (wentBack || !ahead->count)
        ebpfMonAheadStampsClear(ahead);
    return wentBack;
}

void ebpfMonAheadStampsClear(ebpfMonAheadStamps *ahead)
{
    free(ahead->of);
    memset(ahead, 0, sizeof(*ahead));
}

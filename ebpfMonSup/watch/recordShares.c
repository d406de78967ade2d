/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "common/shares.h"
#include "watch/recordShares.h"

static ebpfMonShare makeShare(const ebpfMonTarget *t)
{
    return (ebpfMonShare){ .user = t->user, .isSystem = t->user < EBPFMON_SYSTEM_USERS, .order = t->iocId,
                           .size = t->cat->count };
}

unsigned ebpfMonRecordSharesFindVictims(ebpfMonTargets *targets, const ebpfMonTarget *t, uint64_t room,
                                        ebpfMonTarget **victims)
{
    ebpfMonTarget *of[EBPFMON_TARGETS_MAX];
    ebpfMonShare share[EBPFMON_TARGETS_MAX + 1];
    unsigned count = 0, found = 0;

    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o && count < EBPFMON_TARGETS_MAX; o = o->next)
        if (o != t && o->slot != UINT32_MAX && o->cat) {
            share[count] = makeShare(o);
            of[count++] = o;
        }
    share[count] = makeShare(t);
    share[count].order = UINT64_MAX;
    ebpfMonSharesFit(share, count + 1, room);
    if (share[count].isOut)
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (share[i].isOut) {
            if (ebpfMonMemIsPaused(of[i]->follower.mem)) /* it is being read, while others are looked at */
                return 0;
            victims[found++] = of[i];
        }
    return found;
}

uint32_t ebpfMonRecordSharesTakeSlots(ebpfMonRecordTables *r, uint32_t count)
{
    uint32_t slot = ebpfMonSlotAllocatorTake(r->slots, count);
    int error = ENOSPC;

    if (slot != UINT32_MAX) {
        if (ebpfMonTablesUse(r->kernel.tables, slot + count, 0) == 0)
            return slot;
        error = errno;
        ebpfMonSlotAllocatorReturn(r->slots, slot, count);
    }
    errno = error;
    return UINT32_MAX;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "watch/slotAllocator.h"

/* Runs in use, in order: few, two or three for each IOC. First fit. */
typedef struct {
    uint32_t first, count;
} run;

struct ebpfMonSlotAllocator {
    uint32_t size, used, runs;
    size_t   room;
    run     *run;
};

ebpfMonSlotAllocator *ebpfMonSlotAllocatorNew(uint32_t size)
{
    ebpfMonSlotAllocator *r = calloc(1, sizeof(*r));

    if (r)
        r->size = size;
    return r;
}

void ebpfMonSlotAllocatorFree(ebpfMonSlotAllocator *r)
{
    if (!r)
        return;
    free(r->run);
    free(r);
}

uint32_t ebpfMonSlotAllocatorTake(ebpfMonSlotAllocator *r, uint32_t count)
{
    uint32_t at = 0, i;

    if (count == 0)
        return 0;
    for (i = 0; i < r->runs && r->run[i].first - at < count; i++)
        at = r->run[i].first + r->run[i].count;
    if (i == r->runs && r->size - at < count)
        return UINT32_MAX;
    if (ebpfMonArrayGrow(&r->run, &r->room, (size_t)r->runs + 1, 64, sizeof(*r->run)))
        return UINT32_MAX;
    memmove(&r->run[i + 1], &r->run[i], (r->runs - i) * sizeof(*r->run));
    r->run[i].first = at;
    r->run[i].count = count;
    r->runs++;
    r->used += count;
    return at;
}

void ebpfMonSlotAllocatorReturn(ebpfMonSlotAllocator *r, uint32_t first, uint32_t count)
{
    if (count == 0)
        return;
    for (uint32_t i = 0; i < r->runs; i++) {
        if (r->run[i].first != first || r->run[i].count != count)
            continue;
        memmove(&r->run[i], &r->run[i + 1], (r->runs - i - 1) * sizeof(*r->run));
        r->runs--;
        r->used -= count;
        return;
    }
}

uint32_t ebpfMonSlotAllocatorCountUsed(const ebpfMonSlotAllocator *r)
{
    return r->used;
}

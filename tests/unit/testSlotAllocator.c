/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares watch/closureTable.h with a bitmap. */
#include <string.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "watch/closureTable.h"
#include "randomTest.h"

#define SLOTS 1024
#define STEPS 100000

typedef struct {
    uint32_t first, count;
} held;

/* The first place with this number of free slots in a row. */
static uint32_t firstFree(const unsigned char *map, uint32_t count)
{
    uint32_t run = 0;

    for (uint32_t i = 0; i < SLOTS; i++) {
        run = map[i] ? 0 : run + 1;
        if (run == count)
            return i + 1 - count;
    }
    return UINT32_MAX;
}

static void testRandom(void)
{
    static unsigned char map[SLOTS];
    static held have[SLOTS];
    ebpfMonSlotAllocator *slots = ebpfMonSlotAllocatorNew(SLOTS);
    uint32_t n = 0, used = 0, overlaps = 0, notFirst = 0, miscount = 0, full = 0;

    for (int step = 0; step < STEPS; step++) {
        if (random64() % 16 < 9 || n == 0) {
            uint32_t count = 1 + (uint32_t)(random64() % (random64() % 4 ? 16 : 200));
            uint32_t expected = firstFree(map, count), at = ebpfMonSlotAllocatorTake(slots, count);

            notFirst += at != expected;
            if (at == UINT32_MAX) {
                full++;
                continue;
            }
            for (uint32_t i = at; i < at + count; i++) {
                overlaps += i >= SLOTS || map[i];
                if (i < SLOTS)
                    map[i] = 1;
            }
            have[n++] = (held){ at, count };
            used += count;
        } else {
            uint32_t k = (uint32_t)(random64() % n);

            ebpfMonSlotAllocatorReturn(slots, have[k].first, have[k].count);
            memset(map + have[k].first, 0, have[k].count);
            used -= have[k].count;
            have[k] = have[--n];
        }
        miscount += ebpfMonSlotAllocatorCountUsed(slots) != used;
        if (overlaps)
            break; /* from here on the bitmap is not used */
    }
    testOk(overlaps == 0, "no slot is given twice in %d steps", STEPS);
    testOk(notFirst == 0, "the first free run is taken; %u times not", notFirst);
    testOk(miscount == 0, "the count of used slots is right");
    testOk(full > STEPS / 1000, "the allocator was full %u times", full);
    while (n--)
        ebpfMonSlotAllocatorReturn(slots, have[n].first, have[n].count);
    testOk(ebpfMonSlotAllocatorCountUsed(slots) == 0 && ebpfMonSlotAllocatorTake(slots, SLOTS) == 0,
        "in the end all slots are free again");
    ebpfMonSlotAllocatorFree(slots);
}

static void testEdges(void)
{
    ebpfMonSlotAllocator *slots = ebpfMonSlotAllocatorNew(10);

    testOk(ebpfMonSlotAllocatorTake(slots, 11) == UINT32_MAX &&
               ebpfMonSlotAllocatorTake(slots, UINT32_MAX) == UINT32_MAX && ebpfMonSlotAllocatorCountUsed(slots) == 0,
           "more slots than there are cannot be had");
    testOk(ebpfMonSlotAllocatorTake(slots, 0) == 0 && ebpfMonSlotAllocatorCountUsed(slots) == 0,
           "no slots cannot be had");
    testOk(ebpfMonSlotAllocatorTake(slots, 10) == 0 && ebpfMonSlotAllocatorTake(slots, 1) == UINT32_MAX,
        "all slots can be had, and no more");
    ebpfMonSlotAllocatorReturn(slots, 0, 5);
    ebpfMonSlotAllocatorReturn(slots, 3, 1);
    testOk(ebpfMonSlotAllocatorCountUsed(slots) == 10, "a run that was not taken in this way is not returned");
    ebpfMonSlotAllocatorFree(slots);
    slots = ebpfMonSlotAllocatorNew(UINT32_MAX);
    testOk(ebpfMonSlotAllocatorTake(slots, UINT32_MAX - 1) == 0 && ebpfMonSlotAllocatorTake(slots, 1) == UINT32_MAX - 1
        && ebpfMonSlotAllocatorTake(slots, 1) == UINT32_MAX, "the largest number of slots can be used");
    ebpfMonSlotAllocatorFree(slots);
    ebpfMonSlotAllocatorFree(NULL);
}

MAIN(testSlotAllocator)
{
    testPlan(10);
    testRandom();
    testEdges();
    return testDone();
}

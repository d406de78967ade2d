/* SPDX-License-Identifier: BSD-3-Clause */
/* A chain that comes in parts is put together, also if other events come between the parts. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/audits.h"
#include "trace/chainParts.h"
#include "trace/trace.h"

#define COUNT       9700
#define RECORDS     2048 /* parts of one chain that are kept */
#define OPEN_CHAINS 32   /* chains that can arrive in parts at the same time */
#define LATE_CHAINS 10   /* so many late chains in a row mean that the IOC's clock is late */
#define STALE_NS    1000000000ull
#define UNIX_OFFSET (POSIX_TIME_AT_EPICS_EPOCH * 1000000000ull) /* monotonic time is the time since 1990 in this test */

static ebpfMonRecord record[COUNT];
static ebpfMonCatalogue catalogue = { .count = COUNT, .rec = record };
static ebpfMonTarget target = { .cat = &catalogue, .slot = 100, .slotAt = 1000 };

static ebpfMonChainParts *parts;
static ebpfMonLosses losses;
static struct { unsigned count; uint32_t tid, records, total; int inOrder; } received;

static void onChain(void *arg, ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                    uint32_t count)
{
    if (arg != &received || t != &target)
        testAbort("the sink gets another argument");
    received.count++;
    received.tid = chain->head.tid;
    received.records = count;
    received.total = chain->total;
    received.inOrder = 1;
    for (uint32_t i = 0; i < count; i++)
        received.inOrder = received.inOrder && rec[i].slot == 100 + i;
}

static int64_t offClock; /* the IOC's clock minus ours, ns */

static uint64_t stamp(uint64_t ktime)
{
    uint64_t at = ktime + (uint64_t)offClock;

    return at / 1000000000u | at % 1000000000u << 32;
}

/* A chain of 1 ms at "begin". It processed one record at once and one at its end. A third record has a stamp "ago"
 * ns before the chain. */
static void clocked(uint64_t begin, uint64_t ago)
{
    static struct ebpfMonChainEvent ev;

    ev.chain.head.ktime = begin + 1000000;
    ev.chain.begin = begin;
    ev.chain.rootSlot = 100;
    ev.chain.count = ev.chain.total = 3;
    ev.chain.last = 1;
    for (uint32_t i = 0; i < 3; i++)
        ev.rec[i].slot = 100 + i;
    ev.rec[0].time = stamp(begin + 10);
    ev.rec[1].time = stamp(begin + 999999);
    ev.rec[2].time = stamp(begin - ago);
    ebpfMonChainPartsAdd(parts, &target, &ev, sizeof(ev), UNIX_OFFSET);
}

/* A record with a stamp older than the chain does not belong to it, also if the IOC's clock is wrong. */
static void clocks(void)
{
    static const int64_t offset[] = { 0, 100000, -100000, -900000, 37000000000, -37000000000 };
    const uint64_t second = 1000000000u;

    for (unsigned i = 0; i < sizeof(offset) / sizeof(offset[0]); i++) {
        offClock = offset[i];
        for (unsigned k = 0; k < LATE_CHAINS + 1; k++) /* until the clock is known to be late */
            clocked((1000 + 20 * i + k) * second, second / 2);
        testOk(received.records == 2 && received.total == 2, "a clock that is %g s off", (double)offClock / 1e9);
    }
    offClock = 0;
    clocked(2000 * second, second);
    received.records = 0;
    offClock = -2 * (int64_t)second; /* all stamps are older than the chain */
    clocked(2001 * second, second);
    testOk(received.records == 0, "records whose time stamps are all older than the chain do not belong to it");
    offClock = 0;
    record[2].flags = EBPFMON_REC_TSE;
    clocked(2002 * second, second);
    testOk(received.records == 3, "the time stamp of a device says nothing about the chain");
    record[2].flags = 0;
}

static void part(uint32_t tid, uint64_t end, unsigned number, uint32_t count, int last)
{
    static struct ebpfMonChainEvent ev;

    ev.chain.head.tid = tid;
    ev.chain.head.ktime = ev.chain.begin = end;
    ev.chain.rootSlot = 100;
    ev.chain.part = number;
    ev.chain.count = count;
    ev.chain.last = (uint32_t)last;
    for (uint32_t i = 0; i < count && i < EBPFMON_CHUNK; i++) {
        ev.rec[i].slot = 100 + number * EBPFMON_CHUNK + i;
        ev.rec[i].time = stamp(end);
    }
    ebpfMonChainPartsAdd(parts, &target, &ev, sizeof(ev), UNIX_OFFSET);
}

MAIN(testChains)
{
    testPlan(21);
    parts = ebpfMonChainPartsNew(&losses, onChain, &received);
    part(1, 2000, 0, 3, 1);
    testOk1(received.count == 1 && received.records == 3 && received.inOrder);

    part(1, 3000, 0, EBPFMON_CHUNK, 0);
    for (unsigned i = 0; i < 20; i++)
        part(50 + i, 3001 + i, 0, 1, 1);
    testOk(received.count == 21, "short chains come in between");
    for (unsigned i = 0; i < OPEN_CHAINS - 1; i++)
        part(2 + i, 3100 + i, 0, EBPFMON_CHUNK, 0);
    part(1, 3000, 1, 4, 1);
    testOk(received.count == 22 && received.tid == 1 && received.records == EBPFMON_CHUNK + 4 && received.inOrder,
           "they do not take its place, and neither do long chains");
    for (unsigned i = 0; i < OPEN_CHAINS - 1; i++)
        part(2 + i, 3100 + i, 1, 1, 1);
    testOk1(received.count == 22 + OPEN_CHAINS - 1 && received.records == EBPFMON_CHUNK + 1);

    part(1, 4000, 1, 4, 1);
    testOk(received.count == 21 + OPEN_CHAINS, "the first part of the chain was lost");
    for (unsigned i = 0; i < OPEN_CHAINS; i++)
        part(1, 5000 + i, 0, EBPFMON_CHUNK, 0);
    part(2, 6000, 0, EBPFMON_CHUNK, 0);
    part(2, 6000, 1, 1, 1);
    testOk(received.count == 22 + OPEN_CHAINS && received.tid == 2,
           "the last part of many chains was lost: there is still room for others,");
    testOk(ebpfMonLossesGet(&losses, ebpfMonLossParts) == 1, "and the chain that loses its place is counted");
    part(3, 6050, 0, EBPFMON_CHUNK, 0); /* no place is free */
    part(2, 6100 + STALE_NS, 0, EBPFMON_CHUNK, 0);
    part(2, 6100 + STALE_NS, 1, 1, 1);
    testOk(received.count == 23 + OPEN_CHAINS && ebpfMonLossesGet(&losses, ebpfMonLossParts) == 1,
           "later these chains are counted as lost by the ring");

    for (unsigned i = 0; i < 100; i++)
        part(3, 7000, i, EBPFMON_CHUNK, i == 99);
    testOk(received.count == 24 + OPEN_CHAINS && received.records == RECORDS && received.inOrder,
           "a chain with more records than are kept");

    part(1, 999, 0, 1, 1);
    testOk(received.count == 24 + OPEN_CHAINS, "a chain from before the records of its IOC were read");
    clocks();
    received.count = 31;
    part(1, 8000, 0, EBPFMON_CHUNK + 1, 1);
    target.slot = UINT32_MAX;
    part(1, 8001, 0, 1, 1);
    testOk1(received.count == 31);
    target.slot = 101; /* its root is in an earlier part */
    part(1, 8002, 0, 1, 1);
    testOk1(received.count == 31);
    target.slot = 100;
    part(1, 8003, 0, 1, 1);
    testOk(received.count == 32, "and a chain that is complete");
    ebpfMonChainPartsFree(parts);
    return testDone();
}

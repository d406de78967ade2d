/* SPDX-License-Identifier: BSD-3-Clause */
/* What chains hand over: which chain came from it, and what is done before its source chain is known. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/handOvers.h"

static struct ebpfMonHandOverEvent begins(uint32_t iocId, uint32_t tid, uint64_t end, uint64_t source)
{
    return (struct ebpfMonHandOverEvent){
        .head = { .iocId = iocId, .tid = tid, .ktime = end }, .what.source = { .tid = 9, .begin = source },
    };
}

static uint64_t sourceOf(const ebpfMonHandOvers *handOvers, uint32_t iocId, uint32_t tid, uint64_t end)
{
    struct ebpfMonChain c = { .head = { .iocId = iocId, .tid = tid, .ktime = end } };
    const struct ebpfMonHandOver *from = ebpfMonHandOversFind(handOvers, &c);

    return from ? from->source.begin : 0;
}

static void sources(ebpfMonHandOvers *handOvers)
{
    struct ebpfMonHandOverEvent ev = begins(1, 10, 2000, 500);

    testOk(!sourceOf(handOvers, 1, 10, 2000), "no source is known at first");
    ebpfMonHandOversNoteBegin(handOvers, &ev);
    testOk(sourceOf(handOvers, 1, 10, 2000) == 500, "the chain that comes next has its source");
    testOk(!sourceOf(handOvers, 2, 10, 2000) && !sourceOf(handOvers, 1, 11, 2000) && !sourceOf(handOvers, 1, 10, 2001),
           "not that of another IOC, of another thread, or a later one");
    for (uint32_t i = 0; i < 63; i++) {
        ev = begins(1, 100 + i, 2100 + i, 600 + i);
        ebpfMonHandOversNoteBegin(handOvers, &ev);
    }
    testOk(sourceOf(handOvers, 1, 10, 2000) == 500 && sourceOf(handOvers, 1, 162, 2162) == 662,
           "63 other threads may report in between");
    ev = begins(1, 200, 2200, 700);
    ebpfMonHandOversNoteBegin(handOvers, &ev);
    testOk(!sourceOf(handOvers, 1, 10, 2000) && sourceOf(handOvers, 1, 200, 2200) == 700, "then the oldest is forgotten");
}

static void earlyEnds(ebpfMonHandOvers *handOvers)
{
    ebpfMonChainId a = { .iocId = 1, .tid = 10, .begin = 1000 }, b = { .iocId = 1, .tid = 10, .begin = 1001 };

    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a) == 0, "none at first");
    for (unsigned i = 0; i < 3; i++)
        ebpfMonHandOversNoteEarlyEnd(handOvers, &a);
    ebpfMonHandOversNoteEarlyEnd(handOvers, &b);
    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a) == 3 && ebpfMonHandOversTakeEarlyEnds(handOvers, &b) == 1,
           "each source chain has its own");
    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a) == 0, "they are returned once");
    ebpfMonHandOversNoteEarlyEnd(handOvers, &a);
    a.iocId = 2; /* at the same place of the table */
    ebpfMonHandOversNoteEarlyEnd(handOvers, &a);
    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a) == 1, "one of another IOC is none of its own");
}

MAIN(testHandOvers)
{
    ebpfMonHandOvers *handOvers = ebpfMonHandOversNew();

    testPlan(9);
    sources(handOvers);
    earlyEnds(handOvers);
    ebpfMonHandOversFree(handOvers);
    return testDone();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand-overs of chains: which chain comes from a hand-over, and hand-overs that are done before their source chain
 * is known. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traces.h"

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
    testOk(sourceOf(handOvers, 1, 10, 2000) == 500, "the next chain of the thread has the source");
    testOk(!sourceOf(handOvers, 2, 10, 2000) && !sourceOf(handOvers, 1, 11, 2000) && !sourceOf(handOvers, 1, 10, 2001),
           "chains of another IOC, of another thread, and later ones do not have it");
    for (uint32_t i = 0; i < 4000; i++) {
        ev = begins(1, 100 + i % 1000, 2100 + i, 600 + i);
        ebpfMonHandOversNoteBegin(handOvers, &ev);
    }
    testOk(sourceOf(handOvers, 1, 10, 2000) == 500 && sourceOf(handOvers, 1, 1099, 6099) == 4599,
           "any number of other threads may report in between, because the thread may have lost its CPU");
    for (uint32_t i = 1; i < 16; i++) {
        ev = begins(1, 10 + 4096 * i, 7000 + i, 700);
        ebpfMonHandOversNoteBegin(handOvers, &ev);
    }
    testOk(!sourceOf(handOvers, 1, 10, 2000) && sourceOf(handOvers, 1, 10 + 4096 * 15, 7015) == 700,
           "if a place of the table has too many hand-overs, the oldest is forgotten");
}

/* A thread takes an element out of a queue, makes chains from it, and is done. It reports "told" chains; the events
 * of "arrived" chains came. Nonzero if the result is partial. */
static int isPartial(ebpfMonHandOvers *handOvers, uint32_t arrived, uint32_t told, int isTold)
{
    static uint64_t now = 10000;
    struct ebpfMonHandOverEvent ev;

    for (uint32_t i = 0; i < arrived; i++) {
        struct ebpfMonChain c = { .head = { .iocId = 1, .tid = 10, .ktime = ++now } };

        ev = begins(1, 10, now, 500);
        ebpfMonHandOversNoteBegin(handOvers, &ev);
        if (ebpfMonHandOversFind(handOvers, &c))
            ebpfMonHandOversCountChain(handOvers, &c);
    }
    ev = begins(1, 10, ++now, 500);
    ev.chains = told;
    ev.isPartial = isTold;
    return ebpfMonHandOversNoteEnd(handOvers, &ev);
}

static void ends(ebpfMonHandOvers *handOvers)
{
    testOk(!isPartial(handOvers, 0, 0, 0) && !isPartial(handOvers, 1, 1, 0) && !isPartial(handOvers, 3, 3, 0),
           "all chains of a hand-over have arrived");
    testOk(isPartial(handOvers, 0, 1, 0) && isPartial(handOvers, 2, 3, 0), "one chain has not");
    testOk(!isPartial(handOvers, 2, 2, 0) && isPartial(handOvers, 0, 1, 0),
           "chains of the hand-over before do not count");
    testOk(isPartial(handOvers, 1, 1, 1), "the kernel part says that there may be more chains");
}

static void earlyEnds(ebpfMonHandOvers *handOvers)
{
    ebpfMonChainId a = { .iocId = 1, .tid = 10, .begin = 1000 }, b = { .iocId = 1, .tid = 10, .begin = 1001 };
    int partial;

    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a, &partial) == 0, "there is no source chain at first");
    for (unsigned i = 0; i < 3; i++)
        ebpfMonHandOversNoteEarlyEnd(handOvers, &a, i == 1);
    ebpfMonHandOversNoteEarlyEnd(handOvers, &b, 0);
    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a, &partial) == 3 && partial &&
               ebpfMonHandOversTakeEarlyEnds(handOvers, &b, &partial) == 1 && !partial,
           "each source chain has its own hand-overs");
    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a, &partial) == 0 && !partial, "each hand-over is returned once");
    ebpfMonHandOversNoteEarlyEnd(handOvers, &a, 1);
    a.iocId = 2; /* these use the same place of the table */
    ebpfMonHandOversNoteEarlyEnd(handOvers, &a, 0);
    testOk(ebpfMonHandOversTakeEarlyEnds(handOvers, &a, &partial) == 1 && !partial,
           "a hand-over of another IOC does not belong to it");
}

MAIN(testHandOvers)
{
    ebpfMonHandOvers *handOvers = ebpfMonHandOversNew();

    testPlan(13);
    sources(handOvers);
    ends(handOvers);
    earlyEnds(handOvers);
    ebpfMonHandOversFree(handOvers);
    return testDone();
}

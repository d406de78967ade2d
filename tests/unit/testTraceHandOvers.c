/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace includes the chains that a chain hands over to a queue. It waits until they are all done. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "tracesTest.h"

/* A chain with this number of hand-overs. */
static struct ebpfMonChain handingOver(unsigned count)
{
    struct ebpfMonChain c = chainOf(1, 1000 * MS, 0, UINT32_MAX);

    c.handOvers = count;
    return c;
}

static void handedOver(void)
{
    struct ebpfMonChain a = handingOver(2), b, c;

    setUp(20);
    addChain(a, 1);
    testOk(!heard.count && countOpen() == 1, "a trace waits for what it handed over");
    b = chainOf(2, 1010 * MS, 7, UINT32_MAX);
    takes(a, b);
    addChain(b, 1);
    c = chainOf(2, 1012 * MS, 8, UINT32_MAX);
    takes(a, c);
    addChain(c, 1);
    isDone(a);
    testOk(!heard.count && countOpen() == 1, "a trace waits on while one of two is not done");
    addChain(chainOf(3, 1013 * MS, 9, UINT32_MAX), 1);
    testOk(heard.count == 1 && heard.chains == 1, "a chain of another thread does not belong to it");
    isDone(a);
    testOk(heard.count == 2 && heard.chains == 3 && heard.begin == a.begin && !heard.isIncomplete && !countOpen(),
           "a trace is complete when all is done: a callback can make several chains, or none");
}

/* The chain that takes a hand-over completes a record that an unknown chain began. */
static void unknownCause(void)
{
    struct ebpfMonChain a = handingOver(1), b;

    setUp(20);
    addChain(a, 1);
    b = second(chainOf(5, 10 * MS, 7, UINT32_MAX), 2, 1010 * MS, 7);
    takes(a, b);
    addChain(b, 1);
    testOk(!heard.count && countOpen() == 1, "a trace still waits");
    isDone(a);
    testOk(heard.count == 1 && heard.chains == 2 && heard.isBelowSource,
           "what it completes was begun by a chain that is not known: its place is below the one that handed it over");

    setUp(20);
    b.flags = EBPFMON_CHAIN_EARLY;
    takes(a, b);
    addChain(b, 1);
    addChain(a, 1);
    isDone(a);
    testOk(heard.count == 1 && heard.chains == 2 && heard.isBelowSource,
           "… also if the hand-over was done earlier than the chain");
}

/* The event that a hand-over is done can come before the event of the chain that made it. */
static void doneBeforeEnd(void)
{
    struct ebpfMonChain a = handingOver(1);

    setUp(20);
    isDone(a);
    addChain(a, 1);
    testOk(heard.count == 1 && !heard.isIncomplete,
           "a hand-over that was done before the chain's end is not waited for");
    addChain(a, 1);
    testOk(heard.count == 1 && countOpen() == 1, "… and counts once");
    tick(1001 * MS + ASYNC_NS);
    testOk(heard.count == 2 && heard.isIncomplete, "a trace whose hand-over is never done is finished as incomplete");

    setUp(20);
    a = handingOver(300);
    for (unsigned i = 0; i < a.handOvers; i++) {
        isDone(a);
        isDone(chainOf(20, i + 1, 0, UINT32_MAX));
    }
    addChain(a, 1);
    testOk(heard.count == 1 && !heard.isIncomplete, "… however many hand-overs there were, its own and others'");
}

/* The event of a chain that was handed over was lost. */
static void missing(void)
{
    struct ebpfMonChain a = handingOver(1), b = chainOf(2, 1010 * MS, 7, UINT32_MAX);

    setUp(20);
    addChain(a, 1);
    takes(a, b);
    addChain(b, 1);
    isDoneBy(a, 2, 1);
    testOk(heard.count == 1 && heard.chains == 2 && !heard.isIncomplete,
           "a hand-over of one chain that arrived is complete");

    setUp(20);
    addChain(a, 1);
    takes(a, b);
    isDoneBy(a, 2, 1);
    testOk(heard.count == 1 && heard.chains == 1 && heard.isIncomplete,
           "if the chain did not arrive, the trace is incomplete");

    setUp(20);
    isDoneBy(a, 2, 1);
    addChain(a, 1);
    testOk(heard.count == 1 && heard.isIncomplete, "… also if that was known before the source chain");
}

static void endsBeforeCause(void)
{
    struct ebpfMonChain a = handingOver(1), b;

    setUp(20);
    b = chainOf(2, 1000 * MS, 7, UINT32_MAX);
    b.flags = EBPFMON_CHAIN_EARLY;
    b.handOvers = 1;
    takes(a, b);
    addChain(b, 1);
    testOk(!heard.count && countOpen() == 1, "a chain that ends before its source chain waits for that");
    isDone(a);
    addChain(a, 1);
    testOk(!heard.count && countOpen() == 1, "… and then is a part of its trace,");
    isDone(b);
    testOk(heard.count == 1 && heard.chains == 2 && heard.begin == a.begin && !heard.isIncomplete,
           "… with what it left itself");
    takes(a, b);
    addChain(b, 1);
    tick(1001 * MS + ASYNC_NS);
    testOk(heard.count == 2 && heard.isIncomplete, "… or is finished alone, if the source chain never comes");
}

static void clientPut(void)
{
    struct ebpfMonChain a = handingOver(1), b;
    struct ebpfMonPutEvent put;

    setUp(20);
    addChain(a, 1);
    b = chainOf(2, 1010 * MS, 7, UINT32_MAX);
    takes(a, b);
    put = putOf(2, 1010 * MS + 5, 90, 7);
    put.who.isCA = 1;
    ebpfMonThreadPutsAdd(threadPuts, &put, "");
    addChain(b, 1);
    testOk(!heard.count && countOpen() == 2, "a client's put that waited for a busy record begins a trace of its own");
    finishAll();
}

static void keepsGoing(void)
{
    struct ebpfMonChain a = handingOver(1), b, c;

    setUp(20);
    addChain(a, 1);
    c = a;
    for (unsigned i = 0; i < EBPFMON_TRACE_CHAINS + 10; i++) {
        b = chainOf(2, (5000 + i) * MS, 7, UINT32_MAX);
        b.handOvers = 1;
        takes(c, b);
        addChain(b, 1);
        isDone(c);
        c = b;
    }
    testOk(heard.count == 1 && heard.chains == EBPFMON_TRACE_CHAINS && heard.isIncomplete && countOpen() == 1,
           "a chain that keeps itself going becomes several traces");
}

MAIN(testTraceHandOvers)
{
    testPlan(20);
    tracesTestBegin();
    handedOver();
    unknownCause();
    doneBeforeEnd();
    missing();
    endsBeforeCause();
    clientPut();
    keepsGoing();
    tracesTestEnd();
    return testDone();
}

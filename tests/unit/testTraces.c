/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "tracesTest.h"
#include "trace/traces.h"

/* --- Traces --- */

/* The chains that make one trace, the time when it is finished, and the limits of the memory. Times are invented. */

#define OPEN_MAX    256
#define RECORDS_MAX 65536
#define GONE_NS     1000000000ull /* the chains of an IOC that ended are waited for */
#define PUT_NS      1000000000ull
#define MESSAGE_NS  1000000000ull
#define CAUSE_NS    100000000ull

static void chains(void)
{
    struct ebpfMonChain a, b;

    setUp(20);
    addChain(chainOf(1, 1000 * MS, 0, UINT32_MAX), 3);
    testOk(heard.count == 1 && heard.records == 3 && !heard.isIncomplete,
           "a trace that waits for nothing is finished at once");

    a = chainOf(1, 2000 * MS, 0, 5);
    addChain(a, 2);
    testOk1(heard.count == 1 && countOpen() == 1);
    b = second(a, 2, 2500 * MS, 5);
    b.causeTid = 9;
    addChain(b, 1);
    testOk(heard.count == 2 && heard.chains == 1 && countOpen() == 1,
           "what another thread began does not belong to the trace");
    b = second(a, 2, 2600 * MS, 6);
    addChain(b, 1);
    testOk(heard.count == 2 && countOpen() == 1, "after another record of the same chain the trace waits on");
    b = second(a, 2, 2700 * MS, 5);
    b.flags = EBPFMON_CHAIN_BUSY;
    addChain(b, 1);
    testOk(heard.count == 2 && countOpen() == 1, "a trace waits while its record still processes");
    addChain(second(b, 2, 2800 * MS, 5), 1);
    testOk(heard.count == 3 && heard.chains == 4 && heard.begin == a.begin && !heard.isIncomplete && !countOpen(),
           "the trace is complete with what the chain before left");

    a = chainOf(1, 3000 * MS, 0, 5);
    addChain(a, 2);
    tick(3001 * MS + ASYNC_NS - 1);
    testOk1(heard.count == 3);
    tick(3001 * MS + ASYNC_NS);
    testOk(heard.count == 4 && heard.isIncomplete, "a trace that does not complete is finished as incomplete");
    addChain(second(a, 2, 20000 * MS, 5), 1);
    testOk(heard.count == 5 && heard.chains == 1, "… and what completes it later becomes a trace of its own");
}

static void ended(void)
{
    setUp(20);
    addChain(chainOf(1, 1000 * MS, 0, 5), 1);
    sceneTarget->gone = 1;
    tick(1001 * MS + GONE_NS);
    testOk(heard.count == 1 && heard.isIncomplete && !countOpen(),
           "the traces of an IOC that ended are finished before its names are gone");
    sceneTarget->gone = 0;
}

static void finishPut(uint32_t tid, uint64_t id, const ebpfMonPut *put)
{
    ebpfMonMessageKey key = { .at = 0 };
    ebpfMonPutSummary summary;

    ebpfMonPutSummaryMake(put, &key, &summary);
    ebpfMonThreadPutsFinish(threadPuts, sceneTarget->iocId, tid, id, &summary);
    ebpfMonTracesAddPut(traces, sceneTarget->iocId, tid, id, &summary);
}

static void putsOf(void)
{
    static ebpfMonPut put;
    struct ebpfMonPutEvent ev;

    setUp(20);
    ev = putOf(3, 1000 * MS + 5, 77, 4);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    addChain(chainOf(3, 1000 * MS, 4, UINT32_MAX), 1);
    testOk(!heard.count, "a trace waits for its put");
    finishPut(3, 76, &put);
    finishPut(4, 77, &put);
    testOk1(!heard.count);
    finishPut(3, 77, &put);
    testOk1(heard.count == 1 && heard.hasPut);

    ev = putOf(3, 2000 * MS + 5, 78, 4);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    finishPut(3, 78, &put);
    addChain(chainOf(3, 2000 * MS, 4, UINT32_MAX), 1);
    testOk(heard.count == 2 && heard.hasPut, "a put that was published before belongs to its trace");
    addChain(chainOf(3, 2010 * MS, 4, UINT32_MAX), 1);
    testOk(heard.count == 3 && !heard.hasPut, "the next chain does not have that put");
    ev = putOf(3, 3000 * MS + 5, 79, 5);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    addChain(chainOf(3, 3000 * MS, 4, UINT32_MAX), 1);
    testOk(heard.count == 4 && !heard.hasPut, "a chain of another record does not have it either");

    ev = putOf(3, 4000 * MS + 5, 80, 4);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    addChain(chainOf(3, 4000 * MS, 4, UINT32_MAX), 1);
    tick(4001 * MS + PUT_NS + 1);
    testOk(heard.count == 5 && !heard.hasPut, "a trace does not wait for ever for a put that never comes");
}

/* The put of a chain names the chain that caused it. If spans are exported, a trace waits for this chain. */
static void putsOfCauses(void)
{
    static ebpfMonPut put;
    struct ebpfMonPutEvent ev;

    setUp(20);
    exports = 1;
    ev = putOf(3, 5000 * MS + 5, 81, 4);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    addChain(chainOf(3, 5000 * MS, 4, UINT32_MAX), 1);
    ev = putOf(4, 5002 * MS + 5, 82, 5);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    addChain(chainOf(4, 5002 * MS, 5, UINT32_MAX), 1);
    put.linkChain = (ebpfMonChainId){ .iocId = sceneTarget->iocId, .tid = 3, .begin = 5000 * MS };
    finishPut(4, 82, &put);
    tick(5003 * MS);
    testOk(!heard.count && countOpen() == 2, "a trace waits for a put that its cause waits for");
    memset(&put, 0, sizeof(put));
    finishPut(3, 81, &put);
    tick(5004 * MS + CAUSE_NS);
    testOk(heard.count == 2 && !countOpen(), "with that put both are finished");

    put.linkChain = (ebpfMonChainId){ .iocId = sceneTarget->iocId, .tid = 3, .begin = 6000 * MS };
    ev = putOf(4, 6001 * MS + 5, 83, 5);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    finishPut(4, 83, &put);
    addChain(chainOf(4, 6001 * MS, 5, UINT32_MAX), 1);
    put.linkChain = (ebpfMonChainId){ .iocId = sceneTarget->iocId, .tid = 4, .begin = 6001 * MS };
    ev = putOf(5, 6002 * MS + 5, 84, 6);
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    finishPut(5, 84, &put);
    addChain(chainOf(5, 6002 * MS, 6, UINT32_MAX), 1);
    tick(6004 * MS);
    testOk(heard.count == 2 && countOpen() == 2, "two traces wait for a chain that ends later than what it caused");
    addChain(chainOf(3, 6000 * MS, 4, UINT32_MAX), 1);
    tick(6005 * MS);
    testOk(heard.count == 5 && !countOpen(), "when it has ended, all three are finished");
}

/* The put of thread 5 to record 6, whose chain begins at "at"; the chain of thread 3 that began at "cause" wrote. */
static void isCausedBy(uint64_t cause, uint64_t at)
{
    static uint64_t number = 100;
    static ebpfMonPut put;
    struct ebpfMonPutEvent ev = putOf(5, at + 5, ++number, 6);

    put.linkChain = (ebpfMonChainId){ .iocId = sceneTarget->iocId, .tid = 3, .begin = cause };
    ebpfMonThreadPutsAdd(threadPuts, &ev, "");
    finishPut(5, number, &put);
    addChain(chainOf(5, at, 6, UINT32_MAX), 1);
}

/* A device keeps the chain that wrote for long. */
static void slowCauses(void)
{
    setUp(20);
    exports = 1;
    isCausedBy(7000 * MS, 7001 * MS);
    holds(3, 7000 * MS);
    for (uint64_t now = 7002; now < 12000; now += 10)
        tick(now * MS);
    testOk(!heard.count && countOpen() == 1, "a trace waits for the chain that caused it as long as this is under way");
    holds(0, 0);
    tick(12000 * MS);
    addChain(chainOf(3, 7000 * MS, 4, UINT32_MAX), 1);
    tick(12010 * MS);
    testOk(heard.count == 2 && !countOpen() && !heard.isIncomplete, "… and is complete when that has ended");

    isCausedBy(13000 * MS, 13001 * MS);
    holds(3, 12999 * MS);
    for (uint64_t now = 13002; now < 13002 + 2 * CAUSE_NS / MS; now += 10)
        tick(now * MS);
    testOk(heard.count == 3 && !heard.isIncomplete, "it does not wait while that thread is in another chain");

    isCausedBy(14000 * MS, 14001 * MS);
    holds(3, 14000 * MS);
    for (uint64_t now = 14002; now <= 14002 + ASYNC_NS / MS; now += 10)
        tick(now * MS);
    testOk(heard.count == 4 && heard.isIncomplete, "a trace that gives up while its cause is under way says so");

    isCausedBy(30000 * MS, 30001 * MS);
    tick(30002 * MS);
    testOk1(heard.count == 4 && ebpfMonTracesGetDue(traces, 30002 * MS) == 30002 * MS + CAUSE_NS / 2);
    holds(3, 30000 * MS);
    tick(30002 * MS + CAUSE_NS / 2);
    testOk1(heard.count == 4 && ebpfMonTracesGetDue(traces, 30052 * MS) == 30052 * MS + CAUSE_NS / 2);
    holds(0, 0);
    tick(30002 * MS + CAUSE_NS);
    testOk(heard.count == 4 && ebpfMonTracesGetDue(traces, 30102 * MS) == 30052 * MS + CAUSE_NS,
           "the event of a chain has some time to come after it has ended");
    tick(30052 * MS + CAUSE_NS);
    testOk(heard.count == 5 && !heard.isIncomplete, "… but no longer: that chain was not kept");
}

/* The monitor stood still, and events were lost before and while it reads what is in the ring. */
static void lostTwice(void)
{
    uint64_t before;

    setUp(20);
    addChain(chainOf(1, ebpfMonClockMonotonic() - 100 * MS, 0, UINT32_MAX), 1);
    testOk(heard.count == 1 && !heard.isIncomplete, "nothing was lost yet");
    before = ebpfMonClockMonotonic();
    eventsLost++;
    addChain(chainOf(1, before - 50 * MS, 0, UINT32_MAX), 1);
    eventsLost++;
    addChain(chainOf(1, before - 2 * MS, 0, UINT32_MAX), 1);
    addChain(chainOf(1, before - MS, 0, UINT32_MAX), 1);
    testOk(heard.count == 4 && heard.isIncomplete, "what is older than the last look may lack what was lost before it");
    addChain(chainOf(1, ebpfMonClockMonotonic() + MS, 0, UINT32_MAX), 1);
    testOk(heard.count == 5 && !heard.isIncomplete, "what is newer than the last loss is complete");
    eventsLost = 0;
}

/* The monitor has read the IOC's records again: an old index is now another record, or none. */
static void readAnew(void)
{
    struct ebpfMonChain a;
    ebpfMonCatalogue *old;

    setUp(20);
    a = chainOf(1, 1000 * MS, 15, 16);
    addChain(a, 1);
    old = sceneTarget->cat;
    sceneTarget->cat = sceneNewCatalogue(3);
    sceneTarget->slot = 2000;
    ebpfMonCatalogueRelease(old);
    addChain(second(a, 1, 1010 * MS, 2), 1);
    testOk(heard.count == 1 && heard.chains == 1, "a chain after the records were read again is not joined");
    finishAll();
    testOk(heard.count == 1 && !countOpen(), "a trace with indexes from before is dropped");
}

/* The monitor has read the IOC's records again, because aliases came: each is the same record as before. */
static void aliases(void)
{
    struct ebpfMonChain a;
    ebpfMonCatalogue *old;

    setUp(20);
    a = chainOf(1, 1000 * MS, 15, 16);
    addChain(a, 1);
    old = sceneTarget->cat;
    sceneTarget->cat = sceneNewCatalogue(20);
    sceneTarget->cat->since = old->since;
    addChain(second(a, 1, 1010 * MS, 16), 1);
    testOk(heard.count == 1 && heard.chains == 2 && heard.hasCatalogue, "a trace goes on when aliases came");
    testOk(old->refs == 1, "it has the new catalogue then, which has the links");
    ebpfMonCatalogueRelease(old);
}

static void bounds(void)
{
    struct ebpfMonChain a;
    uint32_t most = 0;
    epicsUInt64 began;
    double took;

    setUp(20);
    for (unsigned i = 0; i < OPEN_MAX + 10; i++)
        addChain(chainOf(100 + i, 1000 * MS + i, 0, 5), 1);
    testOk(countOpen() == OPEN_MAX && heard.count == 10 && heard.isIncomplete,
           "with too many open traces, the oldest are finished");

    setUp(20);
    for (unsigned i = 0; i < OPEN_MAX; i++)
        addChain(chainOf(100 + i, 1000 * MS + i, 0, 5), 1);
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        a = chainOf(100 + i, 1000 * MS + i, 0, 5);
        for (unsigned k = 0; k < EBPFMON_TRACE_CHAINS + 2; k++) {
            struct ebpfMonChain b = second(a, 100 + i, 2000 * MS + 100 * k + i, 5);

            b.flags = EBPFMON_CHAIN_BUSY;
            addChain(b, 2048);
            if (ebpfMonTracesCountRecords(traces) > most)
                most = ebpfMonTracesCountRecords(traces);
        }
    }
    testOk(most <= RECORDS_MAX, "at most %u records are kept", most);

    setUp(20);
    for (unsigned i = 0; i < OPEN_MAX; i++)
        addChain(chainOf(100 + i, 1000 * MS + i, 0, 5), 1);
    for (unsigned k = 1; k < EBPFMON_TRACE_CHAINS; k++)
        for (unsigned i = 0; i < OPEN_MAX; i++) {
            a = second(chainOf(100 + i, 1000 * MS + i, 0, 5), 900 + i, (1000 + k) * MS, 5);
            a.flags = EBPFMON_CHAIN_BUSY;
            addChain(a, 1);
        }
    began = ebpfMonClockThreadCpu();
    for (unsigned i = 0; i < 20000; i++)
        isDone(chainOf(1, i, 0, UINT32_MAX));
    took = (double)(ebpfMonClockThreadCpu() - began) / 1e9;
    testOk(countOpen() == OPEN_MAX && took < 0.5,
           "20000 chains are looked for among %u in %.3f s of CPU time", OPEN_MAX * EBPFMON_TRACE_CHAINS, took);
    finishAll();
    testOk1(!countOpen() && !ebpfMonTracesCountRecords(traces));
}

static void writes(const char *link, uint64_t begin)
{
    ebpfMonLinkWrite l = { .pid = 50, .at = begin + 10,
                           .chain = { .iocId = sceneTarget->iocId, .tid = 1, .begin = begin } };

    strcpy(l.link, link);
    strcpy(l.channel, "pv");
    ebpfMonLinkMessagesAdd(messages, &l);
}

static void linkWrites(void)
{
    ebpfMonMessageKey key = { .peer = { .addr = 1 }, .seq = 5, .seqKind = EBPFMON_SEQ_MESSAGE, .at = 1016 * MS };
    ebpfMonChainId chain = { sceneTarget->iocId, 1, 1010 * MS };

    setUp(20);
    exports = 1;
    writes("a.OUT", 1010 * MS);
    writes("a.OUT", 1020 * MS);
    addChain(chainOf(1, 1010 * MS, 0, UINT32_MAX), 1);
    testOk(!heard.count && countOpen() == 1, "a trace waits for its message");
    testOk(ebpfMonTracesFindOpen(traces, &chain) != NULL && !ebpfMonTracesFindFinishedId(traces, &chain),
           "meanwhile the trace is open");
    ebpfMonLinkMessagesNoteArrival(messages, &chain, "a.OUT", &key);
    tick(1017 * MS);
    testOk(heard.count == 1 && !heard.isIncomplete, "the trace is finished when its message is seen");
    testOk(!ebpfMonTracesFindOpen(traces, &chain) && ebpfMonTracesFindFinishedId(traces, &chain) &&
           ebpfMonTracesFindFinishedId(traces, &chain)[0] == 1, "the id of the trace is known afterwards");
    addChain(chainOf(1, 1020 * MS, 0, UINT32_MAX), 1);
    tick(1021 * MS + MESSAGE_NS + 1);
    testOk(heard.count == 2 && heard.isIncomplete, "or is not: then it is marked");
    writes("a.OUT", 3010 * MS);
    writes("a.OUT", 3020 * MS);
    chain.begin = 3020 * MS;
    ebpfMonLinkMessagesNoteArrival(messages, &chain, "a.OUT", &key);
    addChain(chainOf(1, 3010 * MS, 0, UINT32_MAX), 1);
    tick(3021 * MS);
    testOk(heard.count == 3 && !heard.isIncomplete, "a value that a later one of the link replaced was never sent");
    writes("a.OUT", 3030 * MS);
    chain.begin = 3030 * MS;
    key.seqKind = EBPFMON_SEQ_NONE;
    ebpfMonLinkMessagesNoteArrival(messages, &chain, "a.OUT", &key);
    addChain(chainOf(1, 3030 * MS, 0, UINT32_MAX), 1);
    tick(3031 * MS);
    testOk(heard.count == 4 && heard.isIncomplete, "it came in a message that is not known");
    for (unsigned i = 0; i < 513; i++)
        writes("a.OUT", 4000 * MS + i);
    addChain(chainOf(1, 4000 * MS, 0, UINT32_MAX), 1);
    tick(4001 * MS);
    testOk(heard.count == 5 && heard.isIncomplete, "its link write is forgotten, because there were many");
}

/* The source chain of a CP link may end later than the chain that it caused. */
static void cpLinks(void)
{
    static char name[80] = "R2.VAL";
    struct ebpfMonChain a, b;
    struct ebpfMonHandOverEvent ev;
    struct ebpfMonChainRec rec = { .slot = SCENE_SLOT + 2, .time = sceneStamp(900 * MS) };

    ebpfMonTracesFree(traces);
    ebpfMonTargetsRemove(targets, sceneTarget); /* one with names, to which the link leads */
    ebpfMonCatalogueRelease(sceneTarget->cat);
    free(sceneTarget);
    sceneNewIoc();
    ebpfMonTargetsAdd(targets, sceneTarget);
    traces = ebpfMonTracesNew(&(ebpfMonTracesUses){ targets, threadPuts, messages, isExporting,
                                                    .eachThread = eachThread }, onTrace, &heard);
    memset(&heard, 0, sizeof(heard));
    exports = 0;
    sceneMemory[5].inp = (struct layoutPvLink){ .precord = (uintptr_t)&sceneMemory[5], .type = EBPFMON_LINK_CA,
                                                .pvlMask = EBPFMON_PVL_CP,
                                                .pvname = (uintptr_t)name };
    b = chainOf(2, 1010 * MS, 5, UINT32_MAX);
    ev = (struct ebpfMonHandOverEvent){ .head = b.head, .what.cpLink = (uintptr_t)&sceneMemory[5].inp };
    memcpy(ev.what.caLink + 64, &rec.time, sizeof(rec.time));
    ebpfMonTracesBeginHandOver(traces, &ev);
    addChain(b, 1);
    tick(1012 * MS);
    testOk(!heard.count && countOpen() == 1, "a trace waits for the chain that caused its CP link");
    a = chainOf(1, 899 * MS, 0, UINT32_MAX);
    a.total = 1;
    ebpfMonTracesAddChain(traces, sceneTarget, &a, &rec, 1);
    ebpfMonTracesFinishChain(traces);
    tick(1013 * MS);
    testOk(heard.count == 2 && heard.begin == b.begin && heard.cause.iocId == sceneTarget->iocId &&
           heard.cause.begin == a.begin, "… and is finished when that is found");
    rec.time++;
    b = chainOf(2, 2010 * MS, 5, UINT32_MAX);
    ev.head = b.head;
    memcpy(ev.what.caLink + 64, &rec.time, sizeof(rec.time));
    ebpfMonTracesBeginHandOver(traces, &ev);
    addChain(b, 1);
    holds(3, 1999 * MS);
    for (uint64_t now = 2011; now < 5000; now += 10)
        tick(now * MS);
    testOk(heard.count == 2 && countOpen() == 1, "a chain of that IOC is under way: it may be the source");
    holds(3, 2010 * MS + 1);
    for (uint64_t now = 5000; now < 5000 + 2 * CAUSE_NS / MS; now += 10)
        tick(now * MS);
    testOk(heard.count == 3 && !heard.cause.iocId && !heard.isIncomplete,
           "a chain that began later cannot be the source: none is found");
    strcpy(name, "X9");
    b = chainOf(2, 6010 * MS, 5, UINT32_MAX);
    ev.head = b.head;
    ebpfMonTracesBeginHandOver(traces, &ev);
    addChain(b, 1);
    tick(6012 * MS);
    testOk(heard.count == 4 && !countOpen(), "a link to a record that no IOC here has is not waited for");
}

static void runTraces(void)
{
    tracesTestBegin();
    chains();
    ended();
    putsOf();
    putsOfCauses();
    slowCauses();
    lostTwice();
    readAnew();
    aliases();
    bounds();
    linkWrites();
    cpLinks();
    tracesTestEnd();
}

/* --- FinishedTraces --- */

/* Each chain of a finished trace finds the id of this trace, as long as there is room. */

static void add(ebpfMonFinishedTraces *finished, const ebpfMonChainId *chain, const ebpfMonChainId *owner,
                const uint8_t traceId[16])
{
    ebpfMonFinishedChain c = { .chain = *chain, .owner = *owner };

    memcpy(c.traceId, traceId, sizeof(c.traceId));
    ebpfMonFinishedTracesAdd(finished, &c);
}

static int hasId(const ebpfMonFinishedChain *c, const uint8_t traceId[16])
{
    return c && memcmp(c->traceId, traceId, sizeof(c->traceId)) == 0;
}

static void runFinishedTraces(void)
{
    ebpfMonFinishedTraces *finished = ebpfMonFinishedTracesNew();
    ebpfMonChainId a = { .iocId = 1, .tid = 10, .begin = 1000 }, b = a, c, other = { 1, 11, 900 };
    const uint8_t id[16] = { 1, 2, 3 }, newer[16] = { 4, 5, 6 };
    unsigned found = 0, wrong = 0;

    testOk(!ebpfMonFinishedTracesFind(finished, &a), "no trace is known at first");
    add(finished, &a, &other, id);
    testOk(hasId(ebpfMonFinishedTracesFind(finished, &a), id) &&
               ebpfMonChainIdIsSame(&ebpfMonFinishedTracesFind(finished, &a)->owner, &other),
           "a chain is found with its trace's id, and with the chain that has its span");
    b.iocId = 2;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "a chain of another IOC is not found");
    b = a;
    b.tid = 11;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "nor a chain of another thread");
    b = a;
    b.begin++;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "nor another chain of the same thread");
    add(finished, &a, &a, newer);
    testOk(hasId(ebpfMonFinishedTracesFind(finished, &a), newer), "of two ids the newer one counts");
    for (uint32_t i = 0; i < 100000; i++) {
        uint8_t its[16] = { 0 };

        c = (ebpfMonChainId){ .iocId = 3, .tid = 20 + i % 7, .begin = 5000 + 977ull * i };
        memcpy(its, &i, sizeof(i));
        add(finished, &c, &c, its);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        const ebpfMonFinishedChain *its;

        c = (ebpfMonChainId){ .iocId = 3, .tid = 20 + i % 7, .begin = 5000 + 977ull * i };
        its = ebpfMonFinishedTracesFind(finished, &c);
        found += its != NULL;
        wrong += its && memcmp(its->traceId, &i, sizeof(i)) != 0;
    }
    testOk(found > 8000 && !wrong, "of 100000 chains the last ones are known: %u, %u with a wrong id", found, wrong);
    ebpfMonFinishedTracesFree(finished);
}

MAIN(testTraces)
{
    testPlan(53 + 7);
    runTraces();
    runFinishedTraces();
    return testDone();
}

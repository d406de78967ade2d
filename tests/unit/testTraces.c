/* SPDX-License-Identifier: BSD-3-Clause */
/* Which chains make one trace, when it is told, and that what is kept has its bounds. The file is built into the test:
 * what it tells comes here. Times are invented. */
#include <stdlib.h>
#include <string.h>

#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traces.c"

ebpfMonTargets *ebpfMonTheTargets;

#define MS  1000000ull
#define IOC 7

static ebpfMonTarget target;
static ebpfMonCatalogue *catalogue;

/* What was told last, and how often. */
static struct {
    unsigned count, chains, records;
    int cut, hasPut;
    uint64_t begin;
} heard;
static int exports;

void ebpfMonTargetsLock(ebpfMonTargets *targets) { (void)targets; }
void ebpfMonTargetsUnlock(ebpfMonTargets *targets) { (void)targets; }
int ebpfMonExportWantsSpans(void) { return exports; }

ebpfMonTarget *ebpfMonTargetsFindById(ebpfMonTargets *targets, uint32_t iocId)
{
    (void)targets;
    return iocId == IOC ? &target : NULL;
}

ebpfMonTarget *ebpfMonTargetsGetFirst(ebpfMonTargets *targets)
{
    (void)targets;
    return &target;
}

static void hear(ebpfMonTarget *t, ebpfMonTrace *trace)
{
    (void)t;
    heard.count++;
    heard.chains = trace->chains;
    heard.records = trace->records;
    heard.cut = trace->cut;
    heard.hasPut = trace->put != NULL;
    heard.begin = trace->first->chain.begin;
    trace->hasId = exports; /* as the spans do */
}

static ebpfMonCatalogue *newCatalogue(uint32_t count)
{
    ebpfMonCatalogue *cat = calloc(1, sizeof(*cat));

    cat->refs = 1;
    cat->count = count;
    cat->rec = calloc(count, sizeof(*cat->rec));
    for (uint32_t i = 0; i < count; i++)
        cat->rec[i].addr = 0x1000 + 0x100 * i;
    return cat;
}

static void setUp(uint32_t count)
{
    ebpfMonTracesStart(hear);
    ebpfMonTracesTick(0, 1);
    ebpfMonCatalogueRelease(catalogue);
    target.cat = catalogue = newCatalogue(count);
    target.iocId = IOC;
    target.slot = 1000;
    exports = 0;
    memset(&heard, 0, sizeof(heard));
}

/* A chain of "root" from "begin" for 1 ms, that left "async" processing (UINT32_MAX: nothing). */
static struct ebpfMonChain chainOf(uint32_t tid, uint64_t begin, uint32_t root, uint32_t async)
{
    struct ebpfMonChain c = {
        .head = { .kind = EBPFMON_EV_CHAIN, .tid = tid, .iocId = IOC, .ktime = begin + MS },
        .begin = begin, .rootSlot = target.slot + root,
    };

    if (async != UINT32_MAX)
        c.async[0] = target.slot + async + 1;
    return c;
}

static void give(struct ebpfMonChain c, uint32_t count)
{
    static struct ebpfMonChainRec rec[2048];

    for (uint32_t i = 0; i < count; i++)
        rec[i] = (struct ebpfMonChainRec){ .slot = c.rootSlot, .time = (uint64_t)(count - i) << 32 };
    c.total = count;
    ebpfMonTracesAddChain(&target, &c, rec, count);
}

static struct ebpfMonChain second(struct ebpfMonChain first, uint32_t tid, uint64_t begin, uint32_t root)
{
    struct ebpfMonChain c = chainOf(tid, begin, root, UINT32_MAX);

    c.causeTid = first.head.tid;
    c.causeBegin = first.begin;
    return c;
}

static void chains(void)
{
    struct ebpfMonChain a, b;

    setUp(20);
    give(chainOf(1, 1000 * MS, 0, UINT32_MAX), 3);
    testOk(heard.count == 1 && heard.records == 3 && !heard.cut, "one that left nothing is told at once");

    a = chainOf(1, 2000 * MS, 0, 5);
    give(a, 2);
    testOk1(heard.count == 1 && open == 1);
    b = second(a, 2, 2500 * MS, 5);
    b.causeTid = 9;
    give(b, 1);
    testOk(heard.count == 2 && heard.chains == 1 && open == 1, "what another thread began is none of it");
    b = second(a, 2, 2600 * MS, 6);
    give(b, 1);
    testOk(heard.count == 2 && open == 1, "another record of the same chain: it waits on");
    b = second(a, 2, 2700 * MS, 5);
    b.flags = EBPFMON_CHAIN_BUSY;
    give(b, 1);
    testOk(heard.count == 2 && open == 1, "its record processes still");
    give(second(b, 2, 2800 * MS, 5), 1);
    testOk(heard.count == 3 && heard.chains == 4 && heard.begin == a.begin && !heard.cut && !open,
           "complete with what the half before it left");

    a = chainOf(1, 3000 * MS, 0, 5);
    give(a, 2);
    ebpfMonTracesTick(3001 * MS + BUSY_NS - 1, 0);
    testOk1(heard.count == 3);
    ebpfMonTracesTick(3001 * MS + BUSY_NS, 0);
    testOk(heard.count == 4 && heard.cut, "one that does not complete is told as incomplete");
    give(second(a, 2, 20000 * MS, 5), 1);
    testOk(heard.count == 5 && heard.chains == 1, "and its other half on its own");
}

static void ended(void)
{
    setUp(20);
    give(chainOf(1, 1000 * MS, 0, 5), 1);
    target.gone = 1;
    ebpfMonTracesTick(1001 * MS + GONE_NS, 0);
    testOk(heard.count == 1 && heard.cut && !open, "what an IOC left is told before its names are gone");
    target.gone = 0;
}

/* What "chain" hands over is taken out by the thread of "next", which the kernel tells just before it. */
static void takes(struct ebpfMonChain chain, struct ebpfMonChain next)
{
    struct ebpfMonHandOverEvent ev = { .head = next.head, .what.by = { .begin = chain.begin, .tid = chain.head.tid } };

    ev.what.by.root = catalogue->rec[chain.rootSlot - target.slot].addr;
    ebpfMonHandOversBegin(&ev);
}

static void isDone(struct ebpfMonChain chain)
{
    struct ebpfMonHandOverEvent ev = { .head = { .iocId = IOC }, .what.by = { .begin = chain.begin, .tid = chain.head.tid } };

    ebpfMonTracesEndHandOver(&ev);
}

static struct ebpfMonPutEvent putOf(uint32_t tid, uint64_t at, uint64_t id, uint32_t record);

static void handedOver(void)
{
    struct ebpfMonPutEvent put;
    struct ebpfMonChain a, b, c;

    setUp(20);
    a = chainOf(1, 1000 * MS, 0, UINT32_MAX);
    a.handOvers = 2;
    give(a, 1);
    testOk(!heard.count && open == 1, "it waits for what it handed over");
    b = chainOf(2, 1010 * MS, 7, UINT32_MAX);
    takes(a, b);
    give(b, 1);
    c = chainOf(2, 1012 * MS, 8, UINT32_MAX);
    takes(a, c);
    give(c, 1);
    isDone(a);
    testOk(!heard.count && open == 1, "one of two is done");
    give(chainOf(3, 1013 * MS, 9, UINT32_MAX), 1);
    testOk(heard.count == 1 && heard.chains == 1, "another thread's chain is none of it");
    isDone(a);
    testOk(heard.count == 2 && heard.chains == 3 && heard.begin == a.begin && !heard.cut && !open,
           "complete when all is done: a callback can make several chains, or none");

    setUp(20);
    a.handOvers = 1;
    give(a, 1);
    b = second(chainOf(5, 10 * MS, 7, UINT32_MAX), 2, 1010 * MS, 7);
    takes(a, b);
    give(b, 1);
    testOk(open == 1 && last->chains == 2 && !last->last->chain.causeBegin,
           "what it completes was begun by a chain that is not known: it is below the one that handed it over");
    ebpfMonTracesTick(0, 1);
    setUp(20);
    b.flags = EBPFMON_CHAIN_EARLY;
    give(b, 1);
    give(a, 1);
    testOk(open == 1 && last->chains == 2 && !last->last->chain.causeBegin, "if it was done earlier than that one, too");
    ebpfMonTracesTick(0, 1);

    setUp(20);
    a.handOvers = 1;
    isDone(a);
    give(a, 1);
    testOk(heard.count == 1 && !heard.cut, "what was done before the chain's end is not waited for");
    give(a, 1);
    testOk(heard.count == 1 && open == 1, "and counts once");
    ebpfMonTracesTick(1001 * MS + BUSY_NS, 0);
    testOk(heard.count == 2 && heard.cut, "what is never done is told as incomplete");

    setUp(20);
    a = chainOf(1, 1000 * MS, 0, UINT32_MAX);
    a.handOvers = 300;
    for (unsigned i = 0; i < a.handOvers; i++) {
        isDone(a);
        isDone(chainOf(20, i + 1, 0, UINT32_MAX));
    }
    give(a, 1);
    testOk(heard.count == 1 && !heard.cut, "however much that was, its own and others'");
    a.handOvers = 1;

    setUp(20);
    b = chainOf(2, 1000 * MS, 7, UINT32_MAX);
    b.flags = EBPFMON_CHAIN_EARLY;
    b.handOvers = 1;
    takes(a, b);
    give(b, 1);
    testOk(!heard.count && open == 1 && early == 1, "what ends before the chain that it comes from waits for that");
    isDone(a);
    give(a, 1);
    testOk(!heard.count && open == 1 && !early, "and is a part of it then,");
    isDone(b);
    testOk(heard.count == 1 && heard.chains == 2 && heard.begin == a.begin && !heard.cut, "with what it left itself");
    takes(a, b);
    give(b, 1);
    ebpfMonTracesTick(1001 * MS + BUSY_NS, 0);
    testOk(heard.count == 2 && heard.cut && !early, "or is told alone, if that never comes");

    setUp(20);
    give(a, 1);
    b = chainOf(2, 1010 * MS, 7, UINT32_MAX);
    takes(a, b);
    put = putOf(2, 1010 * MS + 5, 90, 7);
    put.who.isCA = 1;
    ebpfMonThreadPutsAdd(&put, "");
    give(b, 1);
    testOk(!heard.count && open == 2, "a client's put that waited for a busy record is its own");
    ebpfMonTracesTick(0, 1);

    setUp(20);
    give(a, 1);
    c = a;
    for (unsigned i = 0; i < EBPFMON_TRACE_CHAINS + 10; i++) {
        b = chainOf(2, (5000 + i) * MS, 7, UINT32_MAX);
        b.handOvers = 1;
        takes(c, b);
        give(b, 1);
        isDone(c);
        c = b;
    }
    testOk(heard.count == 1 && heard.chains == EBPFMON_TRACE_CHAINS && heard.cut && open == 1,
           "what keeps itself going becomes several traces");
}

static struct ebpfMonPutEvent putOf(uint32_t tid, uint64_t at, uint64_t id, uint32_t record)
{
    return (struct ebpfMonPutEvent){
        .head = { .tid = tid, .iocId = IOC, .ktime = at }, .id = id, .site = EBPFMON_SITE_PUT,
        .precord = catalogue->rec[record].addr, .root = catalogue->rec[record].addr,
    };
}

static void putsOf(void)
{
    static ebpfMonPut put;
    struct ebpfMonPutEvent ev;
    ebpfMonMessageKey key = { .at = 0 };

    setUp(20);
    ev = putOf(3, 1000 * MS + 5, 77, 4);
    ebpfMonThreadPutsAdd(&ev, "");
    give(chainOf(3, 1000 * MS, 4, UINT32_MAX), 1);
    testOk(!heard.count && wanted == 1, "it waits for its put");
    ebpfMonTracesAddPut(IOC, 3, 76, &put, &key);
    ebpfMonTracesAddPut(IOC, 4, 77, &put, &key);
    testOk1(!heard.count);
    ebpfMonTracesAddPut(IOC, 3, 77, &put, &key);
    testOk1(heard.count == 1 && heard.hasPut && !wanted);

    ev = putOf(3, 2000 * MS + 5, 78, 4);
    ebpfMonThreadPutsAdd(&ev, "");
    ebpfMonTracesAddPut(IOC, 3, 78, &put, &key);
    give(chainOf(3, 2000 * MS, 4, UINT32_MAX), 1);
    testOk(heard.count == 2 && heard.hasPut, "a put that was published before");
    give(chainOf(3, 2010 * MS, 4, UINT32_MAX), 1);
    testOk(heard.count == 3 && !heard.hasPut, "the next chain is not its");
    ev = putOf(3, 3000 * MS + 5, 79, 5);
    ebpfMonThreadPutsAdd(&ev, "");
    give(chainOf(3, 3000 * MS, 4, UINT32_MAX), 1);
    testOk(heard.count == 4 && !heard.hasPut, "nor one of another record");

    ev = putOf(3, 4000 * MS + 5, 80, 4);
    ebpfMonThreadPutsAdd(&ev, "");
    give(chainOf(3, 4000 * MS, 4, UINT32_MAX), 1);
    ebpfMonTracesTick(4001 * MS + PUT_NS + 1, 0);
    testOk(heard.count == 5 && !heard.hasPut && !wanted, "one that never comes");

    exports = 1;
    ev = putOf(3, 5000 * MS + 5, 81, 4);
    ebpfMonThreadPutsAdd(&ev, "");
    give(chainOf(3, 5000 * MS, 4, UINT32_MAX), 1);
    ev = putOf(4, 5002 * MS + 5, 82, 5);
    ebpfMonThreadPutsAdd(&ev, "");
    give(chainOf(4, 5002 * MS, 5, UINT32_MAX), 1);
    put.linkChain = (ebpfMonChainId){ .iocId = IOC, .tid = 3, .begin = 5000 * MS };
    ebpfMonTracesAddPut(IOC, 4, 82, &put, &key);
    ebpfMonTracesTick(5003 * MS, 0);
    testOk(heard.count == 5 && open == 2, "whose trace it is depends on a put that its sender waits for");
    memset(&put, 0, sizeof(put));
    ebpfMonTracesAddPut(IOC, 3, 81, &put, &key);
    ebpfMonTracesTick(5004 * MS + SENDER_NS, 0);
    testOk(heard.count == 7 && !open, "then both are told");

    put.linkChain = (ebpfMonChainId){ .iocId = IOC, .tid = 3, .begin = 6000 * MS };
    ev = putOf(4, 6001 * MS + 5, 83, 5);
    ebpfMonThreadPutsAdd(&ev, "");
    ebpfMonTracesAddPut(IOC, 4, 83, &put, &key);
    give(chainOf(4, 6001 * MS, 5, UINT32_MAX), 1);
    put.linkChain = (ebpfMonChainId){ .iocId = IOC, .tid = 4, .begin = 6001 * MS };
    ev = putOf(5, 6002 * MS + 5, 84, 6);
    ebpfMonThreadPutsAdd(&ev, "");
    ebpfMonTracesAddPut(IOC, 5, 84, &put, &key);
    give(chainOf(5, 6002 * MS, 6, UINT32_MAX), 1);
    ebpfMonTracesTick(6004 * MS, 0);
    testOk(heard.count == 7 && open == 2, "a chain that ends later than what it set going, and that than what it did");
    give(chainOf(3, 6000 * MS, 4, UINT32_MAX), 1);
    ebpfMonTracesTick(6005 * MS, 0);
    testOk(heard.count == 10 && !open, "then all three");
}

/* Who made the put that began a chain, asked for later: one thread may serve many clients. */
static void putBy(void)
{
    struct ebpfMonSourceChain source = { .begin = 100 * MS, .tid = 9 };
    struct ebpfMonPutEvent ev;

    setUp(20);
    source.root = catalogue->rec[4].addr;
    ev = putOf(9, 90 * MS, 1, 4);
    ebpfMonThreadPutsAdd(&ev, "A");
    testOk(!ebpfMonThreadPutsFindWriter(IOC, &source)[0], "a put of before the chain did not begin it");
    ev = putOf(9, 101 * MS, 2, 4);
    ebpfMonThreadPutsAdd(&ev, "B");
    ev = putOf(9, 110 * MS, 3, 4);
    ebpfMonThreadPutsAdd(&ev, "C");
    testOk(strcmp(ebpfMonThreadPutsFindWriter(IOC, &source), "B") == 0, "nor one by another client since");
    ev = putOf(9, 111 * MS, 4, 5);
    for (unsigned i = 0; i < EBPFMON_PUTS_BEFORE; i++)
        ebpfMonThreadPutsAdd(&ev, "D");
    testOk(!ebpfMonThreadPutsFindWriter(IOC, &source)[0], "after many it is not known any more,");
    ev = putOf(9, 112 * MS, 5, 4);
    for (unsigned i = 0; i < EBPFMON_PUTS_BEFORE + 1; i++)
        ebpfMonThreadPutsAdd(&ev, "B");
    testOk(strcmp(ebpfMonThreadPutsFindWriter(IOC, &source), "B") == 0, "if they are not all the same one's");
}

/* The monitor read the IOC's records anew: an index of before is another record now, or none. */
static void readAnew(void)
{
    struct ebpfMonChain a;
    ebpfMonCatalogue *old;

    setUp(20);
    a = chainOf(1, 1000 * MS, 15, 16);
    give(a, 1);
    old = catalogue;
    target.cat = catalogue = newCatalogue(3);
    target.slot = 2000;
    ebpfMonCatalogueRelease(old);
    give(second(a, 1, 1010 * MS, 2), 1);
    testOk(heard.count == 1 && heard.chains == 1, "its other half is not joined to it");
    ebpfMonTracesTick(0, 1);
    testOk(heard.count == 1 && !open, "what has indexes of before is not told");

}

static void bounds(void)
{
    struct ebpfMonChain a;
    uint32_t most = 0;
    epicsUInt64 began;
    double took;

    setUp(20);
    for (unsigned i = 0; i < OPEN_MAX + 10; i++)
        give(chainOf(100 + i, 1000 * MS + i, 0, 5), 1);
    testOk(open == OPEN_MAX && heard.count == 10 && heard.cut, "so many open ones, the oldest are told");

    setUp(20);
    for (unsigned i = 0; i < OPEN_MAX; i++)
        give(chainOf(100 + i, 1000 * MS + i, 0, 5), 1);
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        a = chainOf(100 + i, 1000 * MS + i, 0, 5);
        for (unsigned k = 0; k < EBPFMON_TRACE_CHAINS + 2; k++) {
            struct ebpfMonChain b = second(a, 100 + i, 2000 * MS + 100 * k + i, 5);

            b.flags = EBPFMON_CHAIN_BUSY;
            give(b, 2048);
            if (records > most)
                most = records;
        }
    }
    testOk(most <= RECORDS_MAX, "%u records are kept at most", most);

    setUp(20);
    for (unsigned i = 0; i < OPEN_MAX; i++)
        give(chainOf(100 + i, 1000 * MS + i, 0, 5), 1);
    for (unsigned k = 1; k < EBPFMON_TRACE_CHAINS; k++)
        for (unsigned i = 0; i < OPEN_MAX; i++) {
            a = second(chainOf(100 + i, 1000 * MS + i, 0, 5), 900 + i, (1000 + k) * MS, 5);
            a.flags = EBPFMON_CHAIN_BUSY;
            give(a, 1);
        }
    began = epicsMonotonicGet();
    for (unsigned i = 0; i < 20000; i++)
        isDone(chainOf(1, i, 0, UINT32_MAX));
    took = (double)(epicsMonotonicGet() - began) / 1e9;
    testOk(open == OPEN_MAX && took < 0.5,
           "20000 are looked for among %u in %.3f s", OPEN_MAX * EBPFMON_TRACE_CHAINS, took);
    ebpfMonTracesTick(0, 1);
    testOk1(!open && !records && !first && !last);
}

static ebpfMonLinkWrite linkOf(uint32_t pid, const char *name, const char *channel, uint64_t begin)
{
    ebpfMonLinkWrite l = { .pid = pid, .at = begin + 10, .chain = { .iocId = IOC, .tid = 1, .begin = begin } };

    strcpy(l.link, name);
    strcpy(l.channel, channel);
    return l;
}

/* The message that this chain's value went out as; 0: none that is known. */
static uint32_t messageOf(uint64_t begin)
{
    ebpfMonLinkMessage list[2];
    ebpfMonChainId chain = { IOC, 1, begin };

    return ebpfMonLinkMessagesFind(&chain, list, 2) == 1 && list[0].seen && list[0].isMessage ? list[0].seq : 0;
}

static void writes(uint32_t pid, const char *link, const char *channel, uint64_t at)
{
    ebpfMonLinkWrite l = linkOf(pid, link, channel, at);

    ebpfMonLinkMessagesAdd(&l);
}

static void messages(void)
{
    struct ebpfMonPeer peer = { .addr = 1 };

    ebpfMonLinkMessagesNotePacket(60, "pv", &peer, 1, 901 * MS);
    ebpfMonLinkMessagesNotePacket(60, "", &peer, 2, 911 * MS);
    writes(60, "a.OUT", "pv", 900 * MS);
    ebpfMonLinkMessagesMatch(905 * MS);
    writes(60, "a.OUT", "pv", 910 * MS);
    ebpfMonLinkMessagesMatch(911 * MS);
    testOk(messageOf(900 * MS) == 1 && !messageOf(910 * MS), "packets are looked up when the inside has come as far");
    writes(60, "a.OUT", "pv", 912 * MS);
    ebpfMonLinkMessagesMatch(920 * MS);
    testOk(messageOf(910 * MS) == 2 && !messageOf(912 * MS),
           "a message is of the chain that wrote before it, not of a later one; by a name that is not known too");
    writes(60, "a.OUT", "pv", 930 * MS);
    ebpfMonLinkMessagesNotePacket(61, "pv", &peer, 3, 931 * MS);
    ebpfMonLinkMessagesNotePacket(60, "other", &peer, 4, 931 * MS);
    ebpfMonLinkMessagesMatch(932 * MS);
    testOk(!messageOf(912 * MS) && !messageOf(930 * MS), "another process's, or to another PV, is not");
    writes(60, "b.OUT", "other", 940 * MS);
    ebpfMonLinkMessagesNotePacket(60, "", &peer, 5, 941 * MS);
    ebpfMonLinkMessagesMatch(942 * MS);
    testOk(!messageOf(930 * MS) && !messageOf(940 * MS), "of two links it may be either's");
    ebpfMonLinkMessagesNotePacket(60, "pv", &peer, 6, 950 * MS);
    ebpfMonLinkMessagesNotePacket(60, "pv", &peer, 7, 951 * MS);
    ebpfMonLinkMessagesMatch(960 * MS);
    testOk(messageOf(930 * MS) == 6 && !messageOf(912 * MS), "of two values of a link the last one goes out");
    for (uint32_t i = 0; i <= 512; i++)
        ebpfMonLinkMessagesNotePacket(60, "other", &peer, 100 + i, 970 * MS);
    ebpfMonLinkMessagesMatch(980 * MS);
    testOk(messageOf(940 * MS) == 101, "as many messages wait as there is room for");
}

static void sent(void)
{
    struct ebpfMonPeer peer = { .addr = 1 };

    setUp(20);
    exports = 1;
    writes(50, "a.OUT", "pv", 1010 * MS);
    writes(50, "a.OUT", "pv", 1020 * MS);
    give(chainOf(1, 1010 * MS, 0, UINT32_MAX), 1);
    testOk(!heard.count && open == 1, "it waits for its message");
    ebpfMonLinkMessagesNoteArrival(&(ebpfMonChainId){ IOC, 1, 1010 * MS }, "a.OUT", &peer, 5, 1016 * MS, 0);
    ebpfMonTracesTick(1017 * MS, 0);
    testOk(heard.count == 1, "which is seen");
    testOk1(messageOf(1010 * MS) == 5);
    give(chainOf(1, 1020 * MS, 0, UINT32_MAX), 1);
    ebpfMonTracesTick(1021 * MS + SEND_NS + 1, 0);
    testOk(heard.count == 2, "or is not");
}

MAIN(testTraces)
{
    testPlan(57);
    chains();
    handedOver();
    ended();
    putsOf();
    putBy();
    readAnew();
    bounds();
    messages();
    sent();
    setUp(1);
    return testDone();
}

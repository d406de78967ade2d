/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that wait for their result, for the links of their IOC, or for their packet. Times are invented. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/iocPuts.h"
#include "fakeClients.h"
#include "fakeIoc.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define PLACES 4096

static ebpfMonPutClients *clients;
static ebpfMonPutJoin *join;
static ebpfMonLinkWrites *linkWrites;
static ebpfMonPendingPuts *pending;
static uint64_t now = 1000 * SECOND;
static const ebpfMonOldValue noOld;

/* Puts that the sink received. */
static unsigned count;
static uint64_t firstId, lastId;
static ebpfMonPut last;
static ebpfMonMessageKey lastKey;

/* How often each side was woken. */
static int eventWakes, packetWakes;

static void countWake(void *wakes)
{
    ++*(int *)wakes;
}

static void onPut(void *arg, const ebpfMonFinishedPut *finished)
{
    if (!count++)
        firstId = finished->id;
    lastId = finished->id;
    last = *finished->put;
    lastKey = *finished->key;
}

/* A put that does not wait yet. "seq" 0: it has no client. */
static ebpfMonPendingPut *addPut(uint64_t id, uint32_t seq, int seqKind)
{
    ebpfMonPendingPut *p = ebpfMonPendingPutsReserve(pending);

    memset(p, 0, sizeof(*p));
    p->tid = 5;
    p->id = id;
    p->since = now;
    p->iocId = fake.t->iocId;
    p->put.result = ebpfMonPutUnknown;
    snprintf(p->put.pv, sizeof(p->put.pv), "X");
    snprintf(p->put.thread, sizeof(p->put.thread), "T%u", (unsigned)id);
    if (seq) {
        p->key = (ebpfMonMessageKey){.peer = fakePeer(2000, 5075), .at = now, .seq = seq, .seqKind = (uint8_t)seqKind};
        p->put.through = seqKind == EBPFMON_SEQ_MESSAGE ? ebpfMonByCa : ebpfMonByPva;
        snprintf(p->put.peer, sizeof(p->put.peer), "10.0.0.1:2000");
    }
    return p;
}

static void addPacket(unsigned port, uint32_t seq, ebpfMonWireProtocol protocol)
{
    ebpfMonWireEvent ev = {
        .kind = ebpfMonWirePut,
        .protocol = protocol,
        .peer = fakePeer(port, 5075),
        .seq = seq,
        .end = seq + 24,
        .id = 1,
        .user = "anna",
        .host = "office1",
        .name = "X",
        .text = "1",
        .data = (const uint8_t *)"1",
        .have = 1,
        .count = 1,
        .hash = 42,
        .replyAsked = 1,
    };

    ebpfMonPutJoinAddPacket(join, &ev, fake.t->iocId, 0, &noOld, now);
}

static void tickAfter(uint64_t time)
{
    now += time;
    ebpfMonPendingPutsTick(pending, now, 0);
}

static void testResults(void)
{
    ebpfMonPendingPut *p;

    testDiag("Results");
    count = 0;
    ebpfMonPendingPutsAwaitResult(pending, addPut(1, 0, 0));
    ebpfMonPendingPutsAwaitResult(pending, addPut(2, 0, 0));
    testOk(!ebpfMonPendingPutsTake(pending, 6, 1) && !ebpfMonPendingPutsTake(pending, 5, 3),
           "another thread, another put");
    p = ebpfMonPendingPutsTake(pending, 5, 2);
    testOk(p && p->id == 2 && !ebpfMonPendingPutsTake(pending, 5, 2), "the second one's result comes first, and once");
    ebpfMonPendingPutsComplete(pending, p);
    testOk(count == 1 && lastId == 2 && strcmp(last.who, "thread T2") == 0 && strcmp(last.origin, "in the IOC") == 0,
           "a put that is finished at once, with its texts: %s (%s)", last.who, last.origin);
    testOk(ebpfMonPendingPutsGetDue(pending, now) == now + 2000 * MS, "the other one is due in 2 s");
    tickAfter(1999 * MS);
    testOk(count == 1, "the other one waits for 2 s");
    tickAfter(1 * MS);
    testOk(count == 2 && lastId == 1 && last.result == ebpfMonPutUnknown, "… and is published without its result");
    ebpfMonPendingPutsAwaitResult(pending, addPut(3, 0, 0));
    ebpfMonPendingPutsTick(pending, now, 1);
    testOk(count == 3 && lastId == 3, "at the end all are published");
    ebpfMonPendingPutsDiscard(pending, addPut(4, 0, 0));
    ebpfMonPendingPutsTick(pending, now, 1);
    testOk(count == 3, "a put that was discarded is not");
}

/* After the ring was full: of many puts the results do not come, and of some results the put did not come. */
static void testLostResults(void)
{
    unsigned wrong = 0;

    testDiag("Lost results");
    count = 0;
    for (uint64_t id = 10; id < 1000; id += 10)
        ebpfMonPendingPutsAwaitResult(pending, addPut(id, 0, 0));
    for (uint64_t id = 995; id > 500; id -= 10) /* of puts that did not come */
        wrong += ebpfMonPendingPutsTake(pending, 5, id) != NULL;
    for (uint64_t id = 500; id <= 600; id += 20) {
        ebpfMonPendingPut *p = ebpfMonPendingPutsTake(pending, 5, id);

        wrong += !p || p->id != id;
        if (p)
            ebpfMonPendingPutsComplete(pending, p);
    }
    testOk(!wrong && count == 6 && lastId == 600, "each result finds its own put");
    ebpfMonPendingPutsTick(pending, now, 1);
    testOk(count == 99, "all others are published without one: %u", count);
}

static void addLinkPut(uint64_t id, uint32_t tid, const char *value)
{
    ebpfMonPendingPut *p = addPut(id, 0, 0);

    p->tid = tid;
    p->linkAt = (uint64_t)(uintptr_t)&fake.rec[FAKE_AO].out;
    snprintf(p->put.val, sizeof(p->put.val), "%s", value);
    ebpfMonPendingPutsAwaitResult(pending, p);
}

/* The result of a put to a link field is read from the field. */
static void testLinkField(void)
{
    struct layoutPvLink *out = &fake.rec[FAKE_AO].out;

    testDiag("A link field");
    *out = (struct layoutPvLink){ .type = EBPFMON_LINK_DB, .pvname = (uint64_t)(uintptr_t)fake.rec[FAKE_SEL].name };
    for (int wrong = 0; wrong < 2; wrong++) {
        count = 0;
        addLinkPut(10, 5, wrong ? "A:XYZ NPP NMS" : "A:SEL NPP NMS");
        tickAfter(9 * MS);
        testOk1(count == 0);
        tickAfter(1 * MS);
        testOk1(count == !wrong);
        tickAfter(1990 * MS);
        testOk(count == 1 && last.result == (wrong ? ebpfMonPutFailed : ebpfMonPutOk), "%s",
               wrong ? "refused: the link is still another one" : "written: the link is this one");
    }
    count = 0;
    addLinkPut(11, 5, "A:SEL");
    out->pvname = (uint64_t)(uintptr_t)"OTHER";
    tickAfter(100 * MS);
    testOk1(count == 0);
    out->pvname = (uint64_t)(uintptr_t)fake.rec[FAKE_SEL].name;
    tickAfter(200 * MS);
    testOk(count == 1 && last.result == ebpfMonPutOk, "the put had waited for the lock set of its record");
}

/* Another put to the same field, made by thread "tid" when the field had this text. */
static void noteLink(uint32_t tid, const char *text)
{
    const struct ebpfMonPutEvent ev = {
        .head = { .iocId = fake.t->iocId, .tid = tid }, .pfield = (uint64_t)(uintptr_t)&fake.rec[FAKE_AO].out,
    };

    ebpfMonPendingPutsNoteLink(pending, &ev, text);
}

/* The next put to a link field tells what came of the one before. */
static void testLinkPassed(void)
{
    testDiag("A link field that is put again at once");
    fake.rec[FAKE_AO].out.pvname = (uint64_t)(uintptr_t)"LAST";
    count = 0;
    addLinkPut(12, 5, "  FIRST PP");
    noteLink(5, "FIRST PP NMS");
    testOk(count == 1 && last.result == ebpfMonPutOk, "the first put had been made");
    addLinkPut(13, 5, "FIRST");
    noteLink(5, "BEFORE PP NMS");
    testOk(count == 2 && last.result == ebpfMonPutFailed && last.status, "it had been refused: its thread goes on");
    addLinkPut(14, 5, "{calc:1}");
    noteLink(5, NULL);
    testOk(count == 3 && last.result == ebpfMonPutUnknown, "the field does not have its text");
    addLinkPut(15, 5, "FIRST");
    noteLink(6, "BEFORE PP NMS");
    testOk(count == 3, "another thread: it may not be made yet");
    noteLink(6, "FIRST PP NMS");
    testOk(count == 4 && last.result == ebpfMonPutOk, "now it was made");
    addLinkPut(16, 5, "FIRST");
    noteLink(6, "BEFORE PP NMS");
    tickAfter(2000 * MS);
    testOk(count == 5 && last.result == ebpfMonPutUnknown, "two threads, and the field has the text of the other one");
}

/* Puts in an IOC that is starting. */
static void testLateLinks(void)
{
    ebpfMonPendingPut *p;

    testDiag("Puts to links that are read later");
    fake.t->indexed = fake.t->running = 0;
    count = 0;
    p = addPut(20, 0, 0);
    p->lateAddr = fakeLinkAddr();
    p->put.through = ebpfMonByInit;
    ebpfMonPendingPutsComplete(pending, p);
    tickAfter(59 * SECOND);
    testOk(count == 0, "the put waits while the IOC starts");
    fake.t->indexed = fake.t->running = 1;
    tickAfter(1 * MS);
    testOk(count == 1 && last.through == ebpfMonByLink && strcmp(last.origin, "link A:SEQ.OUT, start-up") == 0, "%s",
           last.origin);
    fake.t->indexed = 0;
    p = addPut(21, 0, 0);
    p->lateAddr = fakeLinkAddr();
    p->put.through = ebpfMonByThread;
    ebpfMonPendingPutsComplete(pending, p);
    tickAfter(999 * MS);
    testOk(count == 1, "the links of a running IOC are read within a second");
    tickAfter(1 * MS);
    testOk(count == 2 && last.through == ebpfMonByThread, "… or never");
    p = addPut(22, 0, 0);
    p->lateAddr = fakeLinkAddr();
    ebpfMonPendingPutsComplete(pending, p);
    fake.t->gone = 1;
    tickAfter(1 * MS);
    testOk(count == 3, "the IOC has ended: nothing is waited for");
    fake.t->gone = 0;
    fake.t->indexed = 1;
}

/* The IOC has reported the result of the put. */
static ebpfMonPendingPut *addMadePut(uint64_t id, uint32_t seq)
{
    ebpfMonPendingPut *p = addPut(id, seq, EBPFMON_SEQ_MESSAGE);

    p->put.result = ebpfMonPutOk;
    return p;
}

static void addReply(unsigned port)
{
    ebpfMonWireEvent ev = {
        .kind = ebpfMonWireReply, .protocol = ebpfMonWireCa, .peer = fakePeer(port, 5075), .id = 1, .ok = 1};
    ebpfMonOldValue old;

    ebpfMonPutJoinAddReply(join, &ev, &old, now);
}

static void testPackets(void)
{
    uint32_t netns = 0;

    testDiag("Packets");
    count = 0;
    ebpfMonPendingPutsComplete(pending, addPut(30, 100, EBPFMON_SEQ_MESSAGE));
    testOk(count == 1, "packets are not read: finished at once");
    ebpfMonPutJoinSetCovered(join, &netns, 1, 1);
    ebpfMonPutJoinSetPacketsRead(join, now);
    ebpfMonPendingPutsComplete(pending, addMadePut(31, 200));
    ebpfMonPendingPutsComplete(pending, addPut(32, 0, 0));
    testOk(count == 1, "the put waits for its packet, and so does the put behind it");
    addPacket(2000, 200, ebpfMonWireCa);
    tickAfter(1 * MS);
    testOk(count == 3 && lastId == 32, "the packet has come: both are published, in order");

    ebpfMonPutJoinSetPacketsRead(join, now - 1);
    ebpfMonPendingPutsComplete(pending, addPut(33, 300, EBPFMON_SEQ_MESSAGE));
    packetWakes = 0;
    tickAfter(1 * MS);
    tickAfter(1 * MS);
    testOk(count == 3 && packetWakes == 1, "packets from before it are not all read: the packet thread is woken, once");
    testOk(ebpfMonPendingPutsGetDue(pending, now) == now + 498 * MS, "the put is due half a second after it was made");
    ebpfMonPutJoinSetPacketsRead(join, now - 2 * MS - 1);
    testOk(eventWakes == 0, "packets from before the put were read");
    ebpfMonPutJoinSetPacketsRead(join, now - 2 * MS);
    testOk(eventWakes == 1, "… all of them: the event thread is woken");
    tickAfter(0);
    testOk(count == 4 && last.seen == 0, "the put has no packet");
    tickAfter(1 * MS);
    ebpfMonPendingPutsComplete(pending, addPut(34, 400, EBPFMON_SEQ_MESSAGE));
    tickAfter(499 * MS);
    testOk(count == 4, "the packet thread is late");
    tickAfter(1 * MS);
    testOk(count == 5, "half a second is too late");
    testOk(ebpfMonPendingPutsGetDue(pending, now) == UINT64_MAX, "no put waits");

    testDiag("Puts whose result the IOC did not show");
    count = 0;
    ebpfMonPutJoinSetPacketsRead(join, now);
    addPacket(2000, 500, ebpfMonWireCa);
    ebpfMonPendingPutsComplete(pending, addPut(35, 500, EBPFMON_SEQ_MESSAGE));
    tickAfter(100 * MS);
    testOk(count == 0, "its packet is there, the reply is not");
    addReply(2000);
    tickAfter(1 * MS);
    testOk(count == 1 && last.seen & EBPFMON_SEEN_WIRE && last.result == ebpfMonPutOk, "the reply has come");
    addPacket(2000, 600, ebpfMonWireCa);
    ebpfMonPendingPutsComplete(pending, addPut(36, 600, EBPFMON_SEQ_MESSAGE));
    tickAfter(499 * MS);
    testOk1(count == 1);
    tickAfter(1 * MS);
    testOk(count == 2 && last.seen & EBPFMON_SEEN_WIRE && last.result == ebpfMonPutUnknown,
           "half a second is too late");
}

/* One thread serves several PVA clients. */
static void testSharedThread(void)
{
    testDiag("A thread that serves several clients");
    count = 0;
    ebpfMonPendingPutsComplete(pending, addPut(40, 1000, EBPFMON_SEQ_SHARED));
    tickAfter(500 * MS);
    testOk(count == 1 && last.isUnsure && strncmp(last.who, "perhaps ", 8) == 0,
           "it is not known for which client: %s", last.who);
    addPacket(FAKE_LOCAL_PORT, 5000, ebpfMonWirePva);
    ebpfMonPutJoinSetPacketsRead(join, UINT64_MAX); /* else there may be another one */
    ebpfMonPendingPutsComplete(pending, addPut(41, 2000, EBPFMON_SEQ_SHARED));
    tickAfter(500 * MS);
    testOk(count == 2 && lastKey.moved && strcmp(last.peer, "10.0.0.1:1000") == 0 && strcmp(last.user, "anna") == 0 &&
               strcmp(last.realUser, "phil") == 0 && last.peerPid == (uint32_t)getpid() &&
               strcmp(last.server, "10.0.0.2:5075") == 0 && !last.isUnsure,
           "its packet shows the client: %s (%s)", last.who, last.origin);
    addPacket(1001, 7000, ebpfMonWirePva);
    addPacket(1002, 8000, ebpfMonWirePva);
    ebpfMonPendingPutsComplete(pending, addPut(42, 7100, EBPFMON_SEQ_SHARED));
    tickAfter(500 * MS);
    testOk(count == 3 && last.isUnsure, "two clients sent it: %s", last.who);
}

static void writes(uint64_t at)
{
    ebpfMonLinkWrite w = { .pid = 77, .at = at, .channel = "X", .link = "A.OUT", .ioc = "iocA",
                           .chain = { .iocId = 3, .tid = 4, .begin = at } };

    ebpfMonLinkWritesAdd(linkWrites, &w);
}

/* Puts of a process in which a link writes: their packets tell what each carries. The IOC makes them late. */
static void testLinkWriter(void)
{
    uint32_t netns = 0;
    ebpfMonPendingPut *p[3];

    testDiag("Writes of a link");
    ebpfMonPutJoinSetCovered(join, &netns, 1, 1);
    for (uint32_t i = 0; i < 3; i++) {
        if (i < 2)
            writes(now);
        now += 1 * MS;
        addPacket(2000, 1000 + 100 * i, ebpfMonWireCa);
        now += 99 * MS;
    }
    ebpfMonPutJoinSetPacketsRead(join, now);
    for (uint32_t i = 0; i < 3; i++) {
        p[i] = addMadePut(70 + i, 1000 + 100 * i);
        p[i]->put.peerPid = 77;
        ebpfMonLinkWritesSetWriter(linkWrites, 77, "X", now, &p[i]->put);
    }
    for (uint32_t i = 0; i < 2; i++) {
        ebpfMonPendingPutsComplete(pending, p[i]);
        testOk(last.linkChain.begin == now - (300 - 100 * i) * MS && strcmp(last.link, "A.OUT") == 0,
               "put %u has the chain that wrote it", i);
    }
    ebpfMonPendingPutsComplete(pending, p[2]);
    testOk(lastId == 72 && last.through == ebpfMonByCa && !last.linkChain.iocId && !last.link[0] && !last.linkIoc[0],
           "what no write is left for was sent by something else in that process: %s", last.origin);
}

/* A link writes in the chain of a put that is not finished, and that link's put begins a chain in another IOC. */
static ebpfMonPendingPut *addInChain(uint64_t id, uint64_t source, uint64_t chain)
{
    ebpfMonPendingPut *p = addPut(id, 0, 0);
    ebpfMonChainId from = { .iocId = 3, .tid = 5, .begin = source };

    p->put.through = source == 700 ? ebpfMonByCaLink : ebpfMonByLink;
    if (source == 700)
        p->put.linkChain = from;
    else if (source)
        p->put.source = from;
    if (chain)
        p->put.chain = (ebpfMonChainId){ .iocId = 3, .tid = 5, .begin = chain };
    return p;
}

static void testCaused(void)
{
    ebpfMonPendingPut *p;

    testDiag("Puts that a put caused");
    count = 0;
    ebpfMonPendingPutsAwaitResult(pending, addInChain(80, 0, 700));
    ebpfMonPendingPutsComplete(pending, addInChain(82, 701, 0));
    ebpfMonPendingPutsComplete(pending, addInChain(83, 700, 702));
    ebpfMonPendingPutsComplete(pending, addInChain(84, 702, 0));
    testOk(count == 1 && lastId == 82, "those of another chain do not wait");
    p = ebpfMonPendingPutsTake(pending, 5, 80);
    count = 0;
    ebpfMonPendingPutsComplete(pending, p);
    testOk(count == 3 && firstId == 80 && lastId == 84, "they come after what caused them: %u, the last one %u", count,
           (unsigned)lastId);
    count = 0;
    ebpfMonPendingPutsAwaitResult(pending, addInChain(85, 0, 703));
    ebpfMonPendingPutsComplete(pending, addInChain(86, 703, 0));
    testOk(ebpfMonPendingPutsGetDue(pending, now) == now + SECOND, "due in 1 s");
    tickAfter(1 * SECOND);
    testOk(count == 1 && lastId == 86, "if that takes long, they come before");
    ebpfMonPendingPutsTick(pending, now, 1);
    testOk1(count == 2);
}

static void testNoRoom(void)
{
    testDiag("More puts than there are places for");
    count = 0;
    for (unsigned i = 0; i < PLACES; i++) {
        now += 1;
        ebpfMonPendingPutsAwaitResult(pending, addPut(100 + i, 0, 0));
    }
    testOk1(count == 0);
    ebpfMonPendingPutsDiscard(pending, addPut(9999, 0, 0));
    testOk(count == 1 && lastId == 100, "the one that waits longest is published");
    ebpfMonPendingPutsTick(pending, now, 1);
    testOk(count == PLACES, "%u published of %u", count, PLACES);
}

MAIN(testPendingPuts)
{
    testPlan(58);
    fakeMake();
    clients = fakeClientsMake(NULL);
    join = ebpfMonPutJoinNew(NULL);
    ebpfMonPutJoinSetWakes(join, &(ebpfMonPutJoinWakes){ countWake, &eventWakes, &packetWakes });
    linkWrites = ebpfMonLinkWritesNew();
    pending = ebpfMonPendingPutsNew(fake.targets, join, clients, linkWrites, NULL, onPut, NULL);
    testResults();
    testLostResults();
    testLinkField();
    testLinkPassed();
    testLateLinks();
    testPackets();
    testSharedThread();
    testLinkWriter();
    testCaused();
    testNoRoom();
    ebpfMonPendingPutsFree(pending);
    ebpfMonLinkWritesFree(linkWrites);
    ebpfMonPutJoinFree(join);
    fakeClientsFree(clients);
    return testDone();
}

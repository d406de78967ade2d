/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that only packets show: when packets prove that a put was sent, when it is too early to decide, and which of
 * several puts they belong to. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "joinTest.h"

/* Neither a stopped IOC nor a stopped monitor may lead to a wrong decision. */
static void testStandstill(void)
{
    struct ebpfMonPeer a = makeCircuit(90), b = makeCircuit(91);
    uint64_t id;

    testDiag("The IOC stands still for 5 s");
    id = addMessage(a, 100, 124, "X", ebpfMonWireCa, 1, IOC);
    testOk1(countUnmatchedAfter(5 * SECOND) == 0);
    addReply(a, id, 1);
    testOk(countUnmatched() == 0, "the reply is seen before the put");
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound && countUnmatchedAfter(10 * SECOND) == 0);
    addWrite(a, 200, "X");
    testOk1(countUnmatchedAfter(70 * SECOND) == 0);
    testOk(match(a, 224, "X", 1) == ebpfMonPutJoinWait && countUnmatched() == 0,
           "the IOC has executed a later message");
    testOk1(match(a, 200, "X", 0) == ebpfMonPutJoinFound && countUnmatchedAfter(10 * SECOND) == 0);

    testDiag("The monitor reads packets, but no events");
    eventsStop = now;
    id = addMessage(b, 100, 124, "X", ebpfMonWireCa, 1, IOC);
    addReply(b, id, 0);
    addWrite(b, 124, "X");
    testOk1(match(b, 148, "X", 1) == ebpfMonPutJoinWait);
    testOk1(countUnmatchedAfter(10 * SECOND) == 0);
    testOk1(match(b, 124, "X", 0) == ebpfMonPutJoinFound && match(b, 100, "X", 0) == ebpfMonPutJoinFound);
    eventsStop = 0;
    testOk1(countUnmatchedAfter(10 * SECOND) == 0);
}

/* Bytes were lost: bytes that look like a message may be none. */
static void testGap(void)
{
    struct ebpfMonPeer a = makeCircuit(92);
    uint64_t id;

    testDiag("Puts after lost packets");
    stretch = 1;
    addWrite(a, 100, "X");
    testOk1(match(a, 200, "Y", 1) == ebpfMonPutJoinWait && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 0, "not seen in the IOC: nothing shows that it was made");
    testOk(match(a, 100, "X", 1) == ebpfMonPutJoinWait, "… and it was not published: if the IOC makes it, that one is");
    addWrite(a, 300, "X");
    addWrite(a, 324, "X");
    testOk1(match(a, 324, "X", 0) == ebpfMonPutJoinFound && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 0, "a later put was seen: this shows nothing about puts before it");
    addWrite(a, 348, "X");
    addWrite(a, 372, "X");
    testOk1(match(a, 372, "X", 0) == ebpfMonPutJoinFound && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 1 && lastPassed, "an earlier put was seen: so these bytes are messages");
    match(a, 400, "X", 1);
    addWrite(a, 400, "X");
    stretch = 2;
    addWrite(a, 500, "X");
    testOk1(match(a, 524, "Y", 1) == ebpfMonPutJoinWait && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 0, "the next lost packets");
    match(a, 548, "X", 1);
    addWrite(a, 548, "X");
    addWrite(a, 572, "X");
    testOk1(match(a, 600, "Y", 1) == ebpfMonPutJoinWait && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 1, "a packet that came late shows the same");
    stretch = 3;
    id = addWrite(a, 700, "X");
    addReply(a, id, 0);
    testOk1(countUnmatched() == 0);
    testOk(countUnmatchedAfter(SECOND) == 1, "a refused put shows it, too");
    stretch = 0;
}

/* A packet with the numbers of a circuit, which its client did not send: the circuit has no such channel. */
static void testNameless(uint32_t behind)
{
    struct ebpfMonPeer a = makeCircuit(93);
    unsigned before = doubtful;
    uint64_t id;

    testDiag(behind ? "Behind a gap" : "The circuit was followed from its begin");
    stretch = behind;
    addWrite(a, 100, "X");
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound);
    addWrite(a, 124, "");
    addWrite(a, 148, "X");
    testOk1(match(a, 172, "Y", 1) == ebpfMonPutJoinWait && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 1, "a put to an unknown channel that the IOC did not make is not shown");
    testOk(doubtful == before + 1, "but counted");
    addWrite(a, 196, "");
    testOk(match(a, 196, "X", 0) == ebpfMonPutJoinFound, "… if it did, it is");
    id = addMessage(a, 220, 244, "", ebpfMonWireCa, 1, IOC);
    addReply(a, id, 1);
    testOk1(match(a, 268, "Y", 1) == ebpfMonPutJoinWait && countUnmatched() == 0);
    testOk(countUnmatchedAfter(10 * SECOND) == 0, "nor if it has the number of a put that was answered");
    id = addMessage(a, 292, 316, "", ebpfMonWireCa, 1, IOC);
    ebpfMonPutJoinCloseCircuit(join, &a, now);
    testOk(countUnmatchedAfter(20 * SECOND) == 0, "nor if the circuit ends");
    id = addMessage(a, 316, 340, "", ebpfMonWireCa, 1, IOC);
    addReply(a, id, 0);
    testOk(countUnmatched() == 0 && countUnmatchedAfter(SECOND) == 1, "a refused one is");
    testOk1(doubtful == before + 3);
    stretch = 0;
}

/* QSRV 1: some PVA puts make no put in the IOC. */
static void testNoPutMade(void)
{
    struct ebpfMonPeer a = makeCircuit(93);
    uint64_t id;

    testDiag("PVA: one put is refused, or sets a display field only");
    sent = 1;
    id = addMessage(a, 1000, 1050, "X", ebpfMonWirePva, 1, IOC);
    sent = 2;
    addMessage(a, 1300, 1350, "X", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(a, 1350, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound && lastSeq == 1300);
    addReply(a, id, 0);
    testOk1(countUnmatched() == 0 && countUnmatchedAfter(SECOND) == 1);

    testDiag("… in one receive with other puts");
    sent = 3;
    addMessage(a, 1400, 1450, "X", ebpfMonWirePva, 1, IOC);
    sent = 4;
    addMessage(a, 1450, 1500, "X", ebpfMonWirePva, 1, IOC);
    sent = 5;
    addMessage(a, 1500, 1550, "X", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(a, 1550, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound && lastSeq == 1500);
    sent = 4;
    testOk1(matchKind(a, 1550, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound && lastSeq == 1450);
    testOk(countUnmatched() == 0 && countUnmatchedAfter(3 * SECOND) == 1, "the put whose value does not agree is left");

    testDiag("… with packets that came late");
    sent = 7;
    matchKind(a, 1850, EBPFMON_SEQ_RECEIVED, "X", 1);
    sent = 6;
    id = addMessage(a, 1700, 1750, "X", ebpfMonWirePva, 1, IOC);
    sent = 7;
    addMessage(a, 1800, 1850, "X", ebpfMonWirePva, 1, IOC);
    addReply(a, id, 0);
    sent = 0;
    testOk(countUnmatched() == 0 && countUnmatchedAfter(200 * MS) == 1, "the refused put is left");
}

static ebpfMonTarget *ioc;
static ebpfMonPutJoin *joinOfTargets, *joinOfAll;

/* What follows is about "ioc": each of its puts is seen inside from "since" on. */
static void useStamps(uint64_t since)
{
    stretch = 0;
    sent = 0;
    joinOfAll = join;
    join = joinOfTargets;
    ioc->putsSince = since;
}

static void endStamps(void)
{
    join = joinOfAll;
}

/* An IOC whose probes are attached at some moment: a put from before it is published from its packet, one from after it
 * with the event of the IOC. Between, evidence decides, and a put that the IOC makes late is known to be published. */
static void testAttach(ebpfMonWireProtocol protocol, int reply)
{
    struct ebpfMonPeer a = makeCircuit(100 + 20 * (unsigned)protocol + 10 * (unsigned)reply);
    int kind = protocol == ebpfMonWirePva ? EBPFMON_SEQ_RECEIVED : EBPFMON_SEQ_MESSAGE;
    uint32_t at = 100, to = kind == EBPFMON_SEQ_MESSAGE ? 0 : 24; /* what the IOC tells of a message */
    uint64_t id;

    testDiag("%s, %s", protocol == ebpfMonWirePva ? "PVA" : "CA", reply ? "a reply comes" : "no reply comes");
    useStamps(UINT64_MAX);
    id = addMessage(a, at, at + 24, "X", protocol, reply, ioc->iocId);
    if (reply)
        addReply(a, id, 1);
    eventsStop = now - MS;
    testOk(countUnmatchedAfter(60 * MS) == 0, "events are not read yet");
    eventsStop = 0;
    testOk(matchKind(a, at + to, kind, "X", 0) == ebpfMonPutJoinFound, "seen inside: published there");
    testOk1(countUnmatchedAfter(20 * SECOND) == 0);

    at += 500;
    id = addMessage(a, at, at + 24, "X", protocol, reply, ioc->iocId);
    if (reply)
        addReply(a, id, 1);
    testOk(countUnmatchedAfter(60 * MS) == 1, "not seen inside: made before the probes were there");
    ioc->putsSince = now;
    testOk(matchKind(a, at + to, kind, "X", 0) == ebpfMonPutJoinPublished,
           "an IOC that stood still makes it now: known");
    testOk1(countUnmatchedAfter(20 * SECOND) == 0);

    at += 500;
    addMessage(a, at, at + 24, "X", protocol, reply, ioc->iocId);
    testOk(countUnmatchedAfter(20 * SECOND) == 0, "behind the moment: not without evidence");
    testOk1(matchKind(a, at + to, kind, "X", 0) == ebpfMonPutJoinFound);

    at += 500;
    addMessage(a, at, at + 24, "X", protocol, reply, ioc->iocId);
    ioc->putsSince = UINT64_MAX;
    testOk(countUnmatchedAfter(reply ? 10 * SECOND : 60 * MS) == 1, "its probes go, and it is not seen inside");
    testOk(matchKind(a, at + to, kind, "X", 0) == ebpfMonPutJoinPublished, "they saw it at the last moment");
    testOk1(countUnmatchedAfter(20 * SECOND) == 0);
    endStamps();
}

static void testFoundLate(void)
{
    struct ebpfMonPeer a = makeCircuit(180);

    testDiag("A server that is found to be an IOC");
    useStamps(UINT64_MAX);
    server = ioc->pid;
    addMessage(a, 100, 124, "X", ebpfMonWireCa, 0, 0);
    eventsStop = now;
    testOk(countUnmatchedAfter(60 * MS) == 0, "events must be read first");
    eventsStop = 0;
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound);
    ioc->gone = 1;
    a = makeCircuit(181);
    addMessage(a, 124, 148, "X", ebpfMonWireCa, 0, 0);
    eventsStop = now;
    ebpfMonPutJoinSetPacketsRead(join, now + SECOND);
    testOk(countUnmatchedAfter(60 * MS) == 1, "no IOC: published in time");
    eventsStop = 0;
    ioc->gone = 0;
    server = 0;
    endStamps();
}

/* In order, although one waits. */
static void testOrder(void)
{
    struct ebpfMonPeer a = makeCircuit(190);
    ebpfMonPacketPut *list;

    testDiag("Order around the moment");
    useStamps(UINT64_MAX);
    addMessage(a, 100, 124, "X", ebpfMonWireCa, 0, ioc->iocId);
    now += 10 * MS;
    ioc->putsSince = now;
    now += 10 * MS;
    addMessage(a, 124, 148, "X", ebpfMonWireCa, 0, ioc->iocId);
    testOk(match(a, 200, "Y", 1) == ebpfMonPutJoinWait && countUnmatched() == 0, "both are passed");
    now += 60 * MS;
    ebpfMonPutJoinSetEventsRead(join, now);
    ebpfMonPutJoinSetPacketsRead(join, now);
    list = ebpfMonPutJoinTakeUnmatched(join, now);
    testOk(list && list->seq == 100 && !list->next && !list->inside, "the first is published from its packet");
    free(list);
    now += 10 * SECOND;
    ebpfMonPutJoinSetEventsRead(join, now);
    ebpfMonPutJoinSetPacketsRead(join, now);
    list = ebpfMonPutJoinTakeUnmatched(join, now);
    testOk(!list, "the second waits until the server has read what came");
    ebpfMonPutJoinSetRead(join, &a, 1, now);
    ebpfMonPutJoinSetPacketsRead(join, now);
    list = ebpfMonPutJoinTakeUnmatched(join, now);
    testOk(list && list->seq == 124 && !list->next && list->inside, "the second is lost: the IOC served a later one");
    free(list);
    endStamps();
}

/* Takes out the one put, which came before the probes. */
static ebpfMonPacketPut *takeOne(struct ebpfMonPeer a, uint32_t seq)
{
    addMessage(a, seq, seq + 24, "X", ebpfMonWireCa, 0, ioc->iocId);
    now += 60 * MS;
    ebpfMonPutJoinSetEventsRead(join, now);
    ebpfMonPutJoinSetPacketsRead(join, now);
    return ebpfMonPutJoinTakeUnmatched(join, now);
}

/* Between taking a put out and deciding whether it is real, the IOC may make its own put of this message. */
static void testTaken(void)
{
    struct ebpfMonPeer a = makeCircuit(195);
    ebpfMonPacketPut *taken;

    testDiag("The IOC makes a put while it is judged");
    useStamps(UINT64_MAX);
    taken = takeOne(a, 100);
    testOk(taken && match(a, 100, "X", 0) == ebpfMonPutJoinFound, "the IOC's own one is published");
    testOk(taken && !ebpfMonPutJoinSettleTaken(join, taken, 1), "… so that of the packet is not");
    free(taken);
    taken = takeOne(a, 200);
    testOk(taken && ebpfMonPutJoinSettleTaken(join, taken, 1) && match(a, 200, "X", 0) == ebpfMonPutJoinPublished,
           "decided before: that of the packet is");
    free(taken);
    taken = takeOne(a, 300);
    testOk(taken && !ebpfMonPutJoinSettleTaken(join, taken, 0) && match(a, 300, "X", 1) == ebpfMonPutJoinWait,
           "it was forged: the IOC's own one is published alone");
    free(taken);
    endStamps();
}

/* What is kept of published puts is bounded. */
static void testToldBounds(void)
{
    struct ebpfMonPeer a = makeCircuit(200);
    unsigned n;

    testDiag("Many puts while probes are attached");
    useStamps(UINT64_MAX);
    for (uint32_t i = 0; i < 10000; i++)
        addMessage(a, 1000 + 24 * i, 1024 + 24 * i, "X", ebpfMonWireCa, 0, ioc->iocId);
    n = countUnmatchedAfter(SECOND);
    testOk(n == 10000 && !ebpfMonPutJoinCountDropped(join), "all are published: %u", n);
    testOk1(match(a, 1000, "X", 0) == ebpfMonPutJoinPublished);
    testOk(ebpfMonPutJoinGetDue(join) < now + 20 * SECOND, "they are forgotten in time");
    testOk1(countUnmatchedAfter(20 * SECOND) == 0 && ebpfMonPutJoinGetDue(join) == UINT64_MAX);
    testOk1(match(a, 1024, "X", 0) == ebpfMonPutJoinWait);
    endStamps();
}

static void testStamps(void)
{
    ebpfMonTargets *targets = ebpfMonTargetsNew();
    uint32_t all = 0;

    ioc = calloc(1, sizeof(*ioc));
    ioc->pid = 4711;
    ebpfMonTargetsAdd(targets, ioc);
    joinOfTargets = ebpfMonPutJoinNew(targets);
    ebpfMonPutJoinSetCovered(joinOfTargets, &all, 1, 1);
    testAttach(ebpfMonWireCa, 0);
    testAttach(ebpfMonWireCa, 1);
    testAttach(ebpfMonWirePva, 1);
    testFoundLate();
    testOrder();
    testTaken();
    testToldBounds();
    ebpfMonPutJoinFree(joinOfTargets);
    ebpfMonTargetsRemove(targets, ioc);
    free(ioc);
    ebpfMonTargetsFree(targets);
}

/* The IOC is stopped by a debugger, and the client goes away. Much later the IOC goes on. */
static void testStopped(void)
{
    struct ebpfMonPeer a = makeCircuit(9);

    testDiag("A put that an IOC makes long after its circuit was closed");
    addWrite(a, 100, "X");
    ebpfMonPutJoinCloseCircuit(join, &a, now);
    testOk(countUnmatchedAfter(11 * SECOND) == 1, "it is published from its packet");
    testOk(countUnmatchedAfter(HOUR / 2) == 0 && match(a, 100, "X", 0) == ebpfMonPutJoinPublished,
           "when it is made it is not published again");
    testOk(match(a, 100, "X", 0) == ebpfMonPutJoinWait, "only once");
    addWrite(a, 200, "X");
    ebpfMonPutJoinCloseCircuit(join, &a, now);
    testOk1(countUnmatchedAfter(11 * SECOND) == 1 && countUnmatchedAfter(2 * HOUR) == 0);
    testOk(match(a, 200, "X", 0) == ebpfMonPutJoinWait, "after an hour nobody waits for it any more");
}

MAIN(testJoinEvidence)
{
    uint32_t all = 0;

    testPlan(103);
    join = ebpfMonPutJoinNew(NULL);
    ebpfMonPutJoinSetCovered(join, &all, 1, 1);
    testStandstill();
    testGap();
    testNameless(1);
    testNameless(0);
    testNoPutMade();
    testStopped();
    testStamps();
    ebpfMonPutJoinFree(join);
    return testDone();
}

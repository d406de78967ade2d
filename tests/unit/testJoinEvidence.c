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
    testOk(match(a, 224, "X", 1) == ebpfMonPutJoinWait && countUnmatched() == 0, "the IOC has executed a later message");
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

/* The packet was read before the server was a watched IOC. */
static void testAttachedMeanwhile(void)
{
    struct ebpfMonPeer a = makeCircuit(94);
    uint64_t id;

    testDiag("Probes are attached while a put is under way");
    id = addMessage(a, 100, 124, "X", ebpfMonWireCa, 1, 0);
    addReplyOf(a, id, 1, IOC);
    testOk(countUnmatched() == 0, "the reply shows that events must be read first");
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound && countUnmatchedAfter(10 * SECOND) == 0);
    a = makeCircuit(95);
    id = addMessage(a, 100, 124, "X", ebpfMonWireCa, 1, 0);
    addReplyOf(a, id, 1, IOC);
    testOk(countUnmatched() == 0 && countUnmatchedAfter(3 * SECOND) == 1, "it was made before them");
    a = makeCircuit(96);
    id = addMessage(a, 100, 124, "X", ebpfMonWireCa, 1, 0);
    addReplyOf(a, id, 1, 0);
    testOk(countUnmatched() == 1, "a server that is no watched IOC: published at once");
}

MAIN(testJoinEvidence)
{
    uint32_t all = 0;

    testPlan(32);
    join = ebpfMonPutJoinNew();
    ebpfMonPutJoinSetCovered(join, &all, 1, 1);
    testStandstill();
    testGap();
    testNoPutMade();
    testAttachedMeanwhile();
    ebpfMonPutJoinFree(join);
    return testDone();
}

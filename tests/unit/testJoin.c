/* SPDX-License-Identifier: BSD-3-Clause */
/* A put that is seen in the IOC and in packets is one put, in any order of the two events. Times are invented. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "joinTest.h"

static void testOrders(void)
{
    struct ebpfMonPeer a = makeCircuit(1);

    testDiag("One put, seen in the IOC and in packets");
    addWrite(a, 100, "X");
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound && last.seen == 3 && last.hash == 42);
    testOk(match(a, 200, "Y", 0) == ebpfMonPutJoinWait, "first seen in the IOC: it waits for its packet");
    addWrite(a, 200, "Y");
    testOk1(match(a, 200, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(match(a, 300, "Z.DESC", 1) == ebpfMonPutJoinWait);
    addWrite(a, 300, "Z.DESC");
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "the packet came too late: the put was published");
    addWrite(a, 400, "X");
    addWrite(a, 500, "X");
    testOk(match(a, 500, "X", 0) == ebpfMonPutJoinFound, "the second of two puts");
    testOk(match(a, 400, "X", 0) == ebpfMonPutJoinFound, "... and the first put after it");
    addWrite(a, 600, "");
    testOk(match(a, 600, "X", 0) == ebpfMonPutJoinFound, "a put to a channel whose name is not known");
    addWrite(a, 700, "X");
    testOk(match(a, 650, "X", 0) == ebpfMonPutJoinAlone,
           "later bytes of the circuit were read: this put has no packet");
    testOk1(match(a, 700, "X", 0) == ebpfMonPutJoinFound);
    addWrite(a, 800, "T{A:1}SP.VAL[0:0]");
    testOk(match(a, 800, "T{A:2}SP", 0) != ebpfMonPutJoinFound && match(a, 800, "T{A:1}SP", 0) == ebpfMonPutJoinFound,
           "braces before the dot are part of the record's name");
    addWrite(a, 900, "X");
    testOk(match(a, 902, "X", 0) == ebpfMonPutJoinFound && lastSeq == 900, "two urgent bytes within the message");
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "no put is left");
}

static void testSequenceWraps(void)
{
    struct ebpfMonPeer a = makeCircuit(2);

    testDiag("Sequence numbers begin anew");
    addWrite(a, 0xfffffff0u, "X");
    addWrite(a, 8, "X");
    testOk1(match(a, 0xfffffff0u, "X", 0) == ebpfMonPutJoinFound && match(a, 8, "X", 0) == ebpfMonPutJoinFound);
    testOk1(match(a, 0xfffffff8u, "X", 1) == ebpfMonPutJoinWait && match(a, 0x10, "X", 1) == ebpfMonPutJoinWait);
    addWrite(a, 0xfffffff8u, "X");
    addWrite(a, 0x10, "X");
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
}

/* The result of a put may come after puts that its record made in the same thread. */
static void testWritesOfChain(void)
{
    struct ebpfMonPeer a = makeCircuit(3);

    testDiag("A chain that a put starts writes by the same message");
    addWrite(a, 100, "X");
    testOk1(match(a, 100, "OTHER", 0) != ebpfMonPutJoinFound && last.hash == 0 && !last.channel[0]);
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound);
    testOk1(match(a, 200, "OTHER", 1) == ebpfMonPutJoinWait);
    addWrite(a, 200, "X");
    testOk(match(a, 200, "X", 0) == ebpfMonPutJoinFound, "the number of the other connection is not used");
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
}

static void testOtherName(void)
{
    struct ebpfMonPeer a = makeCircuit(44);
    uint64_t id;

    testDiag("The packet of a message has a name that the IOC did not get");
    id = addMessage(a, 100, 124, "Xa#", ebpfMonWireCa, 1, IOC);
    addReply(a, id, 1);
    testOk(match(a, 100, "X", 1) == ebpfMonPutJoinWait && countUnmatchedAfter(120 * SECOND) == 0, "it is no other put");
    id = addMessage(a, 200, 224, "Xa#", ebpfMonWireCa, 1, IOC);
    addReply(a, id, 1);
    addWrite(a, 300, "X");
    testOk1(match(a, 200, "X", 0) == ebpfMonPutJoinAlone && match(a, 300, "X", 0) == ebpfMonPutJoinFound);
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
}

static void testForgedAhead(void)
{
    struct ebpfMonPeer a = makeCircuit(45);

    testDiag("Somebody writes a put with a later number into the connection");
    addWrite(a, 50000, "X");
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinAlone);
    addReply(a, addMessage(a, 100, 124, "X", ebpfMonWireCa, 1, IOC), 1);
    testOk(countUnmatchedAfter(5 * SECOND) == 0, "the packet of a put that was published is no second put");
    match(a, 200, "X", 1);
    addWrite(a, 60000, "X");
    addReply(a, addMessage(a, 200, 224, "X", ebpfMonWireCa, 1, IOC), 1);
    testOk(countUnmatchedAfter(5 * SECOND) == 0, "… nor if the forged one comes between");
    testOk1(match(a, 50000, "X", 0) == ebpfMonPutJoinFound && match(a, 60000, "X", 0) == ebpfMonPutJoinFound);
}

static void testPva(void)
{
    struct ebpfMonPeer a = makeCircuit(4);
    uint64_t id;

    testDiag("pvAccess: the IOC knows where the received bytes ended");
    addMessage(a, 100, 150, "X", ebpfMonWirePva, 1, IOC);
    addMessage(a, 150, 200, "Y", ebpfMonWirePva, 1, IOC);
    addMessage(a, 200, 250, "X", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(a, 250, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound);
    testOk1(matchKind(a, 250, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(matchKind(a, 250, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound && strcmp(last.user, "packet") == 0);
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "three puts in one receive");

    matchKind(a, 450, EBPFMON_SEQ_RECEIVED, "X", 1);
    matchKind(a, 450, EBPFMON_SEQ_RECEIVED, "Y", 1);
    addMessage(a, 400, 425, "X", ebpfMonWirePva, 1, IOC);
    addMessage(a, 425, 450, "Y", ebpfMonWirePva, 1, IOC);
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "… with packets that came late");

    addMessage(a, 500, 550, "GROUP", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(a, 550, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound);
    testOk1(matchKind(a, 550, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    testOk(matchKind(a, 600, EBPFMON_SEQ_RECEIVED, "Z", 0) == ebpfMonPutJoinWait,
           "the next put does not belong to the group");
    addMessage(a, 550, 600, "Z", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(a, 600, EBPFMON_SEQ_RECEIVED, "Z", 0) == ebpfMonPutJoinFound);
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "each put of a group is published");

    matchKind(a, 750, EBPFMON_SEQ_RECEIVED, "X", 1);
    matchKind(a, 750, EBPFMON_SEQ_RECEIVED, "Y", 1);
    addMessage(a, 700, 750, "GROUP", ebpfMonWirePva, 1, IOC);
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "a group whose packet came late");

    id = addMessage(a, 800, 850, "X", ebpfMonWirePva, 1, IOC);
    addReply(a, id, 0);
    testOk(countUnmatchedAfter(200 * MS) == 1, "a refused put is not seen in the IOC");

    addMessage(a, 900, 950, "X", ebpfMonWirePva, 1, IOC);
    addMessage(a, 950, 1000, "Y", ebpfMonWirePva, 1, IOC);
    matchKind(a, 1000, EBPFMON_SEQ_RECEIVED, "X", 0);
    testOk(countUnmatchedAfter(30 * SECOND) == 0, "a put that was received may be executed later");
    testOk1(matchKind(a, 1000, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
    addMessage(a, 1100, 1200, "Y", ebpfMonWirePva, 1, IOC);
    matchKind(a, 1150, EBPFMON_SEQ_RECEIVED, "X", 1);
    testOk(countUnmatchedAfter(30 * SECOND) == 0, "… and so may a put of which a part was received");
    testOk1(matchKind(a, 1200, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
}

/* The thread received while the IOC was known, and began to serve the message before the probe of CA messages was
 * there. So the kernel part takes it for a PVA put. */
static void testAttached(void)
{
    struct ebpfMonPeer a = makeCircuit(40);

    testDiag("A CA message that was being served when the probes came");
    sent = 310;
    addWrite(a, 100, "X");
    sent = 311;
    addWrite(a, 124, "X");
    testOk(matchKind(a, 148, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound && lastSeq == 124,
           "the value tells which message it is");
    testOk(last.through == ebpfMonByCa && strcmp(last.user, "packet") == 0,
           "it is a put by CA, by the user that the packet names");
    sent = 310;
    testOk1(matchKind(a, 148, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound);
    sent = 0;
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
}

/* pvxs: one thread reads from A and from B, then serves A. */
static void testSharedThread(void)
{
    struct ebpfMonPeer a = makeCircuit(5), b = makeCircuit(6);

    ebpfMonPutJoinSetPacketsRead(join, UINT64_MAX);
    testDiag("A thread that serves several circuits");
    addMessage(a, 100, 150, "X", ebpfMonWirePva, 1, IOC);
    addMessage(b, 700, 750, "Y", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(b, 750, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinWait);
    testOk1(matchKind(b, 750, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinFound && last.message[9] == '5');
    testOk1(matchKind(b, 750, EBPFMON_SEQ_SHARED, "Y", 0) == ebpfMonPutJoinFound && !last.message[0]);
    addMessage(a, 200, 250, "X", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(b, 800, EBPFMON_SEQ_RECEIVED, "X", 1) == ebpfMonPutJoinWait);
    testOk(matchKind(a, 250, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound, "other circuits are left alone");
    sent = 1;
    addMessage(a, 300, 350, "X", ebpfMonWirePva, 1, IOC);
    sent = 2;
    addMessage(b, 800, 850, "X", ebpfMonWirePva, 1, IOC);
    sent = 1;
    testOk1(matchKind(b, 850, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinWait);
    testOk(matchKind(b, 850, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinFound &&
               strcmp(last.message, "moved to 5") == 0, "both put to one PV: the value decides");
    sent = 2;
    testOk1(matchKind(b, 850, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinFound && !last.message[0]);
    sent = 0;
    testOk1(matchKind(b, 900, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinWait);
    addMessage(a, 400, 450, "X", ebpfMonWirePva, 1, IOC);
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
    sent = 3;
    testOk1(matchKind(b, 1000, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinWait);
    sent = 4;
    addMessage(b, 1000, 1050, "Y", ebpfMonWirePva, 1, IOC);
    testOk1(matchKind(b, 1050, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    addMessage(a, 500, 550, "X", ebpfMonWirePva, 1, IOC);
    sent = 3;
    addMessage(a, 550, 600, "X", ebpfMonWirePva, 1, IOC);
    sent = 4;
    testOk1(matchKind(a, 550, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound);
    sent = 0;
    testOk(countUnmatchedAfter(2 * HOUR) == 0,
           "published before its packet, which is found by its value, behind packets of another circuit");
}

/* Of connections that are older than the monitor the names of channels are not known. */
static void testSharedThreadOlder(void)
{
    struct ebpfMonPeer a = makeCircuit(42), b = makeCircuit(43);

    testDiag("… and whose clients connected before the monitor looked");
    sent = 1;
    addMessage(a, 100, 150, "", ebpfMonWirePva, 1, IOC);
    sent = 2;
    addMessage(b, 700, 750, "", ebpfMonWirePva, 1, IOC);
    sent = 1;
    testOk(matchKind(b, 750, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinFound && !last.isUnsure &&
               strcmp(last.message, "moved to 42") == 0, "the value tells whose put it is");
    sent = 2;
    testOk1(matchKind(b, 750, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinFound && !last.isUnsure);
    addMessage(a, 150, 200, "", ebpfMonWirePva, 1, IOC);
    addMessage(b, 750, 800, "", ebpfMonWirePva, 1, IOC);
    testOk(matchKind(b, 800, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinFound && last.isUnsure,
           "both put the same value: it may be either");
    testOk1(matchKind(a, 200, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinFound);
    sent = 0;
    addMessage(a, 200, 250, "", ebpfMonWirePva, 1, IOC);
    testOk(matchKind(b, 850, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinWait, "neither name nor value is known");
    testOk1(matchKind(a, 250, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinFound);
    testOk1(countUnmatchedAfter(2 * HOUR) == 0);
}

/* A put-callback to a busy record is made by another thread, when the record is ready. */
static void testWriteNotify(void)
{
    struct ebpfMonPeer a = makeCircuit(7), part = { .addr = a.addr, .port = a.port };
    uint64_t id;

    testDiag("A write-notify that waits for its record");
    id = addMessage(a, 100, 124, "MOTOR", ebpfMonWireCa, 1, IOC);
    for (uint32_t seq = 200; seq < 220; seq++) {
        addWrite(a, seq, "X");
        match(a, seq, "X", 0);
    }
    testOk(countUnmatchedAfter(300 * SECOND) == 0, "later puts were executed: this one is not lost");
    testOk1(matchKind(part, 0, EBPFMON_SEQ_NONE, "MOTOR", 0) == ebpfMonPutJoinFound);
    testOk(strcmp(last.message, "moved to 7") == 0, "its circuit becomes known");
    addReply(a, id, 1);
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
    testOk(matchKind(part, 0, EBPFMON_SEQ_NONE, "MOTOR", 0) == ebpfMonPutJoinWait,
           "the packet is not read yet: it waits");
    id = addMessage(a, 300, 324, "MOTOR", ebpfMonWireCa, 1, IOC);
    addReply(a, id, 1);
    testOk1(matchKind(part, 0, EBPFMON_SEQ_NONE, "MOTOR", 0) == ebpfMonPutJoinFound);
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "it is not published twice");

    testDiag("A plain write that was received before the IOC was watched");
    addWrite(a, 400, "X");
    testOk1(matchKind(a, 0, EBPFMON_SEQ_NONE, "Y", 0) == ebpfMonPutJoinWait);
    testOk1(matchKind(part, 0, EBPFMON_SEQ_NONE, "X", 0) == ebpfMonPutJoinWait);
    testOk1(matchKind(a, 0, EBPFMON_SEQ_NONE, "X", 0) == ebpfMonPutJoinFound);
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "this put is not published twice, either");
}

static void testRefused(void)
{
    struct ebpfMonPeer a = makeCircuit(8);
    uint64_t id;

    testDiag("A refused put, seen on both sides or on one");
    id = addWrite(a, 100, "X");
    addReply(a, id, 0);
    testOk1(match(a, 100, "X", 0) == ebpfMonPutJoinFound && last.result == ebpfMonPutOk);
    id = addWrite(a, 200, "X");
    addReply(a, id, 0);
    testOk1(countUnmatched() == 0);
    testOk1(countUnmatchedAfter(150 * MS) == 1);
    testOk1(countUnmatchedAfter(120 * SECOND) == 0);
}

static void testNeverMade(void)
{
    struct ebpfMonPeer a = makeCircuit(9);

    testDiag("A put that the IOC never made");
    addWrite(a, 100, "X");
    testOk(countUnmatchedAfter(50 * SECOND) == 0, "the IOC may hang");
    addWrite(a, 200, "Y");
    testOk1(match(a, 200, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(countUnmatched() == 0);
    testOk1(countUnmatchedAfter(3 * SECOND) == 1 && lastPassed);
    addWrite(a, 300, "X");
    testOk1(countUnmatchedAfter(61 * SECOND) == 0 && countUnmatchedAfter(HOUR) == 1 && !lastPassed);
    addWrite(a, 400, "X");
    ebpfMonPutJoinCloseCircuit(join, &a, now);
    testOk1(countUnmatchedAfter(5 * SECOND) == 0);
    testOk(match(a, 400, "X", 0) == ebpfMonPutJoinFound, "the circuit is closed, and the IOC still reads its bytes");
    addWrite(a, 500, "X");
    ebpfMonPutJoinCloseCircuit(join, &a, now);
    testOk1(countUnmatchedAfter(11 * SECOND) == 1 && lastClosed && !lastPassed);
    addMessage(a, 600, 624, "X", ebpfMonWireCa, 0, 0);
    testOk(countUnmatchedAfter(60 * MS) == 1, "a put to a server that is not a watched IOC");
}

/* The next client has the same port. Its sequence numbers begin at any value. */
static void testPortUsedAgain(void)
{
    struct ebpfMonPeer a = makeCircuit(10);

    for (int behind = 0; behind < 2; behind++) {
        uint32_t first = 1000000, second = behind ? 500 : 2000000;

        testDiag("A port is used again, numbers %s", behind ? "lower" : "higher");
        for (uint32_t i = 0; i < 10; i++)
            match(a, first + i * 24, "X", 1); /* their packets never came */
        addWrite(a, first + 240, "X");
        match(a, second + 96, "X", 1);
        ebpfMonPutJoinCloseCircuit(join, &a, now);
        now += SECOND;
        addWrite(a, second, "X");
        testOk1(match(a, second, "X", 0) == ebpfMonPutJoinFound);
        match(a, second + 24, "X", 1);
        addWrite(a, second + 24, "X");
        addWrite(a, second + 48, "X");
        testOk1(match(a, second + 48, "X", 0) == ebpfMonPutJoinFound);
        testOk1(match(a, second + 72, "X", 0) == ebpfMonPutJoinWait);
        addWrite(a, second + 96, "X");
        testOk(match(a, second + 96, "X", 0) == ebpfMonPutJoinFound, "a sequence number that the old circuit had, too");
        testOk(countUnmatchedAfter(120 * SECOND) == 1 && lastClosed, "the put of the old circuit is left");
        ebpfMonPutJoinCloseCircuit(join, &a, now);
    }
}

static void testManyPublished(void)
{
    struct ebpfMonPeer a = makeCircuit(11);
    unsigned n = 0;

    testDiag("More puts published without their packet than are remembered");
    for (uint32_t i = 0; i < 6000; i++)
        match(a, i * 24, "X", 1);
    for (uint32_t i = 0; i < 6000; i++)
        addWrite(a, i * 24, "X");
    n = countUnmatchedAfter(120 * SECOND);
    testOk(n == 0, "%u published twice", n);
    addWrite(a, 0x90000000u, "X");
    testOk(match(a, 0x90000000u, "X", 0) == ebpfMonPutJoinFound, "... also 2 GB later");
}

static void testManyCircuits(void)
{
    uint64_t dropped = ebpfMonPutJoinCountDropped(join);

    testDiag("More circuits than are remembered");
    for (unsigned i = 0; i < 9000; i++)
        addWrite(makeCircuit(100 + i), 100, "X");
    testOk1(ebpfMonPutJoinCountDropped(join) - dropped == 9000 - 8192);
    testOk1(countUnmatchedAfter(120 * SECOND) == 0 && countUnmatchedAfter(HOUR) == 8192);
}

/* --- both sides at once -------------------------------------------------------------------------- */

#define PUTS   20000
#define LANES  8

static size_t published[LANES][PUTS];
static epicsEventId packetsDone, iocDone;

static int chance(unsigned *state, int of)
{
    *state = *state * 1103515245u + 12345u;
    return (int)(*state >> 16) % of;
}

static void runPackets(void *arg)
{
    unsigned state = 1;

    for (uint32_t i = 0; i < PUTS; i++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct ebpfMonPeer peer = makeCircuit(20 + lane);

            if (lane & 1)
                addMessage(peer, i * 50, i * 50 + 50, "X", ebpfMonWirePva, 1, IOC);
            else
                addWrite(peer, i * 50, "X");
            if (chance(&state, 50) == 0)
                epicsThreadSleep(0);
        }
    epicsEventMustTrigger(packetsDone);
}

/* Does what iocPuts.c does: tries each put some times, then publishes it with the known facts. */
static void runIoc(void *arg)
{
    unsigned state = 7;

    for (uint32_t i = 0; i < PUTS; i++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            ebpfMonMessageKey key = { .peer = makeCircuit(20 + lane), .seq = lane & 1 ? i * 50 + 50 : i * 50, .at = now,
                                   .seqKind = lane & 1 ? EBPFMON_SEQ_RECEIVED : EBPFMON_SEQ_MESSAGE };
            ebpfMonPut put = makePut("X");
            int tries = chance(&state, 4);

            while (tries-- && ebpfMonPutJoinMatchIoc(join, &key, &put, 0) == ebpfMonPutJoinWait)
                epicsThreadSleep(0);
            if (tries < 0)
                ebpfMonPutJoinMatchIoc(join, &key, &put, 1);
            epicsAtomicIncrSizeT(&published[lane][i]);
        }
    epicsEventMustTrigger(iocDone);
}

static void testBothAtOnce(void)
{
    unsigned wrong = 0, n;
    unsigned stack = epicsThreadGetStackSize(epicsThreadStackBig);

    testDiag("Events and packets at the same time");
    packetsDone = epicsEventMustCreate(epicsEventEmpty);
    iocDone = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("packets", epicsThreadPriorityMedium, stack, runPackets, NULL);
    epicsThreadMustCreate("ioc", epicsThreadPriorityMedium, stack, runIoc, NULL);
    epicsEventMustWait(packetsDone);
    epicsEventMustWait(iocDone);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < PUTS; i++)
            wrong += published[lane][i] != 1;
    n = countUnmatchedAfter(120 * SECOND);
    testOk(wrong == 0 && n == 0, "of %u puts each is published once: %u wrong in the IOC, %u more of packets",
           LANES * PUTS, wrong, n);
}

static double getCpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* If the events of a flood are lost, many puts find no match. Matching another put must not search all of these. */
static void testFlood(int isPva)
{
    enum { MISSED = 50000, MADE = 10000 };
    struct ebpfMonPeer a = makeCircuit(30 + (unsigned)isPva);
    unsigned found = 0;
    uint64_t id = 0;
    double cpu;

    testDiag("A flood of %s", isPva ? "pvAccess" : "Channel Access");
    for (uint32_t i = 0; i < MISSED + MADE; i++)
        id = addMessage(a, i * 50, i * 50 + 50, "X", isPva ? ebpfMonWirePva : ebpfMonWireCa, 1, IOC);
    cpu = getCpu();
    for (uint32_t i = MISSED; i < MISSED + MADE; i++) {
        uint32_t seq = i * 50 + (isPva ? 50 : 0);
        ebpfMonMessageKey key = { .peer = a, .seq = seq, .seqFrom = seq - 50, .at = now,
                                  .seqKind = isPva ? EBPFMON_SEQ_RECEIVED : EBPFMON_SEQ_MESSAGE };
        ebpfMonPut put = makePut("X");

        addReply(a, id, 1);
        ebpfMonPutJoinNameChannel(join, &a, 1, "Y");
        found += ebpfMonPutJoinMatchIoc(join, &key, &put, 1) == ebpfMonPutJoinFound;
        countUnmatched();
    }
    cpu = getCpu() - cpu;
    testOk(found == MADE && cpu < 1, "%u found in %.3f s of CPU", found, cpu);
    ebpfMonPutJoinCloseCircuit(join, &a, now);
    countUnmatchedAfter(120 * SECOND);
}

/* The last IOC of a namespace ended: its packets are read no more, and its last puts find theirs. */
static void testNamespaceLeft(void)
{
    struct ebpfMonPeer a = makeCircuit(7);
    uint32_t own = 4, both[] = { 4, 5, 0 };

    testDiag("A namespace with packets that are not read any more");
    a.netns = 5;
    ebpfMonPutJoinSetCovered(join, both, 2, now);
    addWrite(a, 100, "X");
    addWrite(a, 200, "X");
    ebpfMonPutJoinSetCovered(join, &own, 1, now);
    testOk(match(a, 100, "X", 0) == ebpfMonPutJoinFound, "a put whose packet was read before");
    ebpfMonPutJoinSetCovered(join, &own, 1, now + 59 * SECOND);
    testOk(match(a, 200, "X", 0) == ebpfMonPutJoinFound, "... and whose event was read late");
    ebpfMonPutJoinSetCovered(join, &own, 1, now + 61 * SECOND);
    testOk(match(a, 300, "X", 0) == ebpfMonPutJoinAlone, "after a minute no event is expected any more");
    ebpfMonPutJoinSetCovered(join, both, 3, now + 62 * SECOND);
    testOk(match(a, 300, "X", 0) == ebpfMonPutJoinWait, "the packets of the namespace are read again");
}

/* The join frees the puts that still wait; valgrind and ASan would report a leak. Two joins share nothing. */
static void testMemory(void)
{
    ebpfMonPutJoin *first = join;
    uint32_t netns = 0;

    testDiag("Two joins");
    join = ebpfMonPutJoinNew(NULL);
    ebpfMonPutJoinSetCovered(join, &netns, 1, 1);
    for (uint32_t i = 0; i < 100; i++) {
        match(makeCircuit(12 + i), 100, "X", 1);
        addWrite(makeCircuit(12 + i), 200, "X");
    }
    ebpfMonPutJoinFree(join);
    join = first;
    testOk(countUnmatchedAfter(120 * SECOND) == 0, "a join does not see the puts of the other one");
}

MAIN(testJoin)
{
    uint32_t none = 0;
    struct ebpfMonPeer a = makeCircuit(0);

    testPlan(0);
    join = ebpfMonPutJoinNew(NULL);
    testOk(match(a, 1, "X", 0) == ebpfMonPutJoinAlone, "a join that reads no packets");
    ebpfMonPutJoinSetCovered(join, &none, 1, 1);
    testOrders();
    testSequenceWraps();
    testWritesOfChain();
    testOtherName();
    testForgedAhead();
    testPva();
    testAttached();
    testSharedThread();
    testSharedThreadOlder();
    testWriteNotify();
    testRefused();
    testNeverMade();
    testPortUsedAgain();
    testManyPublished();
    testNamespaceLeft();
    testManyCircuits();
    testBothAtOnce();
    testFlood(0);
    testFlood(1);
    testMemory();
    ebpfMonPutJoinFree(join);
    return testDone();
}

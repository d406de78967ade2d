/* SPDX-License-Identifier: BSD-3-Clause */
/* A put that is seen inside and on the wire is one put, in whatever order the two come. Times are invented. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/putJoin.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define IOC    7 /* an IOC that is watched from inside */

static uint64_t now = 1000 * SECOND;
static uint64_t ids;
static const ebpfMonOldValue noOld;

/* A connection of its own for each test. */
static struct ebpfMonPeer connection(unsigned n)
{
    return (struct ebpfMonPeer){ .addr = htonl(0x0a000000u + n), .saddr = htonl(0x0a640001), .sport = htons(5064),
                                 .port = htons((uint16_t)(20000 + n % 40000)) };
}

static double sent; /* 0: no number */

static uint64_t wirePva(struct ebpfMonPeer peer, uint32_t seq, uint32_t end, const char *name, ebpfMonWireProtocol protocol,
                        int reply, uint32_t iocId)
{
    ebpfMonWireEvent ev = {
        .kind = ebpfMonWirePut, .protocol = protocol, .peer = peer, .seq = seq, .end = end, .id = ++ids,
        .user = "wire", .host = "wirehost", .name = name, .replyAsked = reply, .text = "1", .data = (const uint8_t *)"1",
        .have = 1, .count = 1, .hash = 42, .isNumber = sent != 0, .number = sent,
    };

    ebpfMonPutJoinAddPacket(&ev, iocId, &noOld, now);
    return ids;
}

static uint64_t wire(struct ebpfMonPeer peer, uint32_t seq, const char *name)
{
    return wirePva(peer, seq, seq + 24, name, ebpfMonWireCa, 0, IOC);
}

static void reply(struct ebpfMonPeer peer, uint64_t id, int ok)
{
    ebpfMonWireEvent ev = { .kind = ebpfMonWireReply, .peer = peer, .id = id, .ok = ok, .denied = !ok, .message = "" };

    ebpfMonOldValue old;

    ebpfMonPutJoinAddReply(&ev, &old);
}

static ebpfMonPut putOf(const char *pv)
{
    ebpfMonPut put;

    memset(&put, 0, sizeof(put));
    snprintf(put.pv, sizeof(put.pv), "%s", pv);
    strcpy(put.peer, "10.0.0.1:1");
    strcpy(put.user, "inside");
    put.seen = EBPFMON_SEEN_INSIDE;
    put.isNumber = sent != 0;
    put.number = sent;
    return put;
}

static ebpfMonPut last; /* what inside() was given, and what it became */

static ebpfMonPutJoinResult insideKind(struct ebpfMonPeer peer, uint32_t seq, int kind, const char *pv, int final)
{
    ebpfMonMessageKey key = { .peer = peer, .seq = seq, .seqKind = (uint8_t)kind, .at = now };
    ebpfMonPutJoinResult r;

    last = putOf(pv);
    r = ebpfMonPutJoinMatchIoc(&key, &last, final);
    if (key.moved)
        snprintf(last.message, sizeof(last.message), "moved to %u", ntohl(key.peer.addr) & 0xffffff);
    return r;
}

static ebpfMonPutJoinResult inside(struct ebpfMonPeer peer, uint32_t seq, const char *pv, int final)
{
    return insideKind(peer, seq, EBPFMON_SEQ_MESSAGE, pv, final);
}

/* How many the wire tells of alone; the last one's "passed" and "closed" stay. */
static int alonePassed, aloneClosed;

static unsigned alone(void)
{
    ebpfMonPacketPut *list = ebpfMonPutJoinTakeUnmatched(now), *next;
    unsigned n = 0;

    for (; list; list = next, n++) {
        next = list->next;
        alonePassed = list->passed;
        aloneClosed = list->closed;
        free(list);
    }
    return n;
}

static unsigned aloneAfter(uint64_t time)
{
    now += time;
    return alone();
}

static void orders(void)
{
    struct ebpfMonPeer a = connection(1);

    testDiag("One put, two witnesses");
    wire(a, 100, "X");
    testOk1(inside(a, 100, "X", 0) == ebpfMonPutJoinFound && last.seen == 3 && last.hash == 42);
    testOk(inside(a, 200, "Y", 0) == ebpfMonPutJoinWait, "inside first: it waits");
    wire(a, 200, "Y");
    testOk1(inside(a, 200, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(inside(a, 300, "Z.DESC", 1) == ebpfMonPutJoinWait);
    wire(a, 300, "Z.DESC");
    testOk(aloneAfter(120 * SECOND) == 0, "the wire came too late: it was published");
    wire(a, 400, "X");
    wire(a, 500, "X");
    testOk(inside(a, 500, "X", 0) == ebpfMonPutJoinFound, "the second of two");
    testOk(inside(a, 400, "X", 0) == ebpfMonPutJoinFound, "the first after it");
    wire(a, 600, "");
    testOk(inside(a, 600, "X", 0) == ebpfMonPutJoinFound, "a channel without a name");
    wire(a, 700, "X");
    testOk(inside(a, 650, "X", 0) == ebpfMonPutJoinAlone, "the wire is beyond it");
    testOk1(inside(a, 700, "X", 0) == ebpfMonPutJoinFound);
    testOk(aloneAfter(120 * SECOND) == 0, "nothing is left");
}

static void wraps(void)
{
    struct ebpfMonPeer a = connection(2);

    testDiag("Sequence numbers begin anew");
    wire(a, 0xfffffff0u, "X");
    wire(a, 8, "X");
    testOk1(inside(a, 0xfffffff0u, "X", 0) == ebpfMonPutJoinFound && inside(a, 8, "X", 0) == ebpfMonPutJoinFound);
    testOk1(inside(a, 0xfffffff8u, "X", 1) == ebpfMonPutJoinWait && inside(a, 0x10, "X", 1) == ebpfMonPutJoinWait);
    wire(a, 0xfffffff8u, "X");
    wire(a, 0x10, "X");
    testOk1(aloneAfter(120 * SECOND) == 0);
}

/* The result of a put may come after what its record wrote in the same thread. */
static void chains(void)
{
    struct ebpfMonPeer a = connection(3);

    testDiag("What a put sets going writes by the same message");
    wire(a, 100, "X");
    testOk1(inside(a, 100, "OTHER", 0) != ebpfMonPutJoinFound && last.hash == 0 && !last.channel[0]);
    testOk1(inside(a, 100, "X", 0) == ebpfMonPutJoinFound);
    testOk1(inside(a, 200, "OTHER", 1) == ebpfMonPutJoinWait);
    wire(a, 200, "X");
    testOk(inside(a, 200, "X", 0) == ebpfMonPutJoinFound, "the other's number is not taken for this one's");
    testOk1(aloneAfter(120 * SECOND) == 0);
}

static void pva(void)
{
    struct ebpfMonPeer a = connection(4);
    uint64_t id;

    testDiag("pvAccess: the inside knows where what it received ended");
    wirePva(a, 100, 150, "X", ebpfMonWirePva, 1, IOC);
    wirePva(a, 150, 200, "Y", ebpfMonWirePva, 1, IOC);
    wirePva(a, 200, 250, "X", ebpfMonWirePva, 1, IOC);
    testOk1(insideKind(a, 250, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound);
    testOk1(insideKind(a, 250, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(insideKind(a, 250, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound && strcmp(last.user, "wire") == 0);
    testOk(aloneAfter(120 * SECOND) == 0, "three in one receive");

    insideKind(a, 450, EBPFMON_SEQ_RECEIVED, "X", 1);
    insideKind(a, 450, EBPFMON_SEQ_RECEIVED, "Y", 1);
    wirePva(a, 400, 425, "X", ebpfMonWirePva, 1, IOC);
    wirePva(a, 425, 450, "Y", ebpfMonWirePva, 1, IOC);
    testOk(aloneAfter(120 * SECOND) == 0, "… of which the wire told late");

    wirePva(a, 500, 550, "GROUP", ebpfMonWirePva, 1, IOC);
    testOk1(insideKind(a, 550, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound);
    testOk1(insideKind(a, 550, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    testOk(insideKind(a, 600, EBPFMON_SEQ_RECEIVED, "Z", 0) == ebpfMonPutJoinWait, "the next put is none of the group");
    wirePva(a, 550, 600, "Z", ebpfMonWirePva, 1, IOC);
    testOk1(insideKind(a, 600, EBPFMON_SEQ_RECEIVED, "Z", 0) == ebpfMonPutJoinFound);
    testOk(aloneAfter(120 * SECOND) == 0, "a group is told of by its members");

    insideKind(a, 750, EBPFMON_SEQ_RECEIVED, "X", 1);
    insideKind(a, 750, EBPFMON_SEQ_RECEIVED, "Y", 1);
    wirePva(a, 700, 750, "GROUP", ebpfMonWirePva, 1, IOC);
    testOk(aloneAfter(120 * SECOND) == 0, "a group of which the wire told late");

    id = wirePva(a, 800, 850, "X", ebpfMonWirePva, 1, IOC);
    reply(a, id, 0);
    testOk(aloneAfter(200 * MS) == 1, "refused: nobody else will tell");

    wirePva(a, 900, 950, "X", ebpfMonWirePva, 1, IOC);
    wirePva(a, 950, 1000, "Y", ebpfMonWirePva, 1, IOC);
    insideKind(a, 1000, EBPFMON_SEQ_RECEIVED, "X", 0);
    testOk(aloneAfter(30 * SECOND) == 0, "received is not served: the IOC may take its time");
    testOk1(insideKind(a, 1000, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(aloneAfter(120 * SECOND) == 0);
    wirePva(a, 1100, 1200, "Y", ebpfMonWirePva, 1, IOC);
    insideKind(a, 1150, EBPFMON_SEQ_RECEIVED, "X", 1);
    testOk(aloneAfter(30 * SECOND) == 0, "… a part of it neither");
    testOk1(insideKind(a, 1200, EBPFMON_SEQ_RECEIVED, "Y", 0) == ebpfMonPutJoinFound);
}

/* pvxs: one thread reads from A and from B, then serves A. */
static void shared(void)
{
    struct ebpfMonPeer a = connection(5), b = connection(6);

    testDiag("A thread that serves several connections");
    wirePva(a, 100, 150, "X", ebpfMonWirePva, 1, IOC);
    wirePva(b, 700, 750, "Y", ebpfMonWirePva, 1, IOC);
    testOk1(insideKind(b, 750, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinWait);
    testOk1(insideKind(b, 750, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinFound);
    testOk(strcmp(last.message, "moved to 5") == 0, "the put is A's");
    testOk1(insideKind(b, 750, EBPFMON_SEQ_SHARED, "Y", 0) == ebpfMonPutJoinFound && !last.message[0]);
    wirePva(a, 200, 250, "X", ebpfMonWirePva, 1, IOC);
    testOk1(insideKind(b, 800, EBPFMON_SEQ_RECEIVED, "X", 1) == ebpfMonPutJoinWait);
    testOk(insideKind(a, 250, EBPFMON_SEQ_RECEIVED, "X", 0) == ebpfMonPutJoinFound, "others' connections are their own");
    sent = 1;
    wirePva(a, 300, 350, "X", ebpfMonWirePva, 1, IOC);
    sent = 2;
    wirePva(b, 800, 850, "X", ebpfMonWirePva, 1, IOC);
    sent = 1;
    testOk1(insideKind(b, 850, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinWait);
    testOk1(insideKind(b, 850, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinFound);
    testOk(strcmp(last.message, "moved to 5") == 0, "both put to one PV: the value tells");
    sent = 2;
    testOk1(insideKind(b, 850, EBPFMON_SEQ_SHARED, "X", 0) == ebpfMonPutJoinFound && !last.message[0]);
    sent = 0;
    testOk1(insideKind(b, 900, EBPFMON_SEQ_SHARED, "X", 1) == ebpfMonPutJoinWait);
    wirePva(a, 400, 450, "X", ebpfMonWirePva, 1, IOC);
    testOk1(aloneAfter(120 * SECOND) == 0);
}

/* A put-callback to a busy record is made by another thread, when the record is ready. */
static void notify(void)
{
    struct ebpfMonPeer a = connection(7), part = { .addr = a.addr, .port = a.port };
    uint64_t id;

    testDiag("A write-notify that waits for its record");
    id = wirePva(a, 100, 124, "MOTOR", ebpfMonWireCa, 1, IOC);
    for (uint32_t seq = 200; seq < 220; seq++) {
        wire(a, seq, "X");
        inside(a, seq, "X", 0);
    }
    testOk(aloneAfter(300 * SECOND) == 0, "served later ones: it is not lost");
    testOk1(insideKind(part, 0, EBPFMON_SEQ_NONE, "MOTOR", 0) == ebpfMonPutJoinFound);
    testOk(strcmp(last.message, "moved to 7") == 0, "its connection becomes known");
    reply(a, id, 1);
    testOk1(aloneAfter(120 * SECOND) == 0);
}

static void denied(void)
{
    struct ebpfMonPeer a = connection(8);
    uint64_t id;

    testDiag("Refused, both or one of them telling");
    id = wire(a, 100, "X");
    reply(a, id, 0);
    testOk1(inside(a, 100, "X", 0) == ebpfMonPutJoinFound && last.result == ebpfMonPutOk);
    id = wire(a, 200, "X");
    reply(a, id, 0);
    testOk1(alone() == 0);
    testOk1(aloneAfter(150 * MS) == 1);
    testOk1(aloneAfter(120 * SECOND) == 0);
}

static void lost(void)
{
    struct ebpfMonPeer a = connection(9);

    testDiag("Never made");
    wire(a, 100, "X");
    testOk(aloneAfter(50 * SECOND) == 0, "the IOC may hang");
    wire(a, 200, "Y");
    testOk1(inside(a, 200, "Y", 0) == ebpfMonPutJoinFound);
    testOk1(alone() == 1 && alonePassed);
    wire(a, 300, "X");
    testOk1(aloneAfter(61 * SECOND) == 1 && !alonePassed);
    wire(a, 400, "X");
    ebpfMonPutJoinCloseCircuit(&a);
    testOk1(aloneAfter(5 * SECOND) == 0);
    testOk(inside(a, 400, "X", 0) == ebpfMonPutJoinFound, "closed, and read yet");
    wire(a, 500, "X");
    ebpfMonPutJoinCloseCircuit(&a);
    testOk1(aloneAfter(11 * SECOND) == 1 && aloneClosed && !alonePassed);
    wirePva(a, 600, 624, "X", ebpfMonWireCa, 0, 0);
    testOk(aloneAfter(60 * MS) == 1, "of a server that nobody looks into");
}

/* The next client has the port of the one before; its numbers begin anywhere. */
static void again(void)
{
    struct ebpfMonPeer a = connection(10);

    for (int behind = 0; behind < 2; behind++) {
        uint32_t first = 1000000, second = behind ? 500 : 2000000;

        testDiag("A port is used again, numbers %s", behind ? "lower" : "higher");
        for (uint32_t i = 0; i < 10; i++)
            inside(a, first + i * 24, "X", 1); /* which the wire never told of */
        wire(a, first + 240, "X");
        inside(a, second + 96, "X", 1);
        ebpfMonPutJoinCloseCircuit(&a);
        now += SECOND;
        wire(a, second, "X");
        testOk1(inside(a, second, "X", 0) == ebpfMonPutJoinFound);
        inside(a, second + 24, "X", 1);
        wire(a, second + 24, "X");
        wire(a, second + 48, "X");
        testOk1(inside(a, second + 48, "X", 0) == ebpfMonPutJoinFound);
        testOk1(inside(a, second + 72, "X", 0) == ebpfMonPutJoinWait);
        wire(a, second + 96, "X");
        testOk(inside(a, second + 96, "X", 0) == ebpfMonPutJoinFound, "a number that the old one had, too");
        testOk(aloneAfter(120 * SECOND) == 1 && aloneClosed, "the old connection's is left alone");
        ebpfMonPutJoinCloseCircuit(&a);
    }
}

static void overrun(void)
{
    struct ebpfMonPeer a = connection(11);
    unsigned n = 0;

    testDiag("More published alone than are remembered");
    for (uint32_t i = 0; i < 6000; i++)
        inside(a, i * 24, "X", 1);
    for (uint32_t i = 0; i < 6000; i++)
        wire(a, i * 24, "X");
    n = aloneAfter(120 * SECOND);
    testOk(n == 0, "%u told twice", n);
    wire(a, 0x90000000u, "X");
    testOk(inside(a, 0x90000000u, "X", 0) == ebpfMonPutJoinFound, "2 GB later");
}

static void forgotten(void)
{
    uint64_t dropped = ebpfMonPutJoinCountDropped();

    testDiag("More connections than are remembered");
    for (unsigned i = 0; i < 9000; i++)
        wire(connection(100 + i), 100, "X");
    testOk1(ebpfMonPutJoinCountDropped() - dropped == 9000 - 8192);
    testOk1(aloneAfter(120 * SECOND) == 8192);
}

/* --- both sides at once -------------------------------------------------------------------------- */

#define PUTS   20000
#define LANES  8

static size_t published[LANES][PUTS];
static epicsEventId wireDone, insideDone;

static int chance(unsigned *state, int of)
{
    *state = *state * 1103515245u + 12345u;
    return (int)(*state >> 16) % of;
}

static void wireThread(void *arg)
{
    unsigned state = 1;

    (void)arg;
    for (uint32_t i = 0; i < PUTS; i++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            struct ebpfMonPeer peer = connection(20 + lane);

            if (lane & 1)
                wirePva(peer, i * 50, i * 50 + 50, "X", ebpfMonWirePva, 1, IOC);
            else
                wire(peer, i * 50, "X");
            if (chance(&state, 50) == 0)
                epicsThreadSleep(0);
        }
    epicsEventMustTrigger(wireDone);
}

/* As pending.c does: each is asked for, then published whatever is known. */
static void insideThread(void *arg)
{
    unsigned state = 7;

    (void)arg;
    for (uint32_t i = 0; i < PUTS; i++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            ebpfMonMessageKey key = { .peer = connection(20 + lane), .seq = lane & 1 ? i * 50 + 50 : i * 50, .at = now,
                                   .seqKind = lane & 1 ? EBPFMON_SEQ_RECEIVED : EBPFMON_SEQ_MESSAGE };
            ebpfMonPut put = putOf("X");
            int tries = chance(&state, 4);

            while (tries-- && ebpfMonPutJoinMatchIoc(&key, &put, 0) == ebpfMonPutJoinWait)
                epicsThreadSleep(0);
            if (tries < 0)
                ebpfMonPutJoinMatchIoc(&key, &put, 1);
            epicsAtomicIncrSizeT(&published[lane][i]);
        }
    epicsEventMustTrigger(insideDone);
}

static void both(void)
{
    unsigned wrong = 0, n;
    unsigned stack = epicsThreadGetStackSize(epicsThreadStackBig);

    testDiag("Both at once");
    wireDone = epicsEventMustCreate(epicsEventEmpty);
    insideDone = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("wire", epicsThreadPriorityMedium, stack, wireThread, NULL);
    epicsThreadMustCreate("inside", epicsThreadPriorityMedium, stack, insideThread, NULL);
    epicsEventMustWait(wireDone);
    epicsEventMustWait(insideDone);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < PUTS; i++)
            wrong += published[lane][i] != 1;
    n = aloneAfter(120 * SECOND);
    testOk(wrong == 0 && n == 0, "of %u puts each is published once: %u wrong inside, %u more by the wire",
           LANES * PUTS, wrong, n);
}

MAIN(testJoin)
{
    uint32_t none = 0;
    struct ebpfMonPeer a = connection(0);

    testPlan(0);
    testOk(inside(a, 1, "X", 0) == ebpfMonPutJoinAlone, "nobody looks at the wire");
    ebpfMonPutJoinSetCovered(&none, 1);
    orders();
    wraps();
    chains();
    pva();
    shared();
    notify();
    denied();
    lost();
    again();
    overrun();
    forgotten();
    both();
    return testDone();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The pvAccess decoder with incomplete data: gaps, messages in pieces, values that are not kept; and its frames. */
#include "pvaTest.h"

/* The number of a type is not used if a lost message may have changed its meaning. */
static void testGaps(void)
{
    begin();
    channel(1, 2, "g");
    initPut(2, 3);
    answerInit(3); HEX(0xfd, 5, 0); scalarType(0x22); say(1, 11);
    initPut(2, 4);
    answerInit(4); HEX(0xfe, 5, 0); say(1, 11);
    startPut(2, 4); HEX(1, 2); number(1, 4); say(0, 11);
    ebpfMonPvaProtocol.gap(circuit.state, 1);
    putDone(4);
    initPut(2, 5);
    answerInit(5); HEX(0xfe, 5, 0); say(1, 11);
    startPut(2, 5); HEX(1, 2); number(2, 4); say(0, 11);
    startPut(2, 4); HEX(1, 2); number(3, 4); say(0, 11);
    /* A structure with an unknown part: the meanings of the later bits are unknown. */
    initPut(2, 6);
    answerInit(6); HEX(0x80); text(""); number(3, 1); text("value"); HEX(0x60); text("a"); HEX(0xfe, 5, 0); text("b");
    HEX(0xfd, 6, 0); scalarType(0x60); say(1, 11);
    startPut(2, 6); HEX(1, 8); text("what"); say(0, 11);
    startPut(2, 6); HEX(1, 4); text("what"); say(0, 11);
    startPut(2, 6); HEX(1, 1); text("what"); text("else"); say(0, 11);
    startPut(2, 6); HEX(2, 2, 1); text("what"); text("else"); say(0, 11);
    startPut(2, 6); HEX(1, 2); text("before"); say(0, 11);
    /* … but types that it describes before are used. */
    initPut(2, 7);
    answerInit(7); HEX(0xfe, 6, 0); say(1, 11);
    startPut(2, 7); HEX(1, 2); text("six"); say(0, 11);
    /* A new meaning. */
    initPut(2, 8);
    answerInit(8); HEX(0xfd, 6, 0); scalarType(0x20); say(1, 11);
    initPut(2, 9);
    answerInit(9); HEX(0xfe, 6, 0); say(1, 11);
    startPut(2, 9); HEX(1, 2, 0x41); say(0, 11);
    /* The type of a value (any) that the server sends. */
    start(); number(2, 4); number(10, 4); number(8, 1); number(0xff, 1); say(0, 13);
    start(); number(10, 4); number(8, 1); number(0xff, 1); scalarType(0x82); say(1, 13);
    start(); number(10, 4); number(0, 1); HEX(1, 2, 0xfd, 6, 0); scalarType(0x60); text("x"); HEX(0); say(1, 13);
    initPut(2, 11);
    answerInit(11); HEX(0xfe, 6, 0); say(1, 11);
    startPut(2, 11); HEX(1, 2); text("new"); say(0, 11);
    expect("channel g\nput 1 g : 1 = 1\nreply 0 g ok 0\nput 2 g : ? x0\nput 3 g : 3 = 3\nput 4 g : ? x0\n"
        "put 5 g : ? x0\nput 6 g : ? x0\nput 7 g : ? x0\nput 8 g : before\nput 9 g : six\nput 10 g : 65 = 65\n"
        "subscribe g\nupdate 10 g\nput 11 g : new\n", "after a gap a type is known by its number");

    /* Messages of a connection that is older than the decoder. */
    begin();
    startPut(2, 4); HEX(1, 2); number(1, 4); say(0, 11);
    putDone(4);
    startPut(2, 4); HEX(1, 2); number(1, 4); say(0, 11);
    putDone(4);
    putScalar(5, 0x22, 9, 4);
    start(); number(2, 4); number(1, 4); say(0, 8);
    expect("put 1  : ? x0\nreply 1  ok 0\nput 2  : ? x0\nreply 2  ok 0\nput 3  : 9 = 9\nreply 3  ok 0\ngone \n",
        "a connection that is met in the middle is read");
}

/* A message in pieces has the same meaning as in one piece, also with a control message between the pieces. */
static void testPieces(void)
{
    static uint8_t whole[60000];
    unsigned long k;
    unsigned i;

    begin();
    channel(1, 2, "p");
    initPut(2, 3);
    answerInit(3); scalarType(0x2b); say(1, 11);
    startPut(2, 3); HEX(1, 2, 254); number(5000, 4);
    for (i = 0; i < 5000; i++) {
        number(i, 8);
    }
    size_t size = made.size;
    memcpy(whole, made.p, size);
    say(0, 11);
    uint64_t hash = circuit.lastHash;
    testOk(hash == driverHash(whole + 8 + 9 + 2, size - 8 - 9 - 2), "the hash is that of the value's bytes");
    for (k = 0; k < 3; k++) {
        size_t at = 8;

        if (k == 2) {
            circuit.limits.keep = 1000;
        }
        while (at < size) {
            size_t length = size - at < 777 ? size - at : 777;

            made.size = 0;
            bytes(whole, 8);
            bytes(whole + at, length);
            header(made.p, 11, at == 8 ? 0x10 : at + length == size ? 0x20 : 0x30, length);
            driverBytes(&circuit, 0, made.p, made.size);
            at += length;
            if (k) {
                HEX(0xca, 2, 1, 3, 0, 0, 0, 0);
                driverBytes(&circuit, 0, made.p + made.size - 8, 8);
            }
        }
        testOk(circuit.lastHash == hash, "… also if the message comes in pieces");
    }
    /* A gap between pieces. */
    made.size = 0;
    bytes(whole, 1000);
    header(made.p, 11, 0x10, 992);
    driverBytes(&circuit, 0, made.p, 1000);
    ebpfMonPvaProtocol.gap(circuit.state, 0);
    header(made.p, 11, 0x20, 992);
    driverBytes(&circuit, 0, made.p, 1000);
    expect("channel p\nput 1 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\nput 2 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\n"
        "put 3 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\nput 4 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\n",
        "messages in pieces are read as whole ones");
}

/* A value longer than the part that is kept. */
static void testKept(void)
{
    unsigned i;

    begin();
    channel(1, 2, "k");
    initPut(2, 3);
    answerInit(3); scalarType(0x29); say(1, 11);
    initPut(2, 4);
    answerInit(4); scalarType(0x68); say(1, 11);
    startPut(2, 3); HEX(1, 2, 254); number(100000, 4);
    for (i = 0; i < 100000; i++) {
        number(i, 2);
    }
    say(0, 11);
    testOk(circuit.lastHash == driverHash(made.p + 19, made.size - 19),
           "the hash covers a value that is not kept whole");
    startPut(2, 4); HEX(1, 2, 254); number(1000, 4);
    for (i = 0; i < 1000; i++) {
        number(200, 1);
        memset(made.p + made.size, 'a' + i % 26, 200);
        made.size += 200;
    }
    circuit.limits.keep = 300;
    say(0, 11);
    testOk(!circuit.stats.malformed, "… and such a value is not malformed");
    char events[1000];
    sprintf(events, "channel k\nput 1 k : [100000] 0 1 2 3 4 5 6 7 ... x100000\n"
        "put 2 k : [1000] \"%.200s\" ... x1000\n",
        TEN(TEN("aa")));
    expect(events, "values longer than what is kept are shown shortened");
}

static void odd(const char *what, int fromServer, size_t size)
{
    ebpfMonFrame frame;
    int found = ebpfMonPvaProtocol.frame(NULL, fromServer, made.p, size, &frame);

    testOk(found == -1, "%s: %d", what, found);
}

static void testFrame(void)
{
    ebpfMonFrame frame;

    made.size = 0; HEX(0xca, 2, 0, 11, 20, 0, 0, 0);
    testOk1(ebpfMonPvaProtocol.frame(NULL, 0, made.p, 0, &frame) == 0);
    testOk1(ebpfMonPvaProtocol.frame(NULL, 0, made.p, 7, &frame) == 0);
    testOk1(ebpfMonPvaProtocol.frame(NULL, 0, made.p, 8, &frame) == 0);
    odd("wrong direction", 1, 8);
    made.p[4] = 3; odd("too short for its command", 0, 8); made.p[4] = 20;
    made.p[7] = 5; odd("longer than 64 MiB", 0, 8); made.p[7] = 0;
    made.p[2] = 2; odd("reserved flag", 0, 8); made.p[2] = 0;
    made.p[3] = 23; odd("unknown command", 0, 8); made.p[3] = 0; odd("beacon by TCP", 0, 8); made.p[3] = 11;
    made.p[1] = 0; odd("version 0", 0, 8); made.p[1] = 99; odd("version 99", 0, 2); made.p[1] = 2;
    made.p[0] = 0xcb; odd("magic", 0, 1);
    made.size = 0; HEX(0xca, 2, 0x41, 2, 0xff, 0xff, 0xff, 0xff);
    testOk(ebpfMonPvaProtocol.frame(NULL, 1, made.p, 8, &frame) == 1 && frame.total == 8,
           "a message that sets the byte order is one frame");
    made.p[3] = 9; odd("unknown control message", 1, 8);
}

MAIN(testPvaStream)
{
    testPlan(0);
    testGaps();
    testPieces();
    testKept();
    testFrame();
    return testDone();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The pvAccess decoder with the examples of the protocol specification, and with each kind of value and reply. */
#include "pvaTest.h"

/* The structure of the chapters "Introspection Data" and "Encoding Example". */
static void testSpecification(void)
{
    begin();
    made.big = 1;
    channel(1, 2, "spec");
    initPut(2, 3);
    answerInit(3);
    HEX(0xFD, 0x00, 0x01, 0x80, 0x10, 0x65, 0x78, 0x61, 0x6D, 0x70, 0x6C, 0x65, 0x53, 0x74, 0x72, 0x75,
        0x63, 0x74, 0x75, 0x72, 0x65, 0x07, 0x05, 0x76, 0x61, 0x6C, 0x75, 0x65, 0x28, 0x10, 0x62, 0x6F,
        0x75, 0x6E, 0x64, 0x65, 0x64, 0x53, 0x69, 0x7A, 0x65, 0x41, 0x72, 0x72, 0x61, 0x79, 0x30, 0x10,
        0x0E, 0x66, 0x69, 0x78, 0x65, 0x64, 0x53, 0x69, 0x7A, 0x65, 0x41, 0x72, 0x72, 0x61, 0x79, 0x38,
        0x04, 0x09, 0x74, 0x69, 0x6D, 0x65, 0x53, 0x74, 0x61, 0x6D, 0x70, 0xFD, 0x00, 0x02, 0x80, 0x06,
        0x74, 0x69, 0x6D, 0x65, 0x5F, 0x74, 0x03, 0x10, 0x73, 0x65, 0x63, 0x6F, 0x6E, 0x64, 0x73, 0x50,
        0x61, 0x73, 0x74, 0x45, 0x70, 0x6F, 0x63, 0x68, 0x23, 0x0B, 0x6E, 0x61, 0x6E, 0x6F, 0x73, 0x65,
        0x63, 0x6F, 0x6E, 0x64, 0x73, 0x22, 0x07, 0x75, 0x73, 0x65, 0x72, 0x54, 0x61, 0x67, 0x22, 0x05,
        0x61, 0x6C, 0x61, 0x72, 0x6D, 0xFD, 0x00, 0x03, 0x80, 0x07, 0x61, 0x6C, 0x61, 0x72, 0x6D, 0x5F,
        0x74, 0x03, 0x08, 0x73, 0x65, 0x76, 0x65, 0x72, 0x69, 0x74, 0x79, 0x22, 0x06, 0x73, 0x74, 0x61,
        0x74, 0x75, 0x73, 0x22, 0x07, 0x6D, 0x65, 0x73, 0x73, 0x61, 0x67, 0x65, 0x60, 0x0A, 0x76, 0x61,
        0x6C, 0x75, 0x65, 0x55, 0x6E, 0x69, 0x6F, 0x6E, 0xFD, 0x00, 0x04, 0x81, 0x00, 0x03, 0x0B, 0x73,
        0x74, 0x72, 0x69, 0x6E, 0x67, 0x56, 0x61, 0x6C, 0x75, 0x65, 0x60, 0x08, 0x69, 0x6E, 0x74, 0x56,
        0x61, 0x6C, 0x75, 0x65, 0x22, 0x0B, 0x64, 0x6F, 0x75, 0x62, 0x6C, 0x65, 0x56, 0x61, 0x6C, 0x75,
        0x65, 0x43, 0x0C, 0x76, 0x61, 0x72, 0x69, 0x61, 0x6E, 0x74, 0x55, 0x6E, 0x69, 0x6F, 0x6E, 0xFD,
        0x00, 0x05, 0x82);
    say(1, 11);
    startPut(2, 3);
    HEX(1, 1);
    HEX(0x03, 0x01, 0x02, 0x03, 0x05, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x11, 0x22,
        0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xEE, 0xEE, 0xEE, 0x11, 0x11,
        0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0x0B, 0x41, 0x6C, 0x6C, 0x6F, 0x2C, 0x20, 0x41, 0x6C, 0x6C,
        0x6F, 0x21, 0x01, 0x33, 0x33, 0x33, 0x33, 0x60, 0x1C, 0x53, 0x74, 0x72, 0x69, 0x6E, 0x67, 0x20,
        0x69, 0x6E, 0x73, 0x69, 0x64, 0x65, 0x20, 0x76, 0x61, 0x72, 0x69, 0x61, 0x6E, 0x74, 0x20, 0x75,
        0x6E, 0x69, 0x6F, 0x6E, 0x2E);
    say(0, 11);
    putDone(3);
    /* Type 2, by its number, in another request: a variant of it. */
    initPut(2, 4);
    answerInit(4);
    HEX(0xfe, 0, 2);
    say(1, 11);
    startPut(2, 4);
    HEX(1, 4, 0, 0, 0, 9);
    say(0, 11);
    made.big = 0;
    expect("channel spec\n"
        "put 1 spec : {\"value\": [1, 2, 3], \"boundedSizeArray\": [4, 5, 6, 7, 8], "
        "\"fixedSizeArray\": [9, 10, 11, 12], "
        "\"timeStamp\": {\"secondsPastEpoch\": 1234605616436508552, \"nanoseconds\": -1430532899, "
        "\"userTag\": -286331154}, \"alarm\": {\"severity\": 286331153, \"status\": 572662306, "
        "\"message\": \"Allo, Allo!\"}, \"valueUnion\": 858993459, "
        "\"variantUnion\": \"String inside variant union.\"}\n"
        "reply 1 spec ok 0\n"
        "put 2 spec : {\"nanoseconds\": 9}\n", "the specification's examples are read, big-endian");
}

static void testNumbers(void)
{
    static const struct { int code; unsigned size; uint64_t bits; const char *text; } all[] = {
        { 0x00, 1, 7, "true = 1" },
        { 0x20, 1, 0x80, "-128 = -128" },
        { 0x24, 1, 0x80, "128 = 128" },
        { 0x21, 2, 0xffff, "-1 = -1" },
        { 0x25, 2, 0xffff, "65535 = 65535" },
        { 0x22, 4, 0x80000000u, "-2147483648 = -2147483648" },
        { 0x26, 4, 0xffffffffu, "4294967295 = 4294967295" },
        { 0x23, 8, 0x8000000000000000u, "-9223372036854775808 = -9.2233720368547758e+18" },
        { 0x27, 8, 0xffffffffffffffffu, "18446744073709551615 = 1.8446744073709552e+19" },
        { 0x42, 4, 0x3dcccccd, "0.1 = 0.10000000149011612" },
        { 0x42, 4, 0x00000001, "1e-45 = 1.4012984643248171e-45" },
        { 0x42, 4, 0x7f7fffff, "3.4028235e+38 = 3.4028234663852886e+38" },
        { 0x43, 8, 0x3fb999999999999au, "0.1 = 0.10000000000000001" },
        { 0x43, 8, 0x0000000000000001u, "5e-324 = 4.9406564584124654e-324" },
        { 0x43, 8, 0x7fefffffffffffffu, "1.7976931348623157e+308 = 1.7976931348623157e+308" },
        { 0x43, 8, 0x8000000000000000u, "-0 = -0" },
        { 0x43, 8, 0x7ff8000000000000u, "nan = nan" },
        { 0x43, 8, 0xfff0000000000000u, "-inf = -inf" },
        { 0x43, 8, 0x40c3880000000000u, "10000 = 10000" },
        { 0x43, 8, 0x3fd5555555555555u, "0.3333333333333333 = 0.33333333333333331" }
    };
    char events[4000];
    unsigned i, big;

    for (big = 0; big < 2; big++) {
        size_t at = sprintf(events, "channel n\n");

        made.big = big;
        begin();
        channel(1, 2, "n");
        for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            putScalar(i, all[i].code, all[i].bits, all[i].size);
            at += sprintf(events + at, "put %u n : %s\nreply %u n ok 0\n", i + 1, all[i].text, i + 1);
        }
        expect(events,
               big ? "numbers of all types are read, big-endian" : "numbers of all types are read, little-endian");
    }
    made.big = 0;
}

/* A BitSet of more than eight bytes: its length tells which bytes are a number, and which are single bytes. */
static void testBits(void)
{
    unsigned big, i;

    for (big = 0; big < 2; big++) {
        made.big = big;
        begin();
        channel(1, 2, "b");
        initPut(2, 3);
        answerInit(3);
        HEX(0x80); text(""); number(70, 1);
        for (i = 0; i < 70; i++) {
            char name[8];

            sprintf(name, "f%u", i + 1);
            text(name); number(0x20, 1);
        }
        say(1, 11);
        startPut(2, 3); number(9, 1); number((uint64_t)1 << 63 | 4, 8); number(2, 1); HEX(1, 2, 3); say(0, 11);
        expect("channel b\nput 1 b : {\"f2\": 1, \"f63\": 2, \"f65\": 3}\n",
            big ? "a long BitSet is read, big-endian" : "a long BitSet is read, little-endian");
    }
    made.big = 0;
}

static void testEnum(void)
{
    begin();
    channel(1, 2, "e");
    initPut(2, 3);
    answerInit(3);
    HEX(0x80); text(""); number(2, 1); text("value");
    HEX(0x80); text("enum_t"); number(2, 1); text("index"); HEX(0x22); text("choices"); HEX(0x68);
    text("other"); HEX(0x22);
    say(1, 11);
    startPut(2, 3); HEX(1, 4); number(1, 4); say(0, 11);
    startPut(2, 3); HEX(1, 2); number(1, 4); number(2, 1); text("off"); text("on"); say(0, 11);
    startPut(2, 3); HEX(1, 8); number(1, 1); text("only"); say(0, 11);
    startPut(2, 3); HEX(1, 0x14); number(1, 4); number(7, 4); say(0, 11);
    /* The server sends the choices in the get of the same request. */
    start(); number(3, 4); number(0x40, 1); HEX(0xff, 1, 2); number(0, 4); number(2, 1); text("nay"); text("aye");
    say(1, 11);
    startPut(2, 3); HEX(1, 4); number(1, 4); say(0, 11);
    startPut(2, 3); HEX(1, 4); number(2, 4); say(0, 11);
    expect("channel e\nput 1 e : 1 = 1\nput 2 e : 1 (on) = 1\n"
        "put 3 e : {\"value\": {\"choices\": [\"only\"]}}\nput 4 e : {\"value\": {\"index\": 1}, \"other\": 7}\n"
        "put 5 e : 1 (aye) = 1\nput 6 e : 2 = 2\n", "an enumeration is shown with number and text");
}

/* Each reply belongs to its own put, or to none. */
static void testReplies(void)
{
    begin();
    channel(1, 2, "r");
    putScalar(3, 0x22, 5, 4);
    startPut(2, 3); HEX(1, 2); number(6, 4); say(0, 11);
    startPut(2, 3); HEX(1, 2); number(7, 4); say(0, 11);
    putDone(3);
    putDone(3);
    startPut(2, 3); HEX(1, 2); number(8, 4); say(0, 11);
    putDone(3);
    putDone(3);
    /* The first request is refused before it can put. The second one ends with its put. */
    initPut(2, 4);
    start(); number(4, 4); number(8, 1); number(2, 1); text("Put permission denied"); text("where"); say(1, 11);
    initPut(2, 5);
    answerInit(5); scalarType(0x60); say(1, 11);
    start(); number(2, 4); number(5, 4); number(0x10, 1); HEX(1, 2); text("bye"); say(0, 11);
    start(); number(5, 4); number(0x10, 1); number(1, 1); text("careful"); text(""); say(1, 11);
    startPut(2, 5); HEX(1, 2); text("ghost"); say(0, 11);
    /* A known request, with the number of another channel: pvxs writes to the channel of the request. */
    startPut(9, 3); HEX(1, 2); number(8, 4); say(0, 11);
    /* put-get */
    start(); number(2, 4); number(6, 4); number(8, 1); number(0xff, 1); say(0, 12);
    start(); number(6, 4); number(8, 1); number(0xff, 1); scalarType(0x22); scalarType(0x60); say(1, 12);
    start(); number(2, 4); number(6, 4); number(0x80, 1); say(0, 12);
    start(); number(2, 4); number(6, 4); number(0, 1); HEX(1, 2); number(77, 4); say(0, 12);
    start(); number(6, 4); number(0, 1); number(0xff, 1); HEX(1, 2); text("back"); say(1, 12);
    /* array */
    start(); number(2, 4); number(7, 4); number(8, 1); number(0xff, 1); say(0, 14);
    start(); number(7, 4); number(8, 1); HEX(0xff, 0x28); say(1, 14);
    start(); number(2, 4); number(7, 4); number(0, 1); HEX(0, 1, 2, 8, 9); say(0, 14);
    start(); number(7, 4); number(0, 1); number(0xff, 1); say(1, 14);
    start(); number(2, 4); number(7, 4); number(0x40, 1); HEX(0, 1, 1); say(0, 14);
    start(); number(2, 4); number(1, 4); say(0, 8);
    start(); number(2, 4); number(1, 4); say(1, 8);
    startPut(2, 3); HEX(1, 2); number(8, 4); say(0, 11);
    expect("channel r\nput 1 r : 5 = 5\nreply 1 r ok 0\nput 2 r : 6 = 6\nput 3 r : 7 = 7\nreply 0 r ok 0\n"
        "reply 0 r ok 0\nput 4 r : 8 = 8\nreply 4 r ok 0\nreply 0 r ok 0\n"
        "reply 0 r denied 2 Put permission denied\nput 5 r : bye\nreply 5 r ok 1 careful\nput 6 r : ? x0\n"
        "put 7 r : 8 = 8\nput 8 r : 77 = 77\nreply 8 r ok 0\nput 9 r : [2] 8 9 x2\nreply 9 r ok 0\ngone r\n"
        "put 10  : ? x0\n", "replies, put-get, arrays, last requests and destroyed channels are read");
}

static void say0(uint32_t sid, uint32_t ioid, int sub, int code, uint64_t value)
{
    start(); number(sid, 4); number(ioid, 4); number((unsigned)sub, 1); scalarType(code); number(value, 4); say(0, 20);
}

/* Calls (RPC): the arguments come with their description. */
static void testCalls(void)
{
    begin();
    channel(1, 2, "calls");
    start(); number(2, 4); number(9, 4); number(8, 1); number(0xff, 1); say(0, 20);
    start(); number(9, 4); number(8, 1); number(0xff, 1); say(1, 20);
    say0(2, 9, 0, 0x22, 7);
    start(); number(9, 4); number(0, 1); number(0xff, 1); number(0xff, 1); say(1, 20);
    say0(2, 9, 0x10, 0x22, 8);
    start(); number(9, 4); number(0, 1); number(2, 1); text("no"); text(""); say(1, 20);
    say0(2, 9, 0x10, 0x22, 9);
    start(); number(9, 4); number(0x10, 1); number(0xff, 1); scalarType(0x22); number(18, 4); say(1, 20);
    expect("channel calls\n"
        "call 1 calls : {\"value\": 7}\n"
        "reply 1 calls ok 0\n"
        "call 2 calls : {\"value\": 8}\n"
        "reply 2 calls failed 2 no\n"
        "call 3 calls : {\"value\": 9}\n"
        "reply 3 calls ok 0: {\"value\": 18}\n", "calls, their arguments and answers");
}

static void sayMonitor(uint32_t ioid, int sub, int takes)
{
    start(); number(2, 4); number(ioid, 4); number((unsigned)sub, 1);
    if (sub & 8) {
        HEX(0x80); text(""); number(1, 1); text("record"); HEX(0x80); text(""); number(1, 1); text("_options");
        HEX(0x80); text(""); number(1, 1); text("queueSize"); number(0x60, 1); text("2");
    }
    if (takes) {
        number((unsigned)takes, 4);
    }
    say(0, 13);
}

static void sayUpdate(uint32_t ioid, int overrun)
{
    start(); number(ioid, 4); number(0, 1); HEX(1, 2); number(5, 4);
    if (overrun) {
        HEX(1, 2);
    } else {
        HEX(0);
    }
    say(1, 13);
}

/* A monitor with a window of 2; one that the server refuses; one that the server ends; an update of an unknown one. */
static void testMonitors(void)
{
    begin();
    channel(1, 2, "m");
    sayMonitor(9, 0x88, 2);
    answerInit(9); scalarType(0x22); say(1, 13);
    sayMonitor(9, 0x44, 0);
    sayUpdate(9, 0);
    sayUpdate(9, 1);
    sayMonitor(9, 0x80, 2);
    sayMonitor(9, 0x04, 0);
    start(); number(2, 4); number(9, 4); say(0, 15);
    sayMonitor(10, 0x08, 0);
    start(); number(10, 4); number(8, 1); number(2, 1); text("no"); text(""); say(1, 13);
    sayMonitor(11, 0x08, 0);
    answerInit(11); scalarType(0x22); say(1, 13);
    start(); number(11, 4); number(0x10, 1); number(0xff, 1); say(1, 13);
    sayUpdate(12, 0);
    expect("channel m\n"
        "subscribe m record[queueSize=2] takes 2\n"
        "flow 9 m 1 0\n"
        "update 9 m\n"
        "update 9 m overrun\n"
        "flow 9 m 0 2\n"
        "flow 9 m 2 0\n"
        "flow 9 m 3 0\n"
        "subscribe m\n"
        "flow 10 m 3 0\n"
        "subscribe m\n"
        "flow 11 m 3 0\n"
        "update 12 \n", "monitors, their window, their merged values and their end");
}

MAIN(testPva)
{
    testPlan(0);
    testSpecification();
    testNumbers();
    testBits();
    testEnum();
    testReplies();
    testCalls();
    testMonitors();
    return testDone();
}

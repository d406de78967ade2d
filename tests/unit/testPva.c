/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pvAccess decoder on sessions that were recorded between real programs (clients: pvput, pvget, pvinfo of
 * EPICS Base 7.0.8.1, p4p 4.3; servers: softIocPVA, pvxs 1.5.3, p4p), on the examples of the protocol
 * specification, and on what no honest peer sends.
 */
#include <time.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "pvaDriver.h"

#define TEN(x)  x x x x x x x x x x
#define X509 TEN(TEN("xxxxx")) "xxxxxxxxx"
#define Y509 TEN(TEN("yyyyy")) "yyyyyyyyy"

static const struct { const char *name, *events; } sessions[] = {
    { "baseArray",
        "user root@ws1\n"
        "channel T:WD\n"
        "put 1 T:WD : [10] 1 2.5 -3e+100 4 5 6 7 8 ... x10\n"
        "reply 1 T:WD ok 0\n" },
    { "baseBlock",
        "user root@ws1\n"
        "channel T:LO\n"
        "put 1 T:LO record[process=true,block=true]field(value) process: 42 = 42\n"
        "reply 1 T:LO ok 0\n" },
    { "baseDatagrams",
        "search T:AO 270544961 10.0.0.1:51424\n"
        "found 270544961 127.0.0.1:30825 by 10.0.0.255:5076\n"
        "beacon 127.0.0.1:26988\n"
        "search T:LO 270544961 10.0.0.1:53402\n"
        "found 270544961 127.0.0.1:30825 by 10.0.0.255:5076\n"
        "search T:I64 270544961 10.0.0.1:33035\n" },
    { "baseDenied",
        "user root@ws1\n"
        "channel T:DENY\n"
        "put 1 T:DENY : 1 = 1\n"
        "reply 1 T:DENY denied 2 Put not permitted\n" },
    { "baseDisabled",
        "user root@ws1\n"
        "channel T:DISP\n"
        "put 1 T:DISP : 1 = 1\n"
        "reply 1 T:DISP failed 2 Put Disabled\n" },
    { "baseEnum",
        "user root@ws1\n"
        "channel T:MBBO\n"
        "put 1 T:MBBO : 2 (Very fast) = 2\n"
        "reply 1 T:MBBO ok 0\n" },
    { "baseGet",
        "user root@ws1\n"
        "channel T:AO\n"
        "channel T:MBBO\n" },
    { "baseGroup",
        "user root@ws1\n"
        "channel T:GRP\n"
        "put 1 T:GRP : {\"a\": {\"value\": 1.5}, \"b\": \"hello\"}\n"
        "reply 1 T:GRP ok 0\n" },
    { "baseInfo",
        "user root@ws1\n"
        "channel T:GRP\n" },
    { "baseLong",
        "user root@ws1\n"
        "channel T:LSO\n"
        "put 1 T:LSO : " X509 "...\n"
        "reply 1 T:LSO ok 0\n" },
    { "baseRefused",
        "user root@ws1\n"
        "channel P:FAIL\n" },
    { "baseRequest",
        "user root@ws1\n"
        "channel T:AO\n"
        "put 1 T:AO field(value,alarm{severity}): 7 = 7\n"
        "reply 1 T:AO ok 0\n" },
    { "baseScalar",
        "user root@ws1\n"
        "channel T:AO\n"
        "put 1 T:AO : 3.14 = 3.1400000000000001\n"
        "reply 1 T:AO ok 0\n" },
    { "baseStrings",
        "user root@ws1\n"
        "channel T:WS\n"
        "put 1 T:WS : [2] \"a\" \"b c\" x2\n"
        "reply 1 T:WS ok 0\n" },
    { "baseStruct",
        "user root@ws1\n"
        "channel P:X\n"
        "put 1 P:X : {\"value\": 3, \"inner\": {\"s\": \"q\"}}\n"
        "reply 1 P:X ok 0\n" },
    { "baseTable",
        "user root@ws1\n"
        "channel T:TAB\n"
        "put 1 T:TAB : {\"value\": {\"A\": [1, 2], \"B\": [\"p\", \"q\"]}}\n"
        "reply 1 T:TAB ok 0\n" },
    { "p4p",
        "user root@ws1\n"
        "channel P:D\n"
        "put 1 P:D field(): 1.25 = 1.25\n"
        "reply 1 P:D ok 0\n"
        "put 2 P:D field(): -0.1 = -0.10000000000000001\n"
        "reply 2 P:D ok 0\n"
        "put 3 P:D record[block=true,process=true]field() process: 5e-324 = 4.9406564584124654e-324\n"
        "reply 3 P:D ok 0\n"
        "channel P:S\n"
        "put 4 P:S field(): grüße \"x\"\n"
        "\n"
        "reply 4 P:S ok 0\n"
        "channel P:AI\n"
        "put 5 P:AI field(): [20] 0 1 2 3 4 5 6 7 ... x20\n"
        "reply 5 P:AI ok 0\n"
        "put 6 P:AI field(): [0] x0\n"
        "reply 6 P:AI ok 0\n"
        "channel P:E\n"
        "put 7 P:E field(): 1 (one) = 1\n"
        "reply 7 P:E ok 0\n"
        "put 8 P:E field(): 1 (one) = 1\n"
        "reply 8 P:E ok 0\n"
        "put 9 P:E field(): 1 = 1\n"
        "reply 9 P:E ok 0\n"
        "channel P:FAIL\n"
        "put 10 P:FAIL field(): 3 = 3\n"
        "reply 10 P:FAIL denied 2 Permission denied for root\n"
        "channel P:B\n"
        "put 11 P:B field(): true = 1\n"
        "reply 11 P:B ok 0\n"
        "channel P:F\n"
        "put 12 P:F field(): 0.1 = 0.10000000149011612\n"
        "reply 12 P:F ok 0\n"
        "channel P:RO\n"
        "put 13 P:RO field(): 2 = 2\n"
        "reply 13 P:RO failed 2 Put not supported\n"
        "channel P:T\n"
        "channel P:IMG\n"
        "put 14 P:IMG field(): {\"value\": [0, 1, 2, 3, 4, 5, 6, 7, \"... 12\"], \"compressedSize\": 24, \"un"
        "compressedSize\": 24, \"uniqueId\": 0, \"dimension\": [{\"size\": 4, \"offset\": 0, \"fullSize\": 4,"
        " \"binning\": 1, \"reverse\": false}, {\"size\": 3, \"offset\": 0, \"fullSize\": 3, \"binning\": 1, "
        "\"reverse\": false}], \"attribute\": [{\"name\": \"ColorMode\", \"value\": 0, \"tags\": [], \"descri"
        "ptor\": \"\", \"alarm\": {\"severity\": 0, \"status\": 0, \"message\": \"\"}, \"timeStamp\": {\"seco"
        "ndsPastEpoch\": 0, \"nanoseconds\": 0, \"userTag\": 0}, \"sourceType\": 0, \"source\": \"\"}]}\n"
        "reply 14 P:IMG ok 0\n"
        "channel P:X\n"
        "put 15 P:X field(): 2.5 = 2.5\n"
        "reply 15 P:X ok 0\n"
        "put 16 P:X field(): {\"inner\": {\"a\": -3, \"b\": true, \"s\": \"a\\\"b\", \"l\": -9223372036854775"
        "808, \"ul\": 18446744073709551615, \"sarr\": [\"x\", \"y\"]}}\n"
        "reply 16 P:X ok 0\n"
        "put 17 P:X field(): {\"u\": \"in union\"}\n"
        "reply 17 P:X ok 0\n"
        "put 18 P:X field(): {\"u\": {\"x\": 1.5}}\n"
        "reply 18 P:X ok 0\n"
        "put 19 P:X field(): {\"any\": {\"q\": 7}}\n"
        "reply 19 P:X ok 0\n"
        "put 20 P:X field(): {\"value\": 1, \"any\": 3.5}\n"
        "reply 20 P:X ok 0\n"
        "put 21 P:X field(): {\"st\": [{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": 4}]}\n"
        "reply 21 P:X ok 0\n"
        "put 22 P:X field(): {\"anys\": [1, \"two\"]}\n"
        "reply 22 P:X ok 0\n"
        "put 23 P:X field(): {\"inner\": {\"arr\": [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, \"... 30\"]}}\n"
        "reply 23 P:X ok 0\n"
        "put 24 P:X field(): 9 = 9\n"
        "reply 24 P:X ok 0\n"
        "put 25 P:D field(): nan = nan\n"
        "reply 25 P:D ok 0\n"
        "put 26 P:D field(): 1e+22 = 1e+22\n"
        "reply 26 P:D ok 0\n" },
    { "pvxs",
        "user root@ws1\n"
        "channel T:AO\n"
        "put 1 T:AO field(): 3.14 = 3.1400000000000001\n"
        "reply 1 T:AO ok 0\n"
        "channel T:LO\n"
        "put 2 T:LO record[block=true,process=true]field() process: 42 = 42\n"
        "reply 2 T:LO ok 0\n"
        "channel T:MBBO\n"
        "put 3 T:MBBO field(): 2 (Very fast) = 2\n"
        "reply 3 T:MBBO ok 0\n"
        "put 4 T:MBBO field(): 1 (Fast) = 1\n"
        "reply 4 T:MBBO ok 0\n"
        "channel T:SO\n"
        "put 5 T:SO field(): hi\n"
        "reply 5 T:SO ok 0\n"
        "channel T:LSO\n"
        "put 6 T:LSO field(): " Y509 "...\n"
        "reply 6 T:LSO ok 0\n"
        "channel T:WD\n"
        "put 7 T:WD field(): [1000] 0 1.5 3 4.5 6 7.5 9 10.5 ... x1000\n"
        "reply 7 T:WD ok 0\n"
        "channel T:DENY\n"
        "put 8 T:DENY field(): 1 = 1\n"
        "reply 8 T:DENY denied 2 Put not permitted\n"
        "channel T:DISP\n"
        "put 9 T:DISP field(): 1 = 1\n"
        "reply 9 T:DISP failed 2 Unable to put value: Field Disabled: S_db_putDisabled\n"
        "channel T:WC\n"
        "put 10 T:WC field(): [3] 1 2 3 x3\n"
        "reply 10 T:WC ok 0\n"
        "channel T:GRP\n"
        "put 11 T:GRP field(): {\"a\": {\"value\": 2.5}, \"b\": \"gb\"}\n"
        "reply 11 T:GRP ok 0\n"
        "put 12 T:AO record[block=false,process=false]field(): 1 = 1\n"
        "reply 12 T:AO ok 0\n"
        "channel T:I64\n"
        "put 13 T:I64 field(): 4611686018427387904 = 4.6116860184273879e+18\n"
        "reply 13 T:I64 ok 0\n" },
    { "pvxsDatagrams",
        "search T:AO 305419896 10.0.0.1:35907\n"
        "found 305419896 10.0.0.1:38630 by 10.0.0.255:5076\n"
        "found 305419896 10.0.0.1:38630 by 10.0.0.255:5076\n"
        "search T:LO 305419897 10.0.0.1:35907\n"
        "found 305419897 10.0.0.1:38630 by 10.0.0.255:5076\n"
        "found 305419897 10.0.0.1:38630 by 10.0.0.255:5076\n" },
    { "qsrv",
        "user root@ws1\n"
        "channel T:AO\n"
        "put 1 T:AO field(): 3.14 = 3.1400000000000001\n"
        "reply 1 T:AO ok 0\n"
        "channel T:LO\n"
        "put 2 T:LO record[block=true,process=true]field() process: 42 = 42\n"
        "reply 2 T:LO ok 0\n"
        "channel T:MBBO\n"
        "put 3 T:MBBO field(): 2 (Very fast) = 2\n"
        "reply 3 T:MBBO ok 0\n"
        "put 4 T:MBBO field(): 1 (Fast) = 1\n"
        "reply 4 T:MBBO ok 0\n"
        "channel T:SO\n"
        "put 5 T:SO field(): hi\n"
        "reply 5 T:SO ok 0\n"
        "channel T:LSO\n"
        "put 6 T:LSO field(): " Y509 "...\n"
        "reply 6 T:LSO ok 0\n"
        "channel T:WD\n"
        "put 7 T:WD field(): [1000] 0 1.5 3 4.5 6 7.5 9 10.5 ... x1000\n"
        "reply 7 T:WD ok 0\n"
        "channel T:DENY\n"
        "put 8 T:DENY field(): 1 = 1\n"
        "reply 8 T:DENY denied 2 Put not permitted\n"
        "channel T:DISP\n"
        "put 9 T:DISP field(): 1 = 1\n"
        "reply 9 T:DISP failed 2 Put Disabled\n"
        "channel T:WC\n"
        "put 10 T:WC field(): [3] 1 2 3 x3\n"
        "reply 10 T:WC ok 0\n"
        "channel T:GRP\n"
        "put 11 T:GRP field(): {\"a\": {\"value\": 2.5}, \"b\": \"gb\"}\n"
        "reply 11 T:GRP ok 0\n"
        "put 12 T:AO record[block=false,process=false]field(): 1 = 1\n"
        "reply 12 T:AO ok 0\n"
        "channel T:I64\n"
        "put 13 T:I64 field(): 4611686018427387904 = 4.6116860184273879e+18\n"
        "reply 13 T:I64 ok 0\n" },
};
#define SESSIONS (sizeof(sessions) / sizeof(sessions[0]))

static struct { uint8_t *p; size_t size; } recorded[SESSIONS];

static void load(unsigned i)
{
    static const char *const where[] = { "../../fuzz/corpus/pva", "../fuzz/corpus/pva", "tests/fuzz/corpus/pva" };
    char path[200];
    unsigned k;

    for (k = 0; k < 3; k++) {
        snprintf(path, sizeof(path), "%s/%s.pva", where[k], sessions[i].name);
        FILE *f = fopen(path, "rb");
        if (f) {
            recorded[i].p = malloc(65536);
            recorded[i].size = fread(recorded[i].p, 1, 65536, f);
            fclose(f);
            return;
        }
    }
    testAbort("%s: no such recording", sessions[i].name);
}

static unsigned session(const char *name)
{
    unsigned i;

    for (i = 0; i < SESSIONS; i++) {
        if (!strcmp(sessions[i].name, name)) {
            return i;
        }
    }
    testAbort("%s is not in the list", name);
    return 0;
}

static struct ebpfMonCircuit circuit;
static char *lines;
static size_t linesSize;

static void begin(void)
{
    driverOpen(&circuit, open_memstream(&lines, &linesSize));
}

/* Compares all events since begin(). */
static void expect(const char *events, const char *what)
{
    fclose(circuit.lines);
    driverClose(&circuit);
    int clean = !circuit.stats.memory && !circuit.stats.channels;
    if (!testOk(clean && !strcmp(lines, events), "%s", what)) {
        testDiag("memory %zu, channels %u", circuit.stats.memory, circuit.stats.channels);
        testDiag("expected:\n%s", events);
        testDiag("got:\n%s", lines);
    }
    free(lines);
}

/* ------------------------------------------------------------------ messages by hand */

static struct { uint8_t p[300000]; size_t size; int big; } made;

static void number(uint64_t value, unsigned size)
{
    unsigned i;

    for (i = 0; i < size; i++) {
        made.p[made.size++] = value >> 8 * (made.big ? size - 1 - i : i);
    }
}

static void bytes(const void *p, size_t size)
{
    memcpy(made.p + made.size, p, size);
    made.size += size;
}

static void text(const char *t)
{
    number(strlen(t), 1);
    bytes(t, strlen(t));
}

#define HEX(...) bytes((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void start(void)
{
    made.size = 8;
}

static void header(uint8_t *p, int cmd, unsigned flags, size_t size)
{
    size_t at = made.size;

    made.size = p - made.p;
    HEX(0xca, 2, flags | (made.big ? 0x80 : 0), cmd);
    number(size, 4);
    made.size = at;
}

static void say(int fromServer, int cmd)
{
    header(made.p, cmd, fromServer ? 0x40 : 0, made.size - 8);
    driverBytes(&circuit, fromServer, made.p, made.size);
}

static void channel(uint32_t cid, uint32_t sid, const char *name)
{
    start(); number(1, 2); number(cid, 4); text(name); say(0, 7);
    start(); number(cid, 4); number(sid, 4); number(0xff, 1); say(1, 7);
}

/* Asks for a put without a pvRequest. */
static void initPut(uint32_t sid, uint32_t ioid)
{
    start(); number(sid, 4); number(ioid, 4); number(8, 1); number(0xff, 1); say(0, 11);
}

/* The type of the answer follows, and say(1, 11). */
static void answerInit(uint32_t ioid)
{
    start(); number(ioid, 4); number(8, 1); number(0xff, 1);
}

static void startPut(uint32_t sid, uint32_t ioid)
{
    start(); number(sid, 4); number(ioid, 4); number(0, 1);
}

static void putDone(uint32_t ioid)
{
    start(); number(ioid, 4); number(0, 1); number(0xff, 1); say(1, 11);
}

static void scalarType(int code)
{
    HEX(0x80); text(""); number(1, 1); text("value"); number(code, 1);
}

/* ------------------------------------------------------------------ */

static void testSessions(void)
{
    unsigned i, k;

    for (i = 0; i < SESSIONS; i++) {
        begin();
        driverPlay(&circuit, recorded[i].p, recorded[i].size);
        int bad = circuit.foreign + circuit.stats.malformed + circuit.stats.noMemory;
        expect(sessions[i].events, sessions[i].name);
        testOk(!bad, "… nothing in it is odd");
    }
    /* Bytes one by one. */
    for (k = 0; k < 2; k++) {
        i = session(k ? "qsrv" : "p4p");
        begin();
        const uint8_t *p = recorded[i].p;
        while (p < recorded[i].p + recorded[i].size) {
            size_t length = p[1] | p[2] << 8, at;

            for (at = 0; at < length; at++) {
                driverBytes(&circuit, p[0] & 1, p + 3 + at, 1);
            }
            p += 3 + length;
        }
        expect(sessions[i].events, k ? "qsrv, byte by byte" : "p4p, byte by byte");
    }
}

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
        "put 2 spec : {\"nanoseconds\": 9}\n", "the specification's examples, big-endian");
}

static void putScalar(uint32_t ioid, int code, uint64_t bits, unsigned size)
{
    initPut(2, ioid);
    answerInit(ioid); scalarType(code); say(1, 11);
    startPut(2, ioid); HEX(1, 2); number(bits, size); say(0, 11);
    putDone(ioid);
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
        expect(events, big ? "numbers, big-endian" : "numbers, little-endian");
    }
    made.big = 0;
}

/* A BitSet of more than eight bytes: what is a number, and what single bytes, is told by its length. */
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
            big ? "long BitSet, big-endian" : "long BitSet, little-endian");
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
    /* The server tells the choices: get of the same request. */
    start(); number(3, 4); number(0x40, 1); HEX(0xff, 1, 2); number(0, 4); number(2, 1); text("nay"); text("aye");
    say(1, 11);
    startPut(2, 3); HEX(1, 4); number(1, 4); say(0, 11);
    startPut(2, 3); HEX(1, 4); number(2, 4); say(0, 11);
    expect("channel e\nput 1 e : 1 = 1\nput 2 e : 1 (on) = 1\n"
        "put 3 e : {\"value\": {\"choices\": [\"only\"]}}\nput 4 e : {\"value\": {\"index\": 1}, \"other\": 7}\n"
        "put 5 e : 1 (aye) = 1\nput 6 e : 2 = 2\n", "enumerations");
}

/* Replies go to their own put, or to none. */
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
    /* The first refused before it could put, the second ends with its put. */
    initPut(2, 4);
    start(); number(4, 4); number(8, 1); number(2, 1); text("Put permission denied"); text("where"); say(1, 11);
    initPut(2, 5);
    answerInit(5); scalarType(0x60); say(1, 11);
    start(); number(2, 4); number(5, 4); number(0x10, 1); HEX(1, 2); text("bye"); say(0, 11);
    start(); number(5, 4); number(0x10, 1); number(1, 1); text("careful"); text(""); say(1, 11);
    startPut(2, 5); HEX(1, 2); text("ghost"); say(0, 11);
    /* Of another channel: not the request we know. */
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
        "put 7  : ? x0\nput 8 r : 77 = 77\nreply 8 r ok 0\nput 9 r : [2] 8 9 x2\nreply 9 r ok 0\ngone r\n"
        "put 10  : ? x0\n", "replies, put-get, array, last requests, destroyed channels");
}

/* A number for a type is not believed when its meaning may have changed unseen. */
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
    /* A structure with an unknown part: nobody knows which bit is which from there on. */
    initPut(2, 6);
    answerInit(6); HEX(0x80); text(""); number(3, 1); text("value"); HEX(0x60); text("a"); HEX(0xfe, 5, 0); text("b");
    HEX(0xfd, 6, 0); scalarType(0x60); say(1, 11);
    startPut(2, 6); HEX(1, 8); text("what"); say(0, 11);
    startPut(2, 6); HEX(1, 4); text("what"); say(0, 11);
    startPut(2, 6); HEX(1, 1); text("what"); text("else"); say(0, 11);
    startPut(2, 6); HEX(2, 2, 1); text("what"); text("else"); say(0, 11);
    startPut(2, 6); HEX(1, 2); text("before"); say(0, 11);
    /* … but what it describes on the way counts. */
    initPut(2, 7);
    answerInit(7); HEX(0xfe, 6, 0); say(1, 11);
    startPut(2, 7); HEX(1, 2); text("six"); say(0, 11);
    /* A new meaning. */
    initPut(2, 8);
    answerInit(8); HEX(0xfd, 6, 0); scalarType(0x20); say(1, 11);
    initPut(2, 9);
    answerInit(9); HEX(0xfe, 6, 0); say(1, 11);
    startPut(2, 9); HEX(1, 2, 0x41); say(0, 11);
    /* One that is in a value that the server sends: any. */
    start(); number(2, 4); number(10, 4); number(8, 1); number(0xff, 1); say(0, 13);
    start(); number(10, 4); number(8, 1); number(0xff, 1); scalarType(0x82); say(1, 13);
    start(); number(10, 4); number(0, 1); HEX(1, 2, 0xfd, 6, 0); scalarType(0x60); text("x"); HEX(0); say(1, 13);
    initPut(2, 11);
    answerInit(11); HEX(0xfe, 6, 0); say(1, 11);
    startPut(2, 11); HEX(1, 2); text("new"); say(0, 11);
    expect("channel g\nput 1 g : 1 = 1\nreply 0 g ok 0\nput 2 g : ? x0\nput 3 g : 3 = 3\nput 4 g : ? x0\n"
        "put 5 g : ? x0\nput 6 g : ? x0\nput 7 g : ? x0\nput 8 g : before\nput 9 g : six\nput 10 g : 65 = 65\n"
        "put 11 g : new\n", "gaps and types known by number");

    /* Met in the middle. */
    begin();
    startPut(2, 4); HEX(1, 2); number(1, 4); say(0, 11);
    putDone(4);
    ebpfMonPvaProtocol.name(circuit.state, 2, "later");
    startPut(2, 4); HEX(1, 2); number(1, 4); say(0, 11);
    putDone(4);
    putScalar(5, 0x22, 9, 4);
    start(); number(2, 4); number(1, 4); say(0, 8);
    expect("put 1  : ? x0\nreply 1  ok 0\nput 2 later : ? x0\nreply 2 later ok 0\nput 3 later : 9 = 9\n"
        "reply 3 later ok 0\ngone later\n", "a connection met in the middle");
}

/* A message in pieces says what it says in one; with a control message between them. */
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
    testOk(hash == driverHash(whole + 8 + 9 + 2, size - 8 - 9 - 2), "the hash is of the value's bytes");
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
        testOk(circuit.lastHash == hash, "… in pieces too");
    }
    /* A hole between pieces. */
    made.size = 0;
    bytes(whole, 1000);
    header(made.p, 11, 0x10, 992);
    driverBytes(&circuit, 0, made.p, 1000);
    ebpfMonPvaProtocol.gap(circuit.state, 0);
    header(made.p, 11, 0x20, 992);
    driverBytes(&circuit, 0, made.p, 1000);
    expect("channel p\nput 1 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\nput 2 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\n"
        "put 3 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\nput 4 p : [5000] 0 1 2 3 4 5 6 7 ... x5000\n",
        "messages in pieces");
}

/* Longer than what is kept. */
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
    testOk(circuit.lastHash == driverHash(made.p + 19, made.size - 19), "hash of a value that is not kept whole");
    startPut(2, 4); HEX(1, 2, 254); number(1000, 4);
    for (i = 0; i < 1000; i++) {
        number(200, 1);
        memset(made.p + made.size, 'a' + i % 26, 200);
        made.size += 200;
    }
    circuit.limits.keep = 300;
    say(0, 11);
    testOk(!circuit.stats.malformed, "… is not malformed");
    char events[1000];
    sprintf(events, "channel k\nput 1 k : [100000] 0 1 2 3 4 5 6 7 ... x100000\n"
        "put 2 k : [1000] \"%.200s\" ... x1000\n",
        TEN(TEN("aa")));
    expect(events, "values longer than what is kept");
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
    testOk(ebpfMonPvaProtocol.frame(NULL, 1, made.p, 8, &frame) == 1 && frame.total == 8, "set byte order");
    made.p[3] = 9; odd("unknown control message", 1, 8);
}

/* Much of everything. */
static void testLimits(void)
{
    unsigned i;

    begin();
    circuit.limits.channels = 10;
    for (i = 0; i < 20; i++) {
        start(); number(1, 2); number(i, 4); text("c"); say(0, 7);
    }
    testOk(circuit.stats.channels == 10 && circuit.stats.noMemory == 10, "channels: %u", circuit.stats.channels);
    for (i = 0; i < 20; i++) {
        initPut(1, i);
    }
    testOk1(circuit.stats.noMemory > 10);
    expect("", "no more channels and requests than allowed");

    /* Types in types, and types of more than there may be. */
    begin();
    channel(1, 2, "t");
    initPut(2, 3);
    answerInit(3);
    for (i = 0; i < 1000; i++) {
        HEX(0x80, 0, 1, 0);
    }
    HEX(0x20); say(1, 11);
    testOk(circuit.stats.malformed == 1, "depth");
    startPut(2, 3); HEX(1, 1, 1); say(0, 11);
    initPut(2, 4);
    answerInit(4); HEX(0x80, 0, 254); number(5000, 4);
    for (i = 0; i < 5000; i++) {
        HEX(0, 0x20);
    }
    say(1, 11);
    testOk(circuit.stats.noMemory == 1, "fields");
    startPut(2, 4); HEX(1, 1, 1); say(0, 11);
    for (i = 0; i < 3000; i++) {
        answerInit(5); HEX(0xfd); number(i, 2); scalarType(0x20); say(1, 11);
    }
    testOk(circuit.stats.memory < 1 << 20, "cached types: %zu bytes", circuit.stats.memory);
    /* Counts that cannot be. */
    initPut(2, 6);
    answerInit(6); scalarType(0x2b); say(1, 11);
    startPut(2, 6); HEX(1, 2, 254); number(0x7ffffffe, 4); say(0, 11);
    startPut(2, 6); HEX(1, 2, 254); number(0xffffffff, 4); say(0, 11);
    startPut(2, 6); HEX(254); number(0x7fffffff, 4); number(-1, 8); say(0, 11);
    startPut(2, 6); HEX(1, 2); say(0, 11);
    testOk(circuit.stats.malformed == 5, "malformed: %u", (unsigned)circuit.stats.malformed);
    expect("channel t\nput 1 t : ? x0\nput 2 t : ? x0\nput 3 t : ? x0\nput 4 t : ? x0\nput 5 t : ? x0\n"
        "put 6 t : ? x0\n", "what cannot be is \"?\"");

    /* A few bytes that stand for very much: structures of nothing. */
    begin();
    channel(1, 2, "w");
    initPut(2, 3);
    answerInit(3); HEX(0x80, 0, 1); text("value"); HEX(0x88, 0x80, 0, 254); number(2000, 4);
    for (i = 0; i < 2000; i++) {
        HEX(0, 0x80, 0, 0);
    }
    say(1, 11);
    startPut(2, 3); HEX(1, 2, 254); number(50000, 4);
    memset(made.p + made.size, 1, 50000);
    made.size += 50000;
    clock_t before = clock();
    for (i = 0; i < 100; i++) {
        say(0, 11);
    }
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    testOk(circuit.puts == 100 && seconds < 20, "structures of nothing: 100 puts in %.3f s", seconds);
    fclose(circuit.lines);
    driverClose(&circuit);
    free(lines);
}

/* Cut short anywhere, and with bytes changed: whatever comes of it, nothing is read outside and all is given back. */
static void testBroken(void)
{
    uint64_t random = 88172645463325252u;
    unsigned i, k, n, leaks = 0;
    unsigned long events = 0;

    for (i = 0; i < SESSIONS; i++) {
        for (k = 0; k < 300; k++) {
            size_t size = recorded[i].size;
            uint8_t *copy = malloc(size);

            memcpy(copy, recorded[i].p, size);
            for (n = 0; n < k % 8; n++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                copy[random % size] ^= k % 3 ? 1u << (random >> 40 & 7) : (unsigned)(random >> 32);
            }
            driverOpen(&circuit, NULL);
            driverPlay(&circuit, copy, k % 8 ? size : size * k / 300);
            driverClose(&circuit);
            leaks += circuit.stats.memory || circuit.stats.channels;
            events += circuit.events;
            free(copy);
        }
    }
    testOk(!leaks, "broken recordings: %lu events", events);
}

MAIN(testPva)
{
    unsigned i;

    testPlan(0);
    for (i = 0; i < SESSIONS; i++) {
        load(i);
    }
    testSessions();
    testSpecification();
    testNumbers();
    testBits();
    testEnum();
    testReplies();
    testGaps();
    testPieces();
    testKept();
    testFrame();
    testLimits();
    testBroken();
    for (i = 0; i < SESSIONS; i++) {
        free(recorded[i].p);
    }
    return testDone();
}

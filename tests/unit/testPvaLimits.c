/* SPDX-License-Identifier: BSD-3-Clause */
/* The pvAccess decoder with very many channels, types, counts and empty structures. */
#include <time.h>

#include "pvaTest.h"
#include "wire/pvaType.h"

static void testChannels(void)
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
    expect("", "no more channels and requests are kept than allowed");
}

static void testTypes(void)
{
    unsigned i;

    /* Types in types, and types above the limits. */
    begin();
    channel(1, 2, "t");
    initPut(2, 3);
    answerInit(3);
    for (i = 0; i < 1000; i++) {
        HEX(0x80, 0, 1, 0);
    }
    HEX(0x20); say(1, 11);
    testOk(circuit.stats.malformed == 1, "a type that is nested too deep is malformed");
    startPut(2, 3); HEX(1, 1, 1); say(0, 11);
    initPut(2, 4);
    answerInit(4); HEX(0x80, 0, 254); number(5000, 4);
    for (i = 0; i < 5000; i++) {
        HEX(0, 0x20);
    }
    say(1, 11);
    testOk(circuit.stats.noMemory == 1, "a type with too many fields gets no memory");
    startPut(2, 4); HEX(1, 1, 1); say(0, 11);
    for (i = 0; i < 3000; i++) {
        answerInit(5); HEX(0xfd); number(i, 2); scalarType(0x20); say(1, 11);
    }
    testOk(circuit.stats.memory < 1 << 20, "cached types stay below 1 MiB: %zu bytes", circuit.stats.memory);
    /* Impossible counts. */
    initPut(2, 6);
    answerInit(6); scalarType(0x2b); say(1, 11);
    startPut(2, 6); HEX(1, 2, 254); number(0x7ffffffe, 4); say(0, 11);
    startPut(2, 6); HEX(1, 2, 254); number(0xffffffff, 4); say(0, 11);
    startPut(2, 6); HEX(254); number(0x7fffffff, 4); number(-1, 8); say(0, 11);
    startPut(2, 6); HEX(1, 2); say(0, 11);
    testOk(circuit.stats.malformed == 5, "each of five impossible messages is malformed: %u",
           (unsigned)circuit.stats.malformed);
    expect("channel t\nput 1 t : ? x0\nput 2 t : ? x0\nput 3 t : ? x0\nput 4 t : ? x0\nput 5 t : ? x0\n"
        "put 6 t : ? x0\n", "what cannot be is \"?\"");
}

static void describeNested(unsigned id)
{
    answerInit(3); HEX(0xfd); number(id, 2); HEX(0x80, 0, 1, 1, 'm', 0xfe); number(id - 1, 2); say(1, 11);
}

/* Each type has the one before it as its member, by its number. */
static void testNestedByNumber(void)
{
    unsigned i;

    begin();
    channel(1, 2, "t");
    initPut(2, 3);
    answerInit(3); HEX(0xfd); number(0, 2); scalarType(0x20); say(1, 11);
    for (i = 1; i < PVA_DEPTH - 1; i++) {
        describeNested(i);
    }
    testOk(circuit.stats.malformed == 0, "types in types, as deep as is allowed");
    startPut(2, 3); HEX(1, 1, 7, 0, 0, 0); say(0, 11);
    describeNested(i);
    testOk(circuit.stats.malformed == 1, "one level more is malformed");
    expect("channel t\nput 1 t : " TEN("{\"m\": ") "{\"m\": {\"m\": {\"m\": {\"m\": {\"value\": 7}" TEN("}") "}}}}\n",
           "a value below all these names");
}

/* An update of "value", an array of so many bytes, and of an attribute of any type. */
static void update(unsigned size)
{
    start(); number(4, 4); HEX(0, 1, 1, 254); number(size, 4);
    memset(made.p + made.size, 1, size);
    made.size += size;
    HEX(0xfd); number(9, 2); HEX(0x20, 7, 0); say(1, 13);
}

static void putNumbered(unsigned ioid)
{
    initPut(2, ioid);
    answerInit(ioid); HEX(0xfe); number(1, 2); say(1, 11);
    startPut(2, ioid); HEX(1, 1, ioid); say(0, 11);
}

/* What is behind the first 64 KB of an image is not kept; it may describe types. */
static void testLongValues(void)
{
    begin();
    channel(1, 2, "i");
    initPut(2, 3);
    answerInit(3); HEX(0xfd); number(1, 2); scalarType(0x20); say(1, 11);
    start(); number(2, 4); number(4, 4); HEX(8, 0xff); say(0, 13);
    start(); number(4, 4); HEX(8, 0xff, 0x80, 0, 2); text("value"); HEX(0x2c); text("any"); HEX(0x82); say(1, 13);
    update(10);
    putNumbered(5);
    update(100000);
    putNumbered(6);
    initPut(2, 7);
    answerInit(7); HEX(0xfe); number(9, 2); say(1, 11);
    startPut(2, 7); HEX(1, 1, 7); say(0, 11);
    update(10);
    update(100000);
    putNumbered(8);
    expect("channel i\nsubscribe i\nupdate 4 i\nput 1 i : 5 = 5\nupdate 4 i cut\nput 2 i : 6 = 6\nput 3 i : 7 = 7\n"
           "update 4 i\nupdate 4 i cut\nput 4 i : ? x0\n",
           "an image that is longer than what is kept; a server that describes a number again");
}

static void testEmptyStructures(void)
{
    unsigned i;

    /* A few bytes that describe very much: empty structures. */
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
    testOk(circuit.puts == 100 && seconds < 20, "structures without bytes cost little: 100 puts in %.3f s", seconds);
    fclose(circuit.lines);
    driverClose(&circuit);
    free(lines);
}

MAIN(testPvaLimits)
{
    testPlan(0);
    testChannels();
    testTypes();
    testNestedByNumber();
    testLongValues();
    testEmptyStructures();
    return testDone();
}

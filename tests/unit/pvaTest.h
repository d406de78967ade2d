/* SPDX-License-Identifier: BSD-3-Clause */
/* pvAccess messages made by hand, and the events that the decoder makes from them. */
#ifndef EBPFMON_PVATEST_H
#define EBPFMON_PVATEST_H

#include <epicsUnitTest.h>
#include <testMain.h>
#include "pvaDriver.h"

#define TEN(x) x x x x x x x x x x
#define X509 TEN(TEN("xxxxx")) "xxxxxxxxx"
#define Y509 TEN(TEN("yyyyy")) "yyyyyyyyy"

static struct ebpfMonCircuit circuit;
static char *lines;
static size_t linesSize;

static inline void begin(void)
{
    driverOpen(&circuit, open_memstream(&lines, &linesSize));
}

/* Compares all events since begin(). */
static inline void expect(const char *events, const char *what)
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

/* The message that the test is making. */
static struct { uint8_t p[300000]; size_t size; int big; } made;

static inline void number(uint64_t value, unsigned size)
{
    unsigned i;

    for (i = 0; i < size; i++) {
        made.p[made.size++] = value >> 8 * (made.big ? size - 1 - i : i);
    }
}

static inline void bytes(const void *p, size_t size)
{
    memcpy(made.p + made.size, p, size);
    made.size += size;
}

static inline void text(const char *t)
{
    number(strlen(t), 1);
    bytes(t, strlen(t));
}

#define HEX(...) bytes((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static inline void start(void)
{
    made.size = 8;
}

static inline void header(uint8_t *p, int cmd, unsigned flags, size_t size)
{
    size_t at = made.size;

    made.size = p - made.p;
    HEX(0xca, 2, flags | (made.big ? 0x80 : 0), cmd);
    number(size, 4);
    made.size = at;
}

static inline void say(int fromServer, int cmd)
{
    header(made.p, cmd, fromServer ? 0x40 : 0, made.size - 8);
    driverBytes(&circuit, fromServer, made.p, made.size);
}

static inline void channel(uint32_t cid, uint32_t sid, const char *name)
{
    start(); number(1, 2); number(cid, 4); text(name); say(0, 7);
    start(); number(cid, 4); number(sid, 4); number(0xff, 1); say(1, 7);
}

/* Sends the init of a put, without a pvRequest. */
static inline void initPut(uint32_t sid, uint32_t ioid)
{
    start(); number(sid, 4); number(ioid, 4); number(8, 1); number(0xff, 1); say(0, 11);
}

/* Begins the answer to an init. The caller adds the type, and say(1, 11). */
static inline void answerInit(uint32_t ioid)
{
    start(); number(ioid, 4); number(8, 1); number(0xff, 1);
}

static inline void startPut(uint32_t sid, uint32_t ioid)
{
    start(); number(sid, 4); number(ioid, 4); number(0, 1);
}

static inline void putDone(uint32_t ioid)
{
    start(); number(ioid, 4); number(0, 1); number(0xff, 1); say(1, 11);
}

static inline void scalarType(int code)
{
    HEX(0x80); text(""); number(1, 1); text("value"); number(code, 1);
}

static inline void putScalar(uint32_t ioid, int code, uint64_t bits, unsigned size)
{
    initPut(2, ioid);
    answerInit(ioid); scalarType(code); say(1, 11);
    startPut(2, ioid); HEX(1, 2); number(bits, size); say(0, 11);
    putDone(ioid);
}

#endif

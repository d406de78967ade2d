/* SPDX-License-Identifier: BSD-3-Clause */
/* Two monitors compute the same ids for the same message, independently. The ids must never change. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traceSpans.h"

#define ALL 3000

typedef struct {
    const char *addr, *saddr;
    uint16_t port, sport;
    uint32_t seq;
    const char *trace, *span;
} known;

/* Other monitors, and later versions, must compute the same ids. */
static const known vector[] = {
    { "127.0.0.1", "127.0.0.1", 40000, 5064, 0,
      "8a2f81c08f1dc1c4d79a1f5a040ddc63", "5f289ae07fc0d2a0" },
    { "10.0.0.1", "10.100.0.2", 51234, 5064, 0x12345678,
      "be116d7610a83108c6670e2b7a985b20", "39ea91ea6d5298f9" },
    { "192.168.1.255", "255.255.255.255", 65535, 65535, 0xffffffff,
      "9b2c71bd9c05c94262442f797885d492", "7d58c6b0b1fb86e0" },
    { "0.0.0.0", "0.0.0.0", 0, 0, 0,
      "0a385ef24fa6a9928e8a2a8c0064269b", "beb1411bfb12a3d5" },
};

static void hex(const uint8_t *id, size_t size, char *buf)
{
    for (size_t i = 0; i < size; i++)
        sprintf(buf + 2 * i, "%02x", id[i]);
}

static int isZero(const uint8_t *id, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (id[i])
            return 0;
    return 1;
}

static void knownOnes(void)
{
    for (size_t i = 0; i < sizeof(vector) / sizeof(vector[0]); i++) {
        const known *k = &vector[i];
        struct ebpfMonPeer peer = { .addr = inet_addr(k->addr), .port = htons(k->port), .saddr = inet_addr(k->saddr),
                                    .sport = htons(k->sport), .netns = (uint32_t)i };
        uint8_t trace[16], span[8];
        char text[33];

        ebpfMonMessageGetTraceId(&peer, k->seq, trace);
        ebpfMonMessageGetSpanId(&peer, k->seq, span);
        hex(trace, sizeof(trace), text);
        testOk(strcmp(text, k->trace) == 0, "trace of %s:%u is %s", k->addr, k->port, text);
        hex(span, sizeof(span), text);
        testOk(strcmp(text, k->span) == 0, "span of %s:%u is %s", k->addr, k->port, text);
    }
}

/* Each bit of a message's key changes the ids. */
static void bits(void)
{
    static uint8_t trace[130][16], span[130][8];
    unsigned n = 0, same = 0, zero = 0;

    for (int bit = -1; bit < 128; bit++, n++) {
        struct ebpfMonPeer peer;
        uint32_t w[4] = { 0x0100007f, 0x0200000a, 0x13c89c40, 77 };

        if (bit >= 0)
            w[bit / 32] ^= 1u << bit % 32;
        peer = (struct ebpfMonPeer){
            .addr = w[0], .saddr = w[1], .port = (uint16_t)w[2], .sport = (uint16_t)(w[2] >> 16)};
        ebpfMonMessageGetTraceId(&peer, w[3], trace[n]);
        ebpfMonMessageGetSpanId(&peer, w[3], span[n]);
        zero += (unsigned)(isZero(trace[n], 16) || isZero(span[n], 8));
        for (unsigned i = 0; i < n; i++)
            same += (unsigned)(memcmp(trace[i], trace[n], 16) == 0 || memcmp(span[i], span[n], 8) == 0);
        same += (unsigned)(memcmp(trace[n], span[n], 8) == 0 || memcmp(trace[n] + 8, span[n], 8) == 0);
    }
    testOk(same == 0, "129 messages that differ in one bit have different ids");
    testOk(zero == 0, "no id is all 0");
}

static void chains(void)
{
    static uint8_t span[ALL][8];
    const uint64_t salt[2] = { 1, 0x8000000000000001u };
    ebpfMonChainId base = { .iocId = 3, .tid = 4711, .begin = 123456789012345u };
    uint8_t trace[2][16];
    unsigned n = 0, same = 0;

    for (unsigned s = 0; s < 2; s++)
        for (unsigned i = 0; i < 5; i++)
            for (uint32_t part = 0; part < 300; part++, n++) {
                ebpfMonChainId c = base;

                c.iocId += i == 1;
                c.tid += i == 2;
                c.begin += i == 3;
                c.begin += (uint64_t)(i == 4) << 63;
                ebpfMonChainGetSpanId(salt[s], &c, part, span[n]);
            }
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++)
            same += (unsigned)(memcmp(span[i], span[k], 8) == 0);
    testOk(same == 0, "%u spans of ten chains are different", n);
    ebpfMonChainGetTraceId(salt[0], &base, trace[0]);
    ebpfMonChainGetTraceId(salt[0], &base, trace[1]);
    testOk(memcmp(trace[0], trace[1], 16) == 0, "a chain has one trace id");
    ebpfMonChainGetTraceId(salt[1], &base, trace[1]);
    testOk(memcmp(trace[0], trace[1], 16) != 0, "another monitor chooses another trace id");
}

MAIN(testSpanId)
{
    testPlan(2 * (int)(sizeof(vector) / sizeof(vector[0])) + 5);
    knownOnes();
    bits();
    chains();
    return testDone();
}

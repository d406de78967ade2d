/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/spanId.h"

/* What a number is for: ids of one kind are never those of another. */
enum { traceHigh = 1, traceLow, messageSpan, chainHigh, chainLow, chainSpan };

/* splitmix64's finalizer: each bit of the input changes half of the output. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* All 0 is no id (W3C Trace Context). */
static void put(uint8_t *to, uint64_t x)
{
    if (!x)
        x = 1;
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(x >> (56 - 8 * i));
}

/* In the order of the bytes on the wire, so that machines of either byte order agree. */
static uint64_t wire(const void *at, unsigned size)
{
    const uint8_t *b = at;
    uint64_t x = 0;

    while (size-- > 0)
        x = x << 8 | *b++;
    return x;
}

static uint64_t message(int what, uint32_t addr, uint16_t port, uint32_t saddr, uint16_t sport, uint32_t seq)
{
    uint64_t h = mix((uint64_t)what + 0x9e3779b97f4a7c15ull);

    h = mix(h ^ (wire(&addr, 4) << 32 | wire(&saddr, 4)));
    return mix(h ^ (wire(&port, 2) << 48 | wire(&sport, 2) << 32 | seq));
}

void ebpfMonMessageTrace(uint32_t addr, uint16_t port, uint32_t saddr, uint16_t sport, uint32_t seq, uint8_t trace[16])
{
    put(trace, message(traceHigh, addr, port, saddr, sport, seq));
    put(trace + 8, message(traceLow, addr, port, saddr, sport, seq));
}

void ebpfMonMessageSpan(uint32_t addr, uint16_t port, uint32_t saddr, uint16_t sport, uint32_t seq, uint8_t span[8])
{
    put(span, message(messageSpan, addr, port, saddr, sport, seq));
}

static uint64_t chain(int what, uint64_t salt, const ebpfMonChainId *c, uint32_t part)
{
    uint64_t h = mix(salt + (uint64_t)what * 0x9e3779b97f4a7c15ull);

    h = mix(h ^ ((uint64_t)c->iocId << 32 | c->tid));
    h = mix(h ^ c->begin);
    return mix(h ^ part);
}

void ebpfMonChainTrace(uint64_t salt, const ebpfMonChainId *c, uint8_t trace[16])
{
    put(trace, chain(chainHigh, salt, c, 0));
    put(trace + 8, chain(chainLow, salt, c, 0));
}

void ebpfMonChainSpan(uint64_t salt, const ebpfMonChainId *c, uint32_t part, uint8_t span[8])
{
    put(span, chain(chainSpan, salt, c, part));
}

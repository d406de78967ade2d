/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/spanId.h"

/* What a number is for: ids of one kind are never those of another. */
enum { traceHigh = 1, traceLow, messageSpan, chainHigh, chainLow, chainSpan };

/* splitmix64's finalizer: each bit of the input changes half of the output. */
static uint64_t mixBits(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* All 0 is no id (W3C Trace Context). */
static void storeId(uint8_t *to, uint64_t x)
{
    if (!x)
        x = 1;
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(x >> (56 - 8 * i));
}

/* Network byte order to a number, so that machines of either byte order come to the same one. */
static uint64_t readNetwork(const void *at, unsigned size)
{
    const uint8_t *b = at;
    uint64_t x = 0;

    while (size-- > 0)
        x = x << 8 | *b++;
    return x;
}

static uint64_t hashMessage(int what, const struct ebpfMonPeer *p, uint32_t seq)
{
    uint64_t h = mixBits((uint64_t)what + 0x9e3779b97f4a7c15ull);

    h = mixBits(h ^ (readNetwork(&p->addr, 4) << 32 | readNetwork(&p->saddr, 4)));
    return mixBits(h ^ (readNetwork(&p->port, 2) << 48 | readNetwork(&p->sport, 2) << 32 | seq));
}

void ebpfMonMessageGetTraceId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t trace[16])
{
    storeId(trace, hashMessage(traceHigh, peer, seq));
    storeId(trace + 8, hashMessage(traceLow, peer, seq));
}

void ebpfMonMessageGetSpanId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t span[8])
{
    storeId(span, hashMessage(messageSpan, peer, seq));
}

static uint64_t hashChain(int what, uint64_t salt, const ebpfMonChainId *c, uint32_t part)
{
    uint64_t h = mixBits(salt + (uint64_t)what * 0x9e3779b97f4a7c15ull);

    h = mixBits(h ^ ((uint64_t)c->iocId << 32 | c->tid));
    h = mixBits(h ^ c->begin);
    return mixBits(h ^ part);
}

void ebpfMonChainGetTraceId(uint64_t salt, const ebpfMonChainId *chain, uint8_t trace[16])
{
    storeId(trace, hashChain(chainHigh, salt, chain, 0));
    storeId(trace + 8, hashChain(chainLow, salt, chain, 0));
}

void ebpfMonChainGetSpanId(uint64_t salt, const ebpfMonChainId *chain, uint32_t part, uint8_t span[8])
{
    storeId(span, hashChain(chainSpan, salt, chain, part));
}

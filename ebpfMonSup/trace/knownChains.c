/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/knownChains.h"

#define BUCKETS 4096 /* a power of two */

struct ebpfMonKnownChains {
    ebpfMonTraceChain *bucket[BUCKETS];
};

ebpfMonKnownChains *ebpfMonKnownChainsNew(void)
{
    return calloc(1, sizeof(ebpfMonKnownChains));
}

void ebpfMonKnownChainsFree(ebpfMonKnownChains *known)
{
    free(known);
}

void ebpfMonKnownChainsAdd(ebpfMonKnownChains *known, ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);
    ebpfMonTraceChain **p = &known->bucket[ebpfMonChainIdHash(&id) % BUCKETS];

    while (*p)
        p = &(*p)->nextOfHash;
    *p = c;
}

void ebpfMonKnownChainsRemove(ebpfMonKnownChains *known, const ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);
    ebpfMonTraceChain **p = &known->bucket[ebpfMonChainIdHash(&id) % BUCKETS];

    while (*p && *p != c)
        p = &(*p)->nextOfHash;
    if (*p)
        *p = c->nextOfHash;
}

ebpfMonTraceChain *ebpfMonKnownChainsFind(const ebpfMonKnownChains *known, const ebpfMonChainId *chain)
{
    ebpfMonTraceChain *c = known->bucket[ebpfMonChainIdHash(chain) % BUCKETS];

    while (c) {
        ebpfMonChainId id = ebpfMonTraceChainGetId(c);

        if (ebpfMonChainIdIsSame(&id, chain))
            break;
        c = c->nextOfHash;
    }
    return c;
}

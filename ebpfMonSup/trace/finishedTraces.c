/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "trace/finishedTraces.h"

#define CHAINS 16384 /* a power of two */

typedef struct {
    ebpfMonChainId chain;
    uint8_t traceId[16];
} finishedChain;

struct ebpfMonFinishedTraces {
    finishedChain chain[CHAINS]; /* by hash; the newest chain of each hash */
};

ebpfMonFinishedTraces *ebpfMonFinishedTracesNew(void)
{
    return calloc(1, sizeof(ebpfMonFinishedTraces));
}

void ebpfMonFinishedTracesFree(ebpfMonFinishedTraces *finished)
{
    free(finished);
}

void ebpfMonFinishedTracesAdd(ebpfMonFinishedTraces *finished, const ebpfMonChainId *chain, const uint8_t traceId[16])
{
    finishedChain *place = &finished->chain[ebpfMonChainIdHash(chain) % CHAINS];

    place->chain = *chain;
    memcpy(place->traceId, traceId, sizeof(place->traceId));
}

const uint8_t *ebpfMonFinishedTracesFind(const ebpfMonFinishedTraces *finished, const ebpfMonChainId *chain)
{
    const finishedChain *place = &finished->chain[ebpfMonChainIdHash(chain) % CHAINS];

    return ebpfMonChainIdIsSame(&place->chain, chain) ? place->traceId : NULL;
}

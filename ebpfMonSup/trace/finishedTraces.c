/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/finishedTraces.h"

#define CHAINS 16384 /* a power of two */

struct ebpfMonFinishedTraces {
    ebpfMonFinishedChain chain[CHAINS]; /* by hash; the newest chain of each hash */
};

ebpfMonFinishedTraces *ebpfMonFinishedTracesNew(void)
{
    return calloc(1, sizeof(ebpfMonFinishedTraces));
}

void ebpfMonFinishedTracesFree(ebpfMonFinishedTraces *finished)
{
    free(finished);
}

void ebpfMonFinishedTracesAdd(ebpfMonFinishedTraces *finished, const ebpfMonFinishedChain *chain)
{
    finished->chain[ebpfMonChainIdHash(&chain->chain) % CHAINS] = *chain;
}

const ebpfMonFinishedChain *ebpfMonFinishedTracesFind(const ebpfMonFinishedTraces *finished,
                                                      const ebpfMonChainId *chain)
{
    const ebpfMonFinishedChain *place = &finished->chain[ebpfMonChainIdHash(chain) % CHAINS];

    return ebpfMonChainIdIsSame(&place->chain, chain) ? place : NULL;
}

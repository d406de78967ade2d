/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds a chain of the open traces by its identity. Each new chain needs its source chain, and so does each hand-over
 * that was completed. Event thread only.
 */
#ifndef EBPFMON_KNOWNCHAINS_H
#define EBPFMON_KNOWNCHAINS_H

#include "trace/traceChain.h"

typedef struct ebpfMonKnownChains ebpfMonKnownChains;

ebpfMonKnownChains *ebpfMonKnownChainsNew(void); /* NULL without memory */
void ebpfMonKnownChainsFree(ebpfMonKnownChains *known); /* not the chains; NULL does no harm */

/* The chain stays the caller's, who removes it before its memory is freed. */
void ebpfMonKnownChainsAdd(ebpfMonKnownChains *known, ebpfMonTraceChain *c);
void ebpfMonKnownChainsRemove(ebpfMonKnownChains *known, const ebpfMonTraceChain *c);

/* NULL: none. */
ebpfMonTraceChain *ebpfMonKnownChainsFind(const ebpfMonKnownChains *known, const ebpfMonChainId *chain);

#endif

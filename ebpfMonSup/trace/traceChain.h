/* SPDX-License-Identifier: BSD-3-Clause */
/* One chain of a trace; users see it as a step. Event thread only. */
#ifndef EBPFMON_TRACECHAIN_H
#define EBPFMON_TRACECHAIN_H

#include "ebpfMonEvent.h"
#include "model/chainId.h"
#include "watch/target.h"

#define EBPFMON_CHAIN_RECORDS 2048 /* of one chain that are kept */

/* Records are given by their index in the catalogue. */
typedef struct ebpfMonTraceChain {
    struct ebpfMonTraceChain *next; /* of the same trace, in the order in which their events came */
    struct ebpfMonTraceChain *nextOfHash; /* knownChains.c sets it */
    struct ebpfMonTrace *trace; /* that it is a part of; NULL: not yet */
    struct ebpfMonChain chain;  /* rootSlot is an index; async and outer are 1 + index, 0: none */
    ebpfMonChainId source;      /* the chain that handed it over, as a callback or for scanOnce; iocId 0: none */
    uint32_t sourceRoot;        /* 1 + index of the root of that chain; 0: not known */
    uint64_t delay;             /* ns that the callback was to wait before it came into its queue */
    uint32_t count;
    struct ebpfMonChainRec rec[]; /* in the order of their time stamps; slot is an index */
} ebpfMonTraceChain;

ebpfMonChainId ebpfMonTraceChainGetId(const ebpfMonTraceChain *c);

/* The chain that began the root of "c", if "c" completes an asynchronous root; "begin" 0: it does not. */
ebpfMonChainId ebpfMonTraceChainGetBeginner(const ebpfMonTraceChain *c);

/* Copies a chain as the kernel part reports it, with slots; "rec" in any order. NULL without memory; free() ends it. */
ebpfMonTraceChain *ebpfMonTraceChainNew(const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                                        const struct ebpfMonChainRec *rec, uint32_t count);

/* A hand-over led to the chain. */
void ebpfMonTraceChainSetSource(const ebpfMonTarget *t, ebpfMonTraceChain *c, const struct ebpfMonHandOver *from);

/* Nonzero: it completes a record that "source" left processing. */
int ebpfMonTraceChainCompletes(const ebpfMonTraceChain *c, const ebpfMonTraceChain *source);

/* Nonzero: "source" handed it over. */
int ebpfMonTraceChainIsHandedOverBy(const ebpfMonTraceChain *c, const ebpfMonTraceChain *source);

#endif

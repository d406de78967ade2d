/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel part sends a chain that it keeps in parts of EBPFMON_CHUNK records. This puts them together, and leaves
 * out the records that processed before the chain began. Event thread only.
 */
#ifndef EBPFMON_CHAINPARTS_H
#define EBPFMON_CHAINPARTS_H

#include "ebpfMonEvent.h"
#include "model/audits.h"
#include "watch/target.h"

typedef struct ebpfMonChainParts ebpfMonChainParts;

/* A complete chain; "rec" in any order, with slots, valid during the call. Under ebpfMonTargetsLock. */
typedef void (*ebpfMonChainFn)(void *arg, ebpfMonTarget *t, const struct ebpfMonChain *chain,
                               const struct ebpfMonChainRec *rec, uint32_t count);

/* "losses" counts the chains for which there was no place, and stays the caller's. NULL without memory. */
ebpfMonChainParts *ebpfMonChainPartsNew(ebpfMonLosses *losses, ebpfMonChainFn onChain, void *arg);
void ebpfMonChainPartsFree(ebpfMonChainParts *parts); /* NULL does no harm */

/* Adds one part; with the last part of a chain onChain gets the chain. "size": of the event, bytes. "unixOffset": from
 * monotonic time to time since 1970, ns. Call it under ebpfMonTargetsLock. */
void ebpfMonChainPartsAdd(ebpfMonChainParts *parts, ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size,
                          uint64_t unixOffset);

#endif

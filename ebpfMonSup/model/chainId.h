/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of one chain of a watched IOC. Any thread. */
#ifndef EBPFMON_CHAINID_H
#define EBPFMON_CHAINID_H

#include <stdint.h>

#include "common/hash.h"

typedef struct {
    uint32_t iocId; /* never used again for another IOC; 0: no chain */
    uint32_t tid;
    uint64_t begin; /* monotonic ns at which the thread requested the lock set */
} ebpfMonChainId;

static inline int ebpfMonChainIdIsSame(const ebpfMonChainId *a, const ebpfMonChainId *b)
{
    return a->begin == b->begin && a->tid == b->tid && a->iocId == b->iocId;
}

/* A hash for tables of up to 2^24 places. The number of places must be a power of two. */
static inline uint32_t ebpfMonChainIdHash(const ebpfMonChainId *chain)
{
    return (uint32_t)(ebpfMonHashInteger(chain->begin + chain->tid) >> 40);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network namespaces of which packets are read, or were until a short time ago: when the last IOC of one ends, its
 * last packets may be read before its last events, and a put must find its packet then, too. No lock of its own.
 */
#ifndef EBPFMON_JOINCOVERED_H
#define EBPFMON_JOINCOVERED_H

#include <stdint.h>

#include "ebpfMonEvent.h"

#define EBPFMON_JOIN_COVERED_MAX 64

typedef struct {
    struct {
        uint32_t netns;
        uint64_t leftAt; /* monotonic ns: its packets are not read since then; 0: they are */
    } space[EBPFMON_JOIN_COVERED_MAX];
    unsigned count;
} ebpfMonJoinCovered;

/* Packets are read in these from now (monotonic ns) on, and in no others. */
void ebpfMonJoinCoveredSet(ebpfMonJoinCovered *covered, const uint32_t *netns, unsigned count, uint64_t now);

/* Nonzero: the packets of this connection were read, or will be. */
int ebpfMonJoinCoveredHas(const ebpfMonJoinCovered *covered, const struct ebpfMonPeer *peer);

#endif

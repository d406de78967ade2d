/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts in packets how many updates, and how many bytes, a CA server has sent for each channel with subscriptions. If
 * the first update came before the monitor read packets, the channel has no count. Any thread; the module has a lock of
 * its own.
 */
#ifndef EBPFMON_UPDATECOUNTS_H
#define EBPFMON_UPDATECOUNTS_H

#include "wire/wireEvent.h"

#define EBPFMON_UPDATE_COUNTS 65536 /* channels that are counted. Channels beyond have no count */

typedef struct ebpfMonUpdateCounts ebpfMonUpdateCounts;

typedef struct {
    uint64_t updates, bytes; /* of all subscriptions of the channel; bytes: whole messages with their headers */
    int      isAtLeast;      /* both are lower bounds: packets were lost, so messages may be missing */
    int      baseType;       /* of the last one, as in ebpfMonWireEvent … */
    uint8_t  last[8];        /* … its first element as it was sent; of a STRING its first bytes … */
    uint64_t lastAt;         /* … and its time, ns since 1970 */
} ebpfMonUpdateCount;

ebpfMonUpdateCounts *ebpfMonUpdateCountsNew(void); /* NULL without memory */
void ebpfMonUpdateCountsFree(ebpfMonUpdateCounts *counts);

/* Counts an event of the kind ebpfMonWireValue, if it is an update. An update without memory or room is not counted. */
void ebpfMonUpdateCountsAdd(ebpfMonUpdateCounts *counts, const ebpfMonWireEvent *ev);

/* Finds the count of a channel. "peer": both ends of its circuit; "sid": the server's number of the channel. A count
 * that is found is kept for the next looks. 0, or -1: there is none. */
int ebpfMonUpdateCountsFind(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid,
                            ebpfMonUpdateCount *count);

/* Call this at the end of each look: forgets the counts that no look has asked for, three times in a row. */
void ebpfMonUpdateCountsForget(ebpfMonUpdateCounts *counts);

#endif

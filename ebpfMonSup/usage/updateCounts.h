/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many updates each CA subscription has sent, and how many bytes: counted in packets, from the subscription's beginning
 * on. One that began before packets were read has no count. Any thread.
 */
#ifndef EBPFMON_UPDATECOUNTS_H
#define EBPFMON_UPDATECOUNTS_H

#include "wire/wireEvent.h"

#define EBPFMON_UPDATE_COUNTS 65536 /* channels that are counted; further ones have no count */

typedef struct ebpfMonUpdateCounts ebpfMonUpdateCounts;

typedef struct {
    uint64_t updates, bytes; /* of the messages, headers included; of all subscriptions of the channel */
    int      isAtLeast;      /* packets are missing, or what was seen began within a message */
} ebpfMonUpdateCount;

ebpfMonUpdateCounts *ebpfMonUpdateCountsNew(void); /* NULL without memory */
void ebpfMonUpdateCountsFree(ebpfMonUpdateCounts *counts);

/* An event ebpfMonWireValue; what is no update is not counted. */
void ebpfMonUpdateCountsAdd(ebpfMonUpdateCounts *counts, const ebpfMonWireEvent *ev);

/* The count of a channel: the client's end of its circuit, the server's port, and the channel's sid. It is kept for the
 * next look. 0, or -1: there is none. */
int ebpfMonUpdateCountsFind(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid,
                            ebpfMonUpdateCount *count);

/* A look is over: forgets what was not found since the look before. */
void ebpfMonUpdateCountsForget(ebpfMonUpdateCounts *counts);

#endif

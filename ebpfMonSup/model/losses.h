/* SPDX-License-Identifier: BSD-3-Clause */
/* The events that the user part lost. (The kernel part counts its own: map "lost".) Any thread; no lock. */
#ifndef EBPFMON_LOSSES_H
#define EBPFMON_LOSSES_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    ebpfMonLossGone,  /* an event of an IOC that the monitor had forgotten */
    ebpfMonLossParts, /* a chain that comes in parts, and for which there was no place */
    ebpfMonLossOwnPut, /* a client's put to the monitor's own PVs; it was judged, but not logged */
    ebpfMonLossSkipped, /* the kernel did not run a program of ours. Not counted here, but by the kernel */
    ebpfMonLossUrgent, /* a connection of CA or PVA with urgent data: what followed was not read from its packets */
    ebpfMonLossCircuits, /* a connection of CA or PVA that is not followed any more: there were too many */
    ebpfMonLossWrongSum, /* a packet of TCP with a wrong checksum: no host accepts it */
    ebpfMonLossOwnAddress, /* a packet of TCP that came from outside, with an address of this host as its source */
    ebpfMonLossForged, /* packets of a put to a watched IOC, in a connection of which the IOC has got nothing */
    ebpfMonLossKinds
} ebpfMonLoss;

/* All 0 at first. Only the functions use the member. */
typedef struct {
    size_t count[ebpfMonLossKinds]; /* atomic */
} ebpfMonLosses;

/* Counts one lost event. */
void ebpfMonLossesAdd(ebpfMonLosses *losses, ebpfMonLoss kind);
/* How many were counted. */
uint64_t ebpfMonLossesGet(const ebpfMonLosses *losses, ebpfMonLoss kind);

#endif

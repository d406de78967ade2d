/* SPDX-License-Identifier: BSD-3-Clause */
/* The events that the user part lost. (The kernel part counts its own: map "lost".) Any thread. One per process,
 * because lost events must be counted whatever else works. */
#ifndef EBPFMON_LOSSES_H
#define EBPFMON_LOSSES_H

#include <stdint.h>

typedef enum {
    ebpfMonLossGone,  /* an event of an IOC that the monitor had forgotten */
    ebpfMonLossParts, /* a chain that comes in parts, and for which there was no place */
    ebpfMonLossOwnPut, /* a client's put to the monitor's own PVs; it was judged, but not logged */
    ebpfMonLossKinds
} ebpfMonLoss;

/* Counts one lost event. */
void ebpfMonLossesAdd(ebpfMonLoss kind);
/* The count since the start of the process. */
uint64_t ebpfMonLossesGet(ebpfMonLoss kind);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that the user part lost; the kernel part counts its own (map "lost"). Any thread. One per process: a counter
 * of lost events must be there whatever else is. */
#ifndef EBPFMON_LOSSES_H
#define EBPFMON_LOSSES_H

#include <stdint.h>

typedef enum {
    ebpfMonLossGone,  /* an event whose IOC had been forgotten */
    ebpfMonLossParts, /* a chain that found no place while it came part by part */
    ebpfMonLossOwnPut, /* a put of a client to the monitor's own PVs; it was judged, but not logged */
    ebpfMonLossKinds
} ebpfMonLoss;

void ebpfMonLossesAdd(ebpfMonLoss kind);
uint64_t ebpfMonLossesGet(ebpfMonLoss kind);

#endif

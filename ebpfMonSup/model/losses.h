/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user half lost itself; what the kernel half lost is in its map. Any thread. */
#ifndef EBPFMON_LOSSES_H
#define EBPFMON_LOSSES_H

#include <stdint.h>

typedef enum {
    ebpfMonLossGone,  /* an event whose IOC had been forgotten */
    ebpfMonLossParts, /* a chain that found no place while it came part by part */
    ebpfMonLossKinds
} ebpfMonLoss;

void ebpfMonLossesAdd(ebpfMonLoss kind);
uint64_t ebpfMonLossesGet(ebpfMonLoss kind);

#endif

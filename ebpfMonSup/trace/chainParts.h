/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains that are kept whole come from the kernel in parts. Event thread only. */
#ifndef EBPFMON_CHAINPARTS_H
#define EBPFMON_CHAINPARTS_H

#include "ebpfMonEvent.h"
#include "watch/target.h"

/* Takes one part; with the last one the chain goes to the traces. Under ebpfMonTargetsLock. */
void ebpfMonChainPartsAdd(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size);

#endif

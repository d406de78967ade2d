/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains that are kept whole come from the kernel in parts. Event thread only. */
#ifndef EBPFMON_CHAINS_H
#define EBPFMON_CHAINS_H

#include "ebpfMonEvent.h"
#include "monitor/target.h"

/* Takes one part; with the last one the chain goes to the traces. Under ebpfMonTargetsLock. */
void ebpfMonChainPart(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size);

#endif

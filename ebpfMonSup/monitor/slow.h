/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains that were kept whole: put together from their parts, told as text. Event thread only. */
#ifndef EBPFMON_SLOW_H
#define EBPFMON_SLOW_H

#include "ebpfMonEvent.h"
#include "monitor/target.h"

/* Takes one part; with the last one the chain goes to the board. Under ebpfMonTargetsLock. */
void ebpfMonSlowPart(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size);

#endif

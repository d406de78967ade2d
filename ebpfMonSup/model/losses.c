/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include <epicsAtomic.h>

#include "model/losses.h"

/* One per process, because any thread of any room counts its losses here, and LOST_CNTS shows the sums. With a context,
 * a dozen modules would need one more parameter, each for one counter. Atomic. */
static size_t counts[ebpfMonLossKinds];

void ebpfMonLossesAdd(ebpfMonLoss kind)
{
    epicsAtomicIncrSizeT(&counts[kind]);
}

uint64_t ebpfMonLossesGet(ebpfMonLoss kind)
{
    return epicsAtomicGetSizeT(&counts[kind]);
}

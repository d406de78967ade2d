/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include <epicsAtomic.h>

#include "model/losses.h"

/* One per process: any thread of any room counts here what it lost, and LOST_CNTS shows the sums. A context would go through
 * the constructors of a dozen modules for one counter in each. Atomic. */
static size_t counts[ebpfMonLossKinds];

void ebpfMonLossesAdd(ebpfMonLoss kind)
{
    epicsAtomicIncrSizeT(&counts[kind]);
}

uint64_t ebpfMonLossesGet(ebpfMonLoss kind)
{
    return epicsAtomicGetSizeT(&counts[kind]);
}

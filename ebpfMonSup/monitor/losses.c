/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include <epicsAtomic.h>

#include "monitor/losses.h"

static size_t counts[ebpfMonLossKinds];

void ebpfMonLossAdd(ebpfMonLoss kind)
{
    epicsAtomicIncrSizeT(&counts[kind]);
}

uint64_t ebpfMonLossGet(ebpfMonLoss kind)
{
    return epicsAtomicGetSizeT(&counts[kind]);
}

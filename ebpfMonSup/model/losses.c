/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>

#include "model/losses.h"

void ebpfMonLossesAdd(ebpfMonLosses *losses, ebpfMonLoss kind)
{
    epicsAtomicIncrSizeT(&losses->count[kind]);
}

uint64_t ebpfMonLossesGet(const ebpfMonLosses *losses, ebpfMonLoss kind)
{
    return epicsAtomicGetSizeT(&losses->count[kind]);
}

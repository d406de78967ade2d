/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>

#include "model/ops.h"

static const ebpfMonOps absentOps = {
    &ebpfMonMonitorOpsAbsent, &ebpfMonLogOpsAbsent, &ebpfMonQueryOpsAbsent,
    &ebpfMonInventoryOpsAbsent, NULL, NULL
};

/* One per process, because Base calls us without a context (ops.h). Written once, at the registration; any thread reads
 * it. */
static EpicsAtomicPtrT currentOps = (EpicsAtomicPtrT)&absentOps;

const ebpfMonOps *ebpfMonOpsGet(void)
{
    return epicsAtomicGetPtrT(&currentOps);
}

void ebpfMonOpsSet(const ebpfMonOps *ops)
{
    epicsAtomicSetPtrT(&currentOps, (EpicsAtomicPtrT)ops);
}

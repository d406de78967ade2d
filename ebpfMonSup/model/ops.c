/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>

#include "model/ops.h"

static const ebpfMonOps absent = {
    &ebpfMonMonitorOpsAbsent, &ebpfMonLogOpsAbsent, &ebpfMonQueryOpsAbsent, &ebpfMonDeviceOpsAbsent,
    &ebpfMonInventoryOpsAbsent, NULL, NULL
};

/* One per process, because Base hands no context to those who read it: ops.h. Written at the registration. */
static EpicsAtomicPtrT inForce = (EpicsAtomicPtrT)&absent;

const ebpfMonOps *ebpfMonOpsGet(void)
{
    return epicsAtomicGetPtrT(&inForce);
}

void ebpfMonOpsSet(const ebpfMonOps *ops)
{
    epicsAtomicSetPtrT(&inForce, (EpicsAtomicPtrT)ops);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>

#include "model/deviceOps.h"

static EpicsAtomicPtrT registered;

const ebpfMonDeviceOps *ebpfMonDeviceOpsGet(void)
{
    return epicsAtomicGetPtrT(&registered);
}

void ebpfMonDeviceOpsRegister(const ebpfMonDeviceOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}

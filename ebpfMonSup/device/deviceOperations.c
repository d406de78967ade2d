/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/deviceOps.h"
#include "device/deviceOperations.h"

/* Of the one monitor of this process: iocsh has no context to hand over. */
static ebpfMonDevices *devices;

static void watch(const char *pattern)
{
    ebpfMonDevicesWatch(devices, pattern);
}

void ebpfMonDeviceOperationsRegister(ebpfMonDevices *d)
{
    static const ebpfMonDeviceOps ops = { watch };

    devices = d;
    ebpfMonDeviceOpsRegister(&ops);
}

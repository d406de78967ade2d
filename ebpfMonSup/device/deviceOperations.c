/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/deviceOps.h"
#include "device/deviceOperations.h"

/* The module of the one monitor of this process. It is static because iocsh passes no context. */
static ebpfMonDevices *devices;

static void watchPorts(const char *pattern)
{
    ebpfMonDevicesWatch(devices, pattern);
}

void ebpfMonDeviceOperationsRegister(ebpfMonDevices *d)
{
    static const ebpfMonDeviceOps ops = { watchPorts };

    devices = d;
    ebpfMonDeviceOpsRegister(&ops);
}

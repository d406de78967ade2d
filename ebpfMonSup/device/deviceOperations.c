/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/deviceOperations.h"

static long watchPorts(void *arg, const char *pattern)
{
    ebpfMonDevicesWatch(arg, pattern);
    return 0;
}

void ebpfMonDeviceOperationsFill(ebpfMonDevices *devices, ebpfMonDeviceOps *ops)
{
    *ops = (ebpfMonDeviceOps){ devices, watchPorts };
}

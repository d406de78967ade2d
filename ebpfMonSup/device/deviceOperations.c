/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/deviceOperations.h"

static long watch(void *arg, const char *pattern)
{
    ebpfMonDevicesWatch(arg, pattern);
    return 0;
}

void ebpfMonDeviceOperationsFill(ebpfMonDevices *devices, ebpfMonDeviceOps *ops)
{
    *ops = (ebpfMonDeviceOps){ devices, watch };
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of model/deviceOps.h, which the shell commands call. */
#ifndef EBPFMON_DEVICEOPERATIONS_H
#define EBPFMON_DEVICEOPERATIONS_H

#include "device/devices.h"
#include "model/deviceOps.h"

/* Sets *ops. It keeps the pointer "devices". */
void ebpfMonDeviceOperationsFill(ebpfMonDevices *devices, ebpfMonDeviceOps *ops);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in model/deviceOps.h. */
#ifndef EBPFMON_DEVICEOPERATIONS_H
#define EBPFMON_DEVICEOPERATIONS_H

#include "device/devices.h"
#include "model/deviceOps.h"

void ebpfMonDeviceOperationsFill(ebpfMonDevices *devices, ebpfMonDeviceOps *ops);

#endif

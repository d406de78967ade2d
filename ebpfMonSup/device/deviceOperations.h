/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in model/deviceOps.h. */
#ifndef EBPFMON_DEVICEOPERATIONS_H
#define EBPFMON_DEVICEOPERATIONS_H

#include "device/devices.h"

void ebpfMonDeviceOperationsRegister(ebpfMonDevices *devices);

#endif

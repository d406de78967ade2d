/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "model/deviceOps.h"

static long refuseWatch(void *arg, const char *pattern)
{
    (void)arg;
    (void)pattern;
    return -1;
}

const ebpfMonDeviceOps ebpfMonDeviceOpsAbsent = { NULL, refuseWatch };

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "model/deviceOps.h"

static long watch(void *arg, const char *pattern)
{
    (void)arg;
    (void)pattern;
    return -1;
}

const ebpfMonDeviceOps ebpfMonDeviceOpsAbsent = { NULL, watch };

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell may ask about ports of asyn: a function, as in monitorOps.h. One per process. */
#ifndef EBPFMON_DEVICEOPS_H
#define EBPFMON_DEVICEOPS_H

typedef struct {
    /* Watches the ports of the IOCs whose names match; "": of none. */
    void (*watch)(const char *pattern);
} ebpfMonDeviceOps;

/* NULL: the monitor is not linked in, or has no memory. Any thread. */
const ebpfMonDeviceOps *ebpfMonDeviceOpsGet(void);
void ebpfMonDeviceOpsRegister(const ebpfMonDeviceOps *ops);

#endif

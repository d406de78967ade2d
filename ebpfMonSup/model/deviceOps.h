/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell can do with the ports of asyn: a function, as in monitorOps.h. One per process, because a process has
 * one monitor. */
#ifndef EBPFMON_DEVICEOPS_H
#define EBPFMON_DEVICEOPS_H

typedef struct {
    /* Watches the ports of the IOCs with matching names; "": watches none. */
    void (*watch)(const char *pattern);
} ebpfMonDeviceOps;

/* The registered function. NULL: the monitor is not linked in, or has no memory. Any thread. */
const ebpfMonDeviceOps *ebpfMonDeviceOpsGet(void);
/* Only at the start. "ops" stays the caller's and must never go. */
void ebpfMonDeviceOpsRegister(const ebpfMonDeviceOps *ops);

#endif

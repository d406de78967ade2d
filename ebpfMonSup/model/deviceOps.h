/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell may ask about ports of asyn: one of the tables of ops.h. */
#ifndef EBPFMON_DEVICEOPS_H
#define EBPFMON_DEVICEOPS_H

typedef struct {
    void *arg; /* the first argument of each function */
    /* Watches the ports of the IOCs whose names match; "": of none. 0, or -1: there is no monitor. */
    long (*watch)(void *arg, const char *pattern);
} ebpfMonDeviceOps;

/* Where there is no monitor: every operation fails, and says so where it has a text. */
extern const ebpfMonDeviceOps ebpfMonDeviceOpsAbsent;

#endif

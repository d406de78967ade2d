/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the shell calls for the ports of asyn: one of the tables of ops.h. */
#ifndef EBPFMON_DEVICEOPS_H
#define EBPFMON_DEVICEOPS_H

typedef struct {
    void *arg; /* the first argument of each function */
    /* Watches the ports of the IOCs with matching names; "": watches none. 0, or -1: there is no monitor. */
    long (*watch)(void *arg, const char *pattern);
} ebpfMonDeviceOps;

/* Used while there is no monitor: every function fails. */
extern const ebpfMonDeviceOps ebpfMonDeviceOpsAbsent;

#endif

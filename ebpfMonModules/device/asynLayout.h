/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of asyn in the memory of an IOC. asynDriver.h declares struct asynUser, and the order of the functions in
 * struct asynManager, to which the variable pasynManager points. So queueRequest is found in stripped IOCs, too. The
 * structs userPvt, port and device are private to asynManager.c. We use their layout of asyn release 4, and check what
 * is read before it is shown. No state; any thread, without a lock.
 */
#ifndef EBPFMON_ASYNLAYOUT_H
#define EBPFMON_ASYNLAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "device/ebpfMonDevice.h"

/* Returns the address of the function queueRequest in the IOC. 0: this IOC has no asyn, or its memory cannot be
 * read. */
uint64_t ebpfMonAsynFindQueueRequest(pid_t pid);

/* Sets the layout that the kernel part needs. */
void ebpfMonAsynFillConf(struct ebpfMonDeviceConf *conf, uint32_t iocId);

/* Reads the name of a port; behind a blank comes the address of the device, if it has one. "port", "device":
 * addresses of the structs in the IOC. 0, or -1: no name is found, so this asyn has another layout. */
int ebpfMonAsynNamePort(pid_t pid, uint64_t port, uint64_t device, char *name, size_t size);

#endif

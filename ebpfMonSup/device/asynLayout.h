/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How asyn lies in the memory of an IOC. Public (asynDriver.h) are struct asynUser, and the order of the functions in struct
 * asynManager, which "pasynManager" points to: so queueRequest is found in stripped IOCs, too. Private to asynManager.c are
 * the structs userPvt, port and device. Those are of release 4; what they show is checked before it is believed.
 */
#ifndef EBPFMON_ASYNLAYOUT_H
#define EBPFMON_ASYNLAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonDevice.h"

/* The address of asynManager's queueRequest. 0: this IOC has no asyn, or does not answer. */
uint64_t ebpfMonAsynFindQueueRequest(pid_t pid);

void ebpfMonAsynFillConf(struct ebpfMonDeviceConf *conf, uint32_t iocId);

/* Name of a port, and behind a blank the address of the device if there is one. 0, or -1: it has none, so the structs lie in
 * another way. */
int ebpfMonAsynNamePort(pid_t pid, uint64_t port, uint64_t device, char *name, size_t size);

#endif

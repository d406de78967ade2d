/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports of asyn in the memory of an IOC, and who is in their queues. The structs are private to asynManager.c of
 * asyn 4; what is read is checked by what leads back: a request to its port, a port's lock to the list of mutexes. Only
 * the thread of waits.c uses this module.
 */
#ifndef EBPFMON_ASYNPORTS_H
#define EBPFMON_ASYNPORTS_H

#include <stdint.h>
#include <sys/types.h>

#include "host/memory.h"

#define EBPFMON_ASYN_PORTS 128

typedef struct {
    uint64_t at;
    uint64_t lock;      /* epicsMutexId: who has it, uses the port (synchronousLock) */
    char     name[40];
} ebpfMonAsynPort;

/* A request in the queue of a port. */
typedef struct {
    uint64_t at;        /* its userPvt */
    unsigned port;
    uint64_t pvt;       /* asynUser.userPvt: of device support; of queueLockPort: its event */
    int      isTimed;
} ebpfMonAsynRequest;

typedef struct {
    ebpfMonAsynPort port[EBPFMON_ASYN_PORTS];
    unsigned ports;
    ebpfMonAsynRequest *request;
    size_t   requests, room;
} ebpfMonAsynPorts;

/* The address of the variable that leads to all ports. 0: this IOC has no asyn, or its files have no symbols. */
uint64_t ebpfMonAsynPortsFind(pid_t pid);

/* Reads ports and requests. Clear it once. */
void ebpfMonAsynPortsRead(ebpfMonAsynPorts *ports, ebpfMonMem *mem, uint64_t variable);
void ebpfMonAsynPortsClear(ebpfMonAsynPorts *ports);

/* The request of a thread that waits in queueLockPort, by the address of its futex. NULL: it does not. */
const ebpfMonAsynRequest *ebpfMonAsynPortsFindThread(const ebpfMonAsynPorts *ports, ebpfMonMem *mem, uint64_t futex);

/* The port that the device support of this record uses. "dpvt": its DPVT. *isQueued: a request of it is in the queue.
 * -1: none, or it is not known. */
int ebpfMonAsynPortsFindRecord(const ebpfMonAsynPorts *ports, ebpfMonMem *mem, uint64_t record, uint64_t dpvt,
                               int *isQueued);

#endif

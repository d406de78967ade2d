/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of the watched IOCs: how full they are, what they lose, who fills them. The thread of the module reads
 * them once a second, less often in a silence. Nothing is attached.
 */
#ifndef EBPFMON_QUEUES_H
#define EBPFMON_QUEUES_H

#include "ebpfMonModule.h"
#include "queues/queueIoc.h"

#define EBPFMON_QUEUE_ROWS 200
#define EBPFMON_QUEUE_HOLD_NS 10000000000ull /* a queue is over half, or overflows, for so long after it did */

/* A row of the table QUEUES. */
typedef struct {
    char   ioc[EBPFMON_IOCNAME_SIZE];
    char   queue[16];
    char   state[24];
    double used, size, high, overflows; /* NaN: not known */
    char   fillers[EBPFMON_QUEUE_FILLERS];
} ebpfMonQueueRow;

typedef struct {
    unsigned iocs, queues;
    unsigned half, full;    /* queues that are over half, that overflow */
    uint64_t overflows;     /* since the monitor started, of all */
    double   fill;          /* percent of the fullest queue */
    double   cost;          /* percent of one core */
    char     state[400];
    unsigned rows;
    ebpfMonQueueRow row[EBPFMON_QUEUE_ROWS];
} ebpfMonQueueValues;

typedef struct ebpfMonQueueRoom ebpfMonQueueRoom;

/* There is one in a process, never freed: a shell command may still use it. NULL without memory. */
ebpfMonQueueRoom *ebpfMonQueueRoomNew(const ebpfMonModule *module);
int ebpfMonQueueRoomBegin(ebpfMonQueueRoom *queues, const ebpfMonModuleCore *core); /* as ebpfMonModule.start */
int ebpfMonQueueRoomStop(ebpfMonQueueRoom *queues, double seconds);
void ebpfMonQueueRoomWake(ebpfMonQueueRoom *queues); /* IOCs came or went. Any thread */

/* The published values. Under the lock of ebpfMonModuleLock. */
const ebpfMonQueueValues *ebpfMonQueueRoomGetValues(const ebpfMonQueueRoom *queues);

#endif

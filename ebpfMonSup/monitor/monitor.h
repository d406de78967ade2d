/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the monitor is made of: one struct that the composition root fills in and hands to its threads. Nobody outside
 * this room sees it; each other room gets from the root what it needs.
 */
#ifndef EBPFMON_MONITOR_H
#define EBPFMON_MONITOR_H

#include <stdio.h>

#include <epicsAtomic.h>
#include <epicsMutex.h>

#include "common/ringReader.h"
#include "device/devices.h"
#include "export/export.h"
#include "inventory/inventories.h"
#include "model/ops.h"
#include "publish/publishRoom.h"
#include "put/putRoom.h"
#include "query/queries.h"
#include "search/search.h"
#include "trace/traceRoom.h"
#include "usage/usage.h"
#include "watch/requests.h"
#include "watch/watchRoom.h"

/* How far the monitor has come. */
typedef struct {
    epicsMutexId  lock;
    int           starting, failed; /* a start is under way; the last one failed. Under the lock */
    unsigned      generation;       /* filters that came into force. Under the lock */
    int           running;          /* atomic: the kernel part is loaded, and the threads are there */
} ebpfMonLife;

typedef struct ebpfMonMonitor {
    ebpfMonLife         life;         /* any thread, as its members say */
    ebpfMonSettings     settings;     /* fixed once it runs, as the next */
    ebpfMonUsageConf    usageConf;
    /* These have locks of their own, and are there from the registration on. */
    ebpfMonTargets     *targets;
    ebpfMonRequests    *requests;
    ebpfMonSearch      *search;
    ebpfMonQueries     *queries;
    ebpfMonDevices     *devices;
    ebpfMonInventories  inventories;
    ebpfMonExport      *exporter;
    /* What Base's callers may ask; fixed by the registration. */
    ebpfMonOps          ops;
    ebpfMonMonitorOps   monitorOps;
    ebpfMonQueryOps     queryOps;
    ebpfMonDeviceOps    deviceOps;
    ebpfMonInventoryOps inventoryOps;
    /* The rest is there while the monitor runs. */
    ebpfMonWatchRoom    watch;
    ebpfMonPutRoom      put;
    ebpfMonTraceRoom    trace;
    ebpfMonPublishRoom  publish;
    ebpfMonUsage       *usage;        /* any thread */
    ebpfMonRingReader  *eventThread;  /* these two are there before any thread runs, and as long as one does */
    ebpfMonRingReader  *packetThread; /* NULL: no packets are read */
} ebpfMonMonitor;

static inline int ebpfMonMonitorIsRunning(const ebpfMonMonitor *m)
{
    return epicsAtomicGetIntT(&m->life.running);
}

/* Nonzero: it is being started or runs, so it can not be configured any more; "why" says so. Any thread. */
static inline int ebpfMonMonitorHasStarted(ebpfMonMonitor *m, char *why, size_t size)
{
    int started;

    epicsMutexMustLock(m->life.lock);
    started = m->life.starting || ebpfMonMonitorIsRunning(m);
    epicsMutexUnlock(m->life.lock);
    if (started)
        snprintf(why, size, "already started; call it before iocInit");
    return started;
}

/* wiring.c. Makes what is empty in "m" after ebpfMonWiringFree, in the order in which the rooms need each other, and
 * connects it; the kernel part must be loaded. 0, or -1 without memory: then nothing is left. Free: only while no thread
 * uses the rooms. */
int ebpfMonWiringMake(ebpfMonMonitor *m);
void ebpfMonWiringFree(ebpfMonMonitor *m);

/* eventThread.c, packetThread.c. Events of the kernel part become puts and traces; packets of each network namespace that
 * has a watched IOC, and of our own, become puts, searches and beacons. NULL without memory. */
ebpfMonRingReader *ebpfMonEventThreadNew(ebpfMonMonitor *m);
ebpfMonRingReader *ebpfMonPacketThreadNew(ebpfMonMonitor *m, unsigned ringBytes); /* of the ring of each namespace */

/* operations.c. All but "configure" and "start", which are the root's. GetStatus: done while the monitor "m" runs. */
void ebpfMonOperationsFill(ebpfMonMonitor *m, ebpfMonMonitorOps *ops);
ebpfMonOpStatus ebpfMonMonitorGetStatus(void *m);

#endif

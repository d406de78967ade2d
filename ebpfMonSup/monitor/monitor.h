/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the monitor is made of: one struct that the composition root fills in and hands to its threads. Nobody outside
 * this room sees it; each other room gets from the root what it needs.
 */
#ifndef EBPFMON_MONITOR_H
#define EBPFMON_MONITOR_H

#include <epicsAtomic.h>
#include <epicsMutex.h>

#include "inventory/recSync.h"
#include "model/monitorOps.h"
#include "monitor/eventThread.h"
#include "monitor/packetThread.h"
#include "monitor/publishRoom.h"
#include "monitor/putRoom.h"
#include "monitor/traceRoom.h"
#include "monitor/usageRoom.h"
#include "monitor/watchRoom.h"
#include "query/queries.h"
#include "search/search.h"

/* How far the monitor has come. */
typedef struct {
    epicsMutexId  lock;
    int           starting, failed; /* a start is under way; the last one failed. Under the lock */
    unsigned      generation;       /* filters that came into force. Under the lock */
    ebpfMonFilter early;            /* the filter to begin with; set until the monitor runs. Under the lock */
    ebpfMonRecSyncConf recSync;     /* the newest. Under the lock */
    int           running;          /* atomic: the kernel part is loaded, and the threads are there */
} ebpfMonLife;

typedef struct ebpfMonMonitor {
    ebpfMonLife         life;         /* any thread, as its members say */
    ebpfMonSettings     settings;     /* fixed once it runs */
    ebpfMonTargets     *targets;      /* has a lock of its own */
    ebpfMonSearch      *search;       /* has a lock of its own */
    ebpfMonQueries     *queries;      /* has a lock of its own; there from the registration on */
    ebpfMonWatchRoom    watch;
    ebpfMonPutRoom      put;
    ebpfMonTraceRoom    trace;
    ebpfMonPublishRoom  publish;
    ebpfMonUsageRoom    usage;
    ebpfMonRecSync     *recSync;      /* any thread; has one of its own */
    ebpfMonEventThread  *eventThread;  /* these two are there before any thread runs, and as long as one does */
    ebpfMonPacketThread *packetThread; /* NULL: no packets are read */
} ebpfMonMonitor;

static inline int ebpfMonMonitorIsRunning(const ebpfMonMonitor *m)
{
    return epicsAtomicGetIntT(&m->life.running);
}

#endif

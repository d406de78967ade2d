/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the monitor is made of: one struct that the composition root fills in and hands to its threads. Nobody outside
 * this room sees it; each other room gets from the root what it needs.
 */
#ifndef EBPFMON_MONITOR_H
#define EBPFMON_MONITOR_H

#include "model/monitorOps.h"
#include "monitor/eventThread.h"
#include "monitor/packetThread.h"
#include "monitor/publishRoom.h"
#include "monitor/putRoom.h"
#include "monitor/traceRoom.h"
#include "monitor/watchRoom.h"
#include "search/search.h"

typedef struct ebpfMonMonitor {
    ebpfMonSettings     settings;     /* fixed once it runs */
    ebpfMonTargets     *targets;      /* has a lock of its own */
    ebpfMonSearch      *search;       /* has a lock of its own */
    ebpfMonWatchRoom    watch;
    ebpfMonPutRoom      put;
    ebpfMonTraceRoom    trace;
    ebpfMonPublishRoom  publish;
    ebpfMonEventThread  *eventThread;
    ebpfMonPacketThread *packetThread; /* NULL: no packets are read */
} ebpfMonMonitor;

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the monitor: one struct, which the composition root fills in and gives to its threads. Only this room
 * sees it; each other room gets from the root what it needs.
 */
#ifndef EBPFMON_MONITOR_H
#define EBPFMON_MONITOR_H

#include "common/ringReader.h"
#include "export/log/putLogs.h"
#include "model/audits.h"
#include "model/ops.h"
#include "model/startState.h"
#include "publish/publishRoom.h"
#include "put/putRoom.h"
#include "rules/rules.h"
#include "search/search.h"
#include "trace/traceRoom.h"
#include "watch/requests.h"
#include "watch/watchRoom.h"

typedef struct ebpfMonMonitor {
    ebpfMonSettings     settings;     /* does not change while it runs */
    /* These have locks of their own, and exist from the registration on. */
    ebpfMonStartState   state;
    ebpfMonLosses       losses;
    ebpfMonAudits      *audits;
    ebpfMonTargets     *targets;
    ebpfMonRequests    *requests;
    ebpfMonSearch      *search;
    ebpfMonPacketServers *packetServers;
    ebpfMonRules       *rules;
    ebpfMonPutLogs     *logs;
    /* The operations that records and commands call. The registrar fills them; they do not change afterwards. */
    ebpfMonOps          ops;
    ebpfMonMonitorOps   monitorOps;
    /* The others exist while the monitor runs. */
    ebpfMonWatchRoom    watch;
    ebpfMonPutRoom      put;
    ebpfMonTraceRoom    trace;
    ebpfMonPublishRoom  publish;
    ebpfMonRingReader  *eventThread;  /* this one and the next exist before any thread runs, and as long as one does */
    ebpfMonRingReader  *packetThread; /* NULL: no packets are read */
    uint64_t            silenceEnd;   /* monotonic ns: a silence ended then, and not all know it; 0: no. Event thread */
} ebpfMonMonitor;

/* In wiring.c. Make: makes the parts of "m" that are empty after ebpfMonWiringFree, in the order in which the rooms
 * need each other, and connects them. The kernel part must be loaded. 0; or -1: no memory, and nothing is left. Free:
 * only while no thread uses the rooms. */
int ebpfMonWiringMake(ebpfMonMonitor *m);
void ebpfMonWiringFree(ebpfMonMonitor *m);

/* In eventThread.c and packetThread.c. The event thread makes puts and traces from events of the kernel part. The
 * packet thread makes puts, searches and beacons from packets, of each network namespace that has a watched IOC, and of
 * our own. NULL: no memory. */
ebpfMonRingReader *ebpfMonEventThreadNew(ebpfMonMonitor *m);
ebpfMonRingReader *ebpfMonPacketThreadNew(ebpfMonMonitor *m, unsigned ringBytes); /* "ringBytes": for each namespace */

/* In operations.c. Fills "ops", except "configure" and "start", which root.c fills. */
void ebpfMonOperationsFill(ebpfMonMonitor *m, ebpfMonMonitorOps *ops);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the monitor is made of: one struct that the composition root fills in and hands to its threads. Nobody else sees
 * it; each room gets from the root what it needs.
 */
#ifndef EBPFMON_MONITOR_H
#define EBPFMON_MONITOR_H

#include "common/worker.h"
#include "model/monitorOps.h"
#include "monitor/eventThread.h"
#include "monitor/packetThread.h"
#include "publish/publisher.h"
#include "publish/putPublisher.h"
#include "publish/slowChains.h"
#include "publish/tracePrinter.h"
#include "monitor/watching.h"
#include "watch/target.h"

typedef struct ebpfMonMonitor {
    ebpfMonSettings settings;
    ebpfMonTargets *targets;         /* has a lock of its own */
    ebpfMonWatching watching;
    ebpfMonEventThread  *eventThread;
    ebpfMonPacketThread *packetThread; /* NULL: no packets are read */
    ebpfMonPublisher    *publisher;
    ebpfMonPutPublisher *putPublisher;
    ebpfMonTracePrinter *tracePrinter;
    ebpfMonSlowChains   *slowChains;
} ebpfMonMonitor;

#endif

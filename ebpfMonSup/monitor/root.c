/* SPDX-License-Identifier: BSD-3-Clause */
/* The composition root: loads the kernel part, makes the rooms, starts and stops the threads. */
#include <stdio.h>
#include <unistd.h>

#include <cantProceed.h>
#include <epicsExit.h>
#include <epicsExport.h>
#include <errlog.h>

#include "common/serviceManager.h"
#include "device/deviceOperations.h"
#include "host/procNetns.h"
#include "inventory/inventoryOperations.h"
#include "model/published.h"
#include "monitor/monitor.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "publish/watchdog.h"
#include "query/queryOperations.h"
#include "watch/connectionOwners.h"

#define CLOSURE_FACTOR 6u /* the order, lists of single records, and the table before while it changes */
#define EXPORT_STOP_SECONDS 3.0
#define STOP_SECONDS 5.0 /* queries and devices: as each thread that uses the kernel part */
#define NO_MEMORY "out of memory or threads: raise the limits of this process (ulimit -u, TasksMax), or ask for less " \
                  "by ebpfMonConfigure; then call ebpfMonStart"

static ebpfMonOpStatus configure(void *arg, const ebpfMonSettings *s, char *why, size_t size)
{
    ebpfMonMonitor *m = arg;
    ebpfMonSettings want = *s;

    if (ebpfMonMonitorHasStarted(m, why, size) || ebpfMonSettingsCheck(&want, why, size))
        return ebpfMonOpRefused;
    m->settings = want;
    return ebpfMonOpDone;
}

/* Both stop what runs. Nonzero: a thread did not end in time, and still uses its room and the kernel's tables. */
static int stopReading(ebpfMonMonitor *m)
{
    int left = ebpfMonQueriesStop(m->queries, STOP_SECONDS);

    left |= ebpfMonDevicesStop(m->devices, STOP_SECONDS);
    left |= ebpfMonPublisherStop(m->publish.publisher);
    left |= ebpfMonRingReaderStop(m->eventThread);
    left |= ebpfMonRingReaderStop(m->packetThread);
    return left | ebpfMonUsageStop(m->usage); /* they note uses: it writes what is left */
}

static int stopWatching(ebpfMonMonitor *m)
{
    int left;

    ebpfMonInventoriesStop(&m->inventories);
    left = ebpfMonFollowerStop(m->watch.follower);

    ebpfMonTracePrinterStop(m->publish.tracePrinter);
    return left;
}

/*
 * At the end of the process the threads end, and then the kernel part goes: its tables stay mapped, and its programs
 * loaded, while a thread may still use them. The rooms are not freed, because a record or a command may be in one.
 */
static void stopMonitor(void *arg)
{
    ebpfMonMonitor *m = arg;
    int left;

    if (!ebpfMonMonitorIsRunning(m))
        return;
    epicsAtomicSetIntT(&m->life.running, 0);
    ebpfMonServiceTell("STOPPING=1");
    left = stopReading(m);
    ebpfMonExportStop(m->exporter, EXPORT_STOP_SECONDS);
    left |= stopWatching(m);
    if (left == 0)
        ebpfMonKernelUnload();
}

/* 0, or -1 without memory for a thread: then the caller stops those that were started. */
static int startThreads(ebpfMonMonitor *m)
{
    if (ebpfMonFollowerStart(m->watch.follower))
        return -1;
    if (ebpfMonRingReaderStart(m->eventThread))
        return -1;
    if (m->settings.wireKiB > 0 && (!m->packetThread || ebpfMonRingReaderStart(m->packetThread)))
        errlogSevPrintf(errlogMajor, "ebpfMon: no memory to read packets. Free some, then start again\n");
    if (ebpfMonUsageStart(m->usage) || ebpfMonDevicesBegin(m->devices, m->targets, &m->watch.costs))
        return -1;
    return ebpfMonPublisherStart(m->publish.publisher);
}

/* 0, or -1 with the state Failed. A start that failed leaves nothing behind, so that a second one can succeed; unless
 * a thread did not end: then each further start is refused, because that thread still uses its room. */
static int startMonitor(ebpfMonMonitor *m)
{
    ebpfMonLoadSizes sizes = {
        .maxRecords = m->settings.maxRecords, .maxClosure = m->settings.maxRecords * CLOSURE_FACTOR,
        .maxRoots = m->settings.maxRoots, .ringBytes = m->settings.ringKiB * 1024,
    };
    char why[256];

    if (m->watch.follower) {
        ebpfMonPublishedSetState(ebpfMonFailed, "a thread of an earlier start did not end: restart this IOC");
        return -1;
    }
    ebpfMonWatchdogStart(); /* without it the monitor runs all the same; it feeds the service manager's, also if this fails */
    ebpfMonPublishedSetState(ebpfMonStarting, "loading the eBPF programs");
    if (ebpfMonKernelLoad(&sizes, why, sizeof(why))) {
        ebpfMonPublishedSetState(ebpfMonFailed, why);
        return -1;
    }
    if (ebpfMonWiringMake(m)) {
        ebpfMonPublishedSetState(ebpfMonFailed, NO_MEMORY);
        ebpfMonKernelUnload();
        return -1;
    }
    ebpfMonConnectionOwnersRead(0, ebpfMonProcNetns(getpid()), ebpfMonKernelSetOwner);
    ebpfMonExportStart(m->exporter);
    if (startThreads(m)) {
        ebpfMonPublishedSetState(ebpfMonFailed, NO_MEMORY);
        if ((stopReading(m) | stopWatching(m)) == 0) {
            ebpfMonWiringFree(m);
            ebpfMonKernelUnload();
        }
        return -1;
    }
    ebpfMonQueriesBegin(m->queries, m->targets, &m->watch.costs);
    ebpfMonInventoriesBegin(&m->inventories);
    epicsAtExit(stopMonitor, m);
    return 0;
}

static long start(void *arg)
{
    ebpfMonMonitor *m = arg;
    int busy, running, ok;

    epicsMutexMustLock(m->life.lock);
    busy = m->life.starting;
    running = ebpfMonMonitorIsRunning(m);
    if (!busy && !running)
        m->life.starting = 1;
    epicsMutexUnlock(m->life.lock);
    if (busy || running)
        return busy ? -1 : 0;
    ok = startMonitor(m) == 0;
    epicsMutexMustLock(m->life.lock);
    m->life.starting = 0;
    m->life.failed = !ok;
    epicsAtomicSetIntT(&m->life.running, ok);
    epicsMutexUnlock(m->life.lock);
    return ok ? 0 : -1;
}

static void setOps(ebpfMonMonitor *m)
{
    ebpfMonOperationsFill(m, &m->monitorOps);
    m->monitorOps.configure = configure;
    m->monitorOps.start = start;
    ebpfMonQueryOperationsFill(m->queries, &m->queryOps);
    ebpfMonDeviceOperationsFill(m->devices, &m->deviceOps);
    m->inventories.getStatus = ebpfMonMonitorGetStatus;
    m->inventories.statusArg = m;
    ebpfMonInventoryOperationsFill(&m->inventories, &m->inventoryOps);
    m->ops = (ebpfMonOps){ &m->monitorOps, ebpfMonExportGetOps(m->exporter), &m->queryOps, &m->deviceOps, &m->inventoryOps };
    ebpfMonOpsSet(&m->ops);
}

/* The monitor of this process. It is never freed: until the process ends a record or a command may be in it. */
static void ebpfMonMonitorRegistrar(void)
{
    static const ebpfMonSettings defaults; /* all 0 */
    ebpfMonMonitor *m = callocMustSucceed(1, sizeof(*m), "ebpfMon");
    char why[256];

    m->life.lock = epicsMutexMustCreate();
    configure(m, &defaults, why, sizeof(why));
    m->targets = ebpfMonTargetsNew();
    m->requests = ebpfMonRequestsNew(&ebpfMonFilterDefault);
    m->search = ebpfMonSearchNew();
    m->queries = ebpfMonQueriesNew();
    m->devices = ebpfMonDevicesNew();
    m->exporter = ebpfMonExportNew();
    if (!m->targets || !m->requests || !m->search || !m->queries || !m->devices || !m->exporter ||
        ebpfMonInventoriesMake(&m->inventories, m->targets))
        cantProceed("ebpfMon: no memory to begin");
    setOps(m);
}

epicsExportRegistrar(ebpfMonMonitorRegistrar);

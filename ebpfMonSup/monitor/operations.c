/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "inventory/inventoryOperations.h"
#include "model/published.h"
#include "monitor/monitor.h"
#include "publish/lists.h"
#include "publish/report.h"

/* Of the one monitor of this process: the operations have no context, because iocsh and record support have none. */
static ebpfMonMonitor *monitor;
static ebpfMonMonitorOps ops;

static long setFilter(const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    ebpfMonFilter f = *filter;
    unsigned number;

    memset(answer, 0, sizeof(*answer));
    if (ebpfMonFilterCheck(&f, why, size))
        return -1;
    number = ebpfMonRequestsSetFilter(monitor->requests, &f);
    epicsMutexMustLock(monitor->life.lock);
    if (ebpfMonMonitorIsRunning(monitor)) {
        answer->number = number;
        monitor->life.generation++;
    }
    answer->generation = monitor->life.generation;
    epicsMutexUnlock(monitor->life.lock);
    if (answer->number)
        answer->matching = ebpfMonTargetsCountMatching(monitor->targets, f.record);
    return 0;
}

static int isFilterApplied(unsigned number)
{
    return ebpfMonMonitorIsRunning(monitor) && ebpfMonRequestsIsApplied(monitor->requests, number);
}

static void getFilter(ebpfMonFilter *filter)
{
    ebpfMonRequestsGetFilter(monitor->requests, filter);
}

/* Done: the monitor runs. */
static ebpfMonOpStatus getStatus(void)
{
    int failed;

    if (ebpfMonMonitorIsRunning(monitor))
        return ebpfMonOpDone;
    epicsMutexMustLock(monitor->life.lock);
    failed = monitor->life.failed;
    epicsMutexUnlock(monitor->life.lock);
    return failed ? ebpfMonOpStartFailed : ebpfMonOpNotStarted;
}

/* A level, or the reference count, for the IOCs that match. */
static ebpfMonOpStatus setRule(int (*set)(ebpfMonRequests *requests, const char *pattern, int value), const char *given,
                               int value, char *why, size_t size)
{
    char pattern[EBPFMON_PATTERN_SIZE];
    ebpfMonOpStatus status = getStatus();

    if (status != ebpfMonOpDone)
        return status;
    /* one that is too long is copied without its terminator, and is refused for that */
    memcpy(pattern, given, strnlen(given, sizeof(pattern) - 1) + 1);
    if (ebpfMonPatternCheck(pattern, "IOC", why, size))
        return ebpfMonOpRefused;
    return set(monitor->requests, pattern, value) ? ebpfMonOpFull : ebpfMonOpDone;
}

static ebpfMonOpStatus setLevel(const char *pattern, int level, char *why, size_t size)
{
    return setRule(ebpfMonRequestsSetLevel, pattern, level, why, size);
}

static ebpfMonOpStatus setReference(const char *pattern, int on, char *why, size_t size)
{
    return setRule(ebpfMonRequestsSetReference, pattern, on, why, size);
}

static void resetLost(void)
{
    if (ebpfMonMonitorIsRunning(monitor))
        ebpfMonPublisherResetLost(monitor->publish.publisher);
}

static ebpfMonOpStatus addIocs(ebpfMonTextReport *report)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone) {
        ebpfMonListsAddIocs(report, monitor->targets);
        ebpfMonListsAddAside(report, monitor->watch.follower);
    }
    return status;
}

static ebpfMonOpStatus addRecords(ebpfMonTextReport *report, const char *ioc, const char *record)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone)
        ebpfMonListsAddRecords(report, monitor->targets, ioc, record);
    return status;
}

static ebpfMonOpStatus addChains(ebpfMonTextReport *report, const char *root)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone)
        ebpfMonListsAddChains(report, root);
    return status;
}

static ebpfMonOpStatus addClients(ebpfMonTextReport *report, const char *ioc)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone)
        ebpfMonUsageAddClients(monitor->usage, report, ioc);
    return status;
}

static ebpfMonOpStatus addUsers(ebpfMonTextReport *report, const char *pv)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone)
        ebpfMonUsageAddUsers(monitor->usage, report, pv);
    return status;
}

static ebpfMonOpStatus setUsage(const char *file, int megabytes, char *why, size_t size)
{
    if (ebpfMonMonitorHasStarted(monitor, why, size) ||
        ebpfMonUsageConfSet(&monitor->usageConf, file, megabytes, why, size))
        return ebpfMonOpRefused;
    return ebpfMonOpDone;
}

static ebpfMonOpStatus addUnused(ebpfMonTextReport *report, double days, const char *pattern, char *why, size_t size)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone && ebpfMonUsageAddUnused(monitor->usage, report, days, pattern, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static void publishClients(void)
{
    if (ebpfMonMonitorIsRunning(monitor))
        ebpfMonUsagePublish(monitor->usage);
}

static ebpfMonOpStatus traceRecord(ebpfMonTextReport *report, const char *record, unsigned count, char *why, size_t size)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone &&
        ebpfMonTracePrinterSetPattern(monitor->publish.tracePrinter, report, record, count, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus addReport(ebpfMonTextReport *report, int level)
{
    const ebpfMonReportSources from = { monitor->targets, monitor->requests, &monitor->watch.costs };
    ebpfMonOpStatus status = getStatus();

    ebpfMonReportAddHead(report, status == ebpfMonOpDone ? "runs" :
                         status == ebpfMonOpStartFailed ? "failed to start" : "not started", &monitor->settings);
    if (status == ebpfMonOpDone)
        ebpfMonReportAdd(report, &from, level);
    return ebpfMonOpDone;
}

void ebpfMonOperationsRegister(ebpfMonMonitor *m,
                               ebpfMonOpStatus (*configure)(const ebpfMonSettings *settings, char *why, size_t size),
                               long (*start)(void))
{
    monitor = m;
    ops = (ebpfMonMonitorOps){
        .configure = configure, .start = start, .setFilter = setFilter, .isFilterApplied = isFilterApplied,
        .getFilter = getFilter, .setLevel = setLevel, .setReference = setReference, .resetLost = resetLost,
        .addIocs = addIocs, .addRecords = addRecords, .addChains = addChains, .addClients = addClients,
        .addUsers = addUsers, .setUsage = setUsage, .addUnused = addUnused, .publishClients = publishClients,
        .trace = traceRecord, .addReport = addReport,
    };
    ebpfMonMonitorOpsRegister(&ops);
    ebpfMonInventoryOperationsRegister(&m->inventories, getStatus);
}

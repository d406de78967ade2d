/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "inventory/inventoryDiff.h"
#include "inventory/inventoryFile.h"
#include "model/published.h"
#include "monitor/operations.h"
#include "publish/lists.h"
#include "publish/report.h"

#define LOOK_SECONDS 5.0
#define USAGE_MEGABYTES_MAX 100000

/* Of the one monitor of this process: the operations have no context, because iocsh and record support have none. */
static ebpfMonMonitor *monitor;
static ebpfMonMonitorOps ops;

static long setFilter(const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    ebpfMonFilter f = *filter;

    memset(answer, 0, sizeof(*answer));
    if (ebpfMonFilterCheck(&f, why, size))
        return -1;
    epicsMutexMustLock(monitor->life.lock);
    if (ebpfMonMonitorIsRunning(monitor)) {
        answer->number = ebpfMonRequestsSetFilter(monitor->watch.requests, &f);
        monitor->life.generation++;
    } else {
        monitor->life.early = f;
    }
    answer->generation = monitor->life.generation;
    epicsMutexUnlock(monitor->life.lock);
    if (answer->number)
        answer->matching = ebpfMonTargetsCountMatching(monitor->targets, f.record);
    return 0;
}

static int isFilterApplied(unsigned number)
{
    return ebpfMonMonitorIsRunning(monitor) && ebpfMonRequestsIsApplied(monitor->watch.requests, number);
}

static void getFilter(ebpfMonFilter *filter)
{
    epicsMutexMustLock(monitor->life.lock);
    if (ebpfMonMonitorIsRunning(monitor))
        ebpfMonRequestsGetFilter(monitor->watch.requests, filter);
    else
        *filter = monitor->life.early;
    epicsMutexUnlock(monitor->life.lock);
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
    return set(monitor->watch.requests, pattern, value) ? ebpfMonOpFull : ebpfMonOpDone;
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

/* A look that takes longer is not waited for: then what was seen before is shown, with its age. */
static ebpfMonOpStatus addAfterLook(void (*add)(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pattern),
                                    ebpfMonTextReport *report, const char *pattern)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone) {
        if (ebpfMonClientLookerLook(monitor->usage.looker, LOOK_SECONDS))
            ebpfMonTextReportAdd(report, "The look takes longer than %.0f s. As it was before:\n", LOOK_SECONDS);
        add(report, monitor->usage.table, pattern);
    }
    return status;
}

static ebpfMonOpStatus addClients(ebpfMonTextReport *report, const char *ioc)
{
    return addAfterLook(ebpfMonClientReportAddClients, report, ioc);
}

static ebpfMonOpStatus addUsers(ebpfMonTextReport *report, const char *pv)
{
    return addAfterLook(ebpfMonClientReportAddUsers, report, pv);
}

static ebpfMonOpStatus setUsage(const char *file, int megabytes, char *why, size_t size)
{
    ebpfMonUsageConf *conf = &monitor->usage.conf;
    int started;

    epicsMutexMustLock(monitor->life.lock);
    started = monitor->life.starting || ebpfMonMonitorIsRunning(monitor);
    epicsMutexUnlock(monitor->life.lock);
    if (started)
        snprintf(why, size, "already started; call it before iocInit");
    else if (strlen(file) >= sizeof(conf->file))
        snprintf(why, size, "the name of the file has more than %zu characters", sizeof(conf->file) - 1);
    else if (megabytes < 0 || megabytes > USAGE_MEGABYTES_MAX)
        snprintf(why, size, "%d MB: choose 1 to %d, or 0 for %d", megabytes, USAGE_MEGABYTES_MAX, EBPFMON_USAGE_MEGABYTES);
    else {
        strcpy(conf->file, file);
        conf->megabytes = megabytes ? (unsigned)megabytes : EBPFMON_USAGE_MEGABYTES;
        return ebpfMonOpDone;
    }
    return ebpfMonOpRefused;
}

/* What is used now is in the file before it is read. */
static ebpfMonOpStatus addUnused(ebpfMonTextReport *report, double days, const char *pattern, char *why, size_t size)
{
    ebpfMonOpStatus status = getStatus();
    ebpfMonUsageRoom *room = &monitor->usage;
    ebpfMonUseStore *store;

    if (status != ebpfMonOpDone)
        return status;
    if (!room->conf.file[0]) {
        snprintf(why, size, EBPFMON_NO_USAGE ", before iocInit");
        return ebpfMonOpRefused;
    }
    if (ebpfMonClientLookerLook(room->looker, LOOK_SECONDS) || ebpfMonUseKeeperFlush(room->keeper, LOOK_SECONDS))
        ebpfMonTextReportAdd(report, "The newest uses are not in the file (see USAGE_MSG).\n");
    store = ebpfMonUseStoreOpen(room->conf.file, 0, 0, why, size);
    if (!store || ebpfMonUnusedReportAdd(report, room->table, monitor->targets, store, days, pattern, why, size))
        status = ebpfMonOpRefused;
    ebpfMonUseStoreClose(store);
    return status;
}

static void publishClients(void)
{
    if (ebpfMonMonitorIsRunning(monitor))
        ebpfMonClientLookerPublish(monitor->usage.looker);
}

static ebpfMonOpStatus traceRecord(ebpfMonTextReport *report, const char *record, unsigned count, char *why, size_t size)
{
    ebpfMonOpStatus status = getStatus();

    if (status == ebpfMonOpDone &&
        ebpfMonTracePrinterSetPattern(monitor->publish.tracePrinter, report, record, count, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus setRecSync(const ebpfMonRecSyncConf *conf)
{
    int isRefused = 0;

    epicsMutexMustLock(monitor->life.lock);
    monitor->life.recSync = *conf;
    if (ebpfMonMonitorIsRunning(monitor))
        isRefused = ebpfMonRecSyncConfigure(monitor->recSync, conf);
    epicsMutexUnlock(monitor->life.lock);
    return isRefused ? ebpfMonOpStartFailed : ebpfMonOpDone;
}

static ebpfMonOpStatus writeInventory(const char *path, const char *pattern, ebpfMonTextReport *report, char *why, size_t size)
{
    ebpfMonOpStatus status = getStatus();
    ebpfMonInventoryCount count;

    if (status != ebpfMonOpDone)
        return status;
    if (ebpfMonInventoryFileWrite(monitor->targets, path, pattern, &count, why, size))
        return ebpfMonOpRefused;
    ebpfMonTextReportAdd(report, "%s: %u IOCs, %u records\n", path, count.iocs, count.records);
    if (count.failed)
        ebpfMonTextReportAdd(report, "%u IOCs could not be read. %s\n", count.failed, why);
    return ebpfMonOpDone;
}

static ebpfMonOpStatus compareInventories(const char *before, const char *after, ebpfMonTextReport *report, char *why,
                                          size_t size)
{
    ebpfMonInventoryDifference d;

    if (ebpfMonInventoryDiffFiles(before, after, report, &d, why, size))
        return ebpfMonOpRefused;
    ebpfMonTextReportAdd(report, "%u records added, %u removed, %u changed, %u the same\n", d.added, d.removed, d.changed, d.same);
    if (d.odd)
        ebpfMonTextReportAdd(report, "%u lines are none of an inventory\n", d.odd);
    return ebpfMonOpDone;
}

static ebpfMonOpStatus addReport(ebpfMonTextReport *report, int level)
{
    const ebpfMonReportSources from = { monitor->targets, monitor->watch.requests, &monitor->watch.costs };
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
        .trace = traceRecord, .setRecSync = setRecSync, .writeInventory = writeInventory,
        .compareInventories = compareInventories, .addReport = addReport,
    };
    ebpfMonMonitorOpsRegister(&ops);
}

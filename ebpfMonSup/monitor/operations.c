/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <errlog.h>

#include "monitor/operations.h"
#include "publish/lists.h"
#include "publish/report.h"

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

/* 0, or -1 with a message. */
static int requireRunning(const char *command)
{
    int failed;

    if (ebpfMonMonitorIsRunning(monitor))
        return 0;
    epicsMutexMustLock(monitor->life.lock);
    failed = monitor->life.failed;
    epicsMutexUnlock(monitor->life.lock);
    errlogSevPrintf(errlogMajor, "%s: ebpfMon does not run (%s)\n", command,
                    failed ? "see the PV STATE_MSG; ebpfMonStart tries again" : "it starts with iocInit");
    return -1;
}

/* A level, or the reference count, for the IOCs that match. */
static long setRule(const char *command, const char *given,
                    int (*set)(ebpfMonRequests *requests, const char *pattern, int value), int value)
{
    char pattern[EBPFMON_PATTERN_SIZE], why[160];

    if (requireRunning(command))
        return -1;
    /* one that is too long is copied without its terminator, and is refused for that */
    memcpy(pattern, given, strnlen(given, sizeof(pattern) - 1) + 1);
    if (ebpfMonPatternCheck(pattern, "IOC", why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "%s: %s\n", command, why);
        return -1;
    }
    if (set(monitor->watch.requests, pattern, value) == 0)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: there are %d rules already. ebpfMonReport 1 lists them; cancel one by "
                    "ebpfMonLevel PATTERN filter or ebpfMonReference PATTERN 0, or take one pattern for "
                    "several IOCs\n", command, EBPFMON_LEVEL_RULES_MAX);
    return -1;
}

static long setLevel(const char *pattern, int level)
{
    return setRule("ebpfMonLevel", pattern, ebpfMonRequestsSetLevel, level);
}

static long setReference(const char *pattern, int on)
{
    return setRule("ebpfMonReference", pattern, ebpfMonRequestsSetReference, on);
}

static void resetLost(void)
{
    if (ebpfMonMonitorIsRunning(monitor))
        ebpfMonPublisherResetLost(monitor->publish.publisher);
}

static long listIocs(void)
{
    ebpfMonTextReport *text;

    if (requireRunning("ebpfMonIocs"))
        return -1;
    text = ebpfMonTextReportNew();
    ebpfMonListsAddIocs(text, monitor->targets);
    ebpfMonListsAddAside(text, monitor->watch.follower);
    ebpfMonTextReportPrint(text);
    return 0;
}

static long listRecords(const char *ioc, const char *record)
{
    ebpfMonTextReport *text;

    if (requireRunning("ebpfMonRecords"))
        return -1;
    text = ebpfMonTextReportNew();
    ebpfMonListsAddRecords(text, monitor->targets, ioc, record);
    ebpfMonTextReportPrint(text);
    return 0;
}

static long listChains(const char *root)
{
    ebpfMonTextReport *text;

    if (requireRunning("ebpfMonChains"))
        return -1;
    text = ebpfMonTextReportNew();
    ebpfMonListsAddChains(text, root);
    ebpfMonTextReportPrint(text);
    return 0;
}

static long traceRecord(const char *record, unsigned count)
{
    if (requireRunning("ebpfMonTrace"))
        return -1;
    return ebpfMonTracePrinterSetPattern(monitor->publish.tracePrinter, record, count);
}

static void report(int level)
{
    const ebpfMonReportSources from = { monitor->targets, monitor->watch.requests, &monitor->watch.costs };
    const ebpfMonSettings *s = &monitor->settings;
    ebpfMonTextReport *text = ebpfMonTextReportNew();
    int running = ebpfMonMonitorIsRunning(monitor), failed;

    epicsMutexMustLock(monitor->life.lock);
    failed = monitor->life.failed;
    epicsMutexUnlock(monitor->life.lock);
    ebpfMonTextReportAdd(text, "ebpfMon: %s\n", running ? "runs" : failed ? "failed to start" : "not started");
    ebpfMonTextReportAdd(text, "  records at most %u, chain roots %u, event ring %u KiB%s\n", s->maxRecords, s->maxRoots,
                         s->ringKiB, s->watchSelf ? ", watches itself" : "");
    if (running)
        ebpfMonReportAdd(text, &from, level);
    ebpfMonTextReportPrint(text);
}

void ebpfMonOperationsRegister(ebpfMonMonitor *m, long (*configure)(const ebpfMonSettings *settings),
                               long (*start)(void))
{
    monitor = m;
    ops = (ebpfMonMonitorOps){
        .configure = configure, .start = start, .setFilter = setFilter, .isFilterApplied = isFilterApplied,
        .getFilter = getFilter, .setLevel = setLevel, .setReference = setReference, .resetLost = resetLost,
        .listIocs = listIocs, .listRecords = listRecords, .listChains = listChains, .trace = traceRecord, .report = report,
    };
    ebpfMonMonitorOpsRegister(&ops);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "model/published.h"
#include "module/modules.h"
#include "monitor/monitor.h"
#include "publish/report.h"

static long setFilter(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    ebpfMonMonitor *m = arg;
    ebpfMonFilter f = *filter;
    unsigned number;

    memset(answer, 0, sizeof(*answer));
    if (ebpfMonFilterCheck(&f, why, size))
        return -1;
    number = ebpfMonRequestsSetFilter(m->requests, &f);
    if (ebpfMonStartStateCountFilter(m->state, &answer->generation)) {
        answer->number = number;
        answer->matching = ebpfMonTargetsCountMatching(m->targets, f.record);
    }
    return 0;
}

static int isFilterApplied(void *arg, unsigned number)
{
    ebpfMonMonitor *m = arg;

    return ebpfMonStartStateIsRunning(m->state) && ebpfMonRequestsIsApplied(m->requests, number);
}

static void getFilterInForce(void *arg, ebpfMonFilter *filter)
{
    ebpfMonMonitor *m = arg;

    ebpfMonRequestsGetFilter(m->requests, filter);
}

/* Sets a level, or the reference count, for the matching IOCs. */
static ebpfMonOpStatus setRule(ebpfMonMonitor *m, int (*set)(ebpfMonRequests *requests, const char *pattern, int value),
                               const char *given, int value, char *why, size_t size)
{
    char pattern[EBPFMON_PATTERN_SIZE];
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status != ebpfMonOpDone)
        return status;
    if (ebpfMonPatternRead(pattern, given, "IOC", why, size))
        return ebpfMonOpRefused;
    return set(m->requests, pattern, value) ? ebpfMonOpFull : ebpfMonOpDone;
}

static ebpfMonOpStatus setLevel(void *arg, const char *pattern, int level, char *why, size_t size)
{
    return setRule(arg, ebpfMonRequestsSetLevel, pattern, level, why, size);
}

static int getLevel(void *arg, unsigned i, char pattern[EBPFMON_PATTERN_SIZE])
{
    ebpfMonMonitor *m = arg;
    ebpfMonLevelRule rules[EBPFMON_LEVEL_RULES_MAX];
    unsigned count = ebpfMonRequestsGetLevelRules(m->requests, rules);

    for (unsigned n = 0; n < count; n++) {
        if (rules[n].level < 0 || i-- != 0)
            continue;
        strcpy(pattern, rules[n].pattern);
        return rules[n].level;
    }
    return -1;
}

static ebpfMonOpStatus setReference(void *arg, const char *pattern, int on, char *why, size_t size)
{
    return setRule(arg, ebpfMonRequestsSetReference, pattern, on, why, size);
}

static void resetLost(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonModulesResetLost();
    if (ebpfMonStartStateIsRunning(m->state))
        ebpfMonPublisherResetLost(m->publish.publisher);
}

static void acknowledgeGone(void *arg)
{
    ebpfMonMonitor *m = arg;

    if (ebpfMonStartStateIsRunning(m->state))
        ebpfMonPublisherAcknowledgeGone(m->publish.publisher);
}

static ebpfMonOpStatus addIocs(void *arg, ebpfMonTextReport *report)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status == ebpfMonOpDone) {
        ebpfMonListsAddIocs(report, m->targets);
        ebpfMonListsAddAside(report, m->watch.follower);
    }
    return status;
}

static ebpfMonOpStatus addRecords(void *arg, ebpfMonTextReport *report, const char *ioc, const char *record)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status == ebpfMonOpDone)
        ebpfMonListsAddRecords(report, m->targets, ioc, record);
    return status;
}

static ebpfMonOpStatus addChains(void *arg, ebpfMonTextReport *report, const char *root)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status == ebpfMonOpDone)
        ebpfMonListsAddChains(report, root);
    return status;
}

static ebpfMonOpStatus addClients(void *arg, ebpfMonTextReport *report, const char *ioc)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status == ebpfMonOpDone)
        ebpfMonUsageAddClients(m->usage, report, ioc);
    return status;
}

static ebpfMonOpStatus addUsers(void *arg, ebpfMonTextReport *report, const char *pv)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status == ebpfMonOpDone)
        ebpfMonUsageAddUsers(m->usage, report, pv);
    return status;
}

static void publishClients(void *arg)
{
    ebpfMonMonitor *m = arg;

    if (ebpfMonStartStateIsRunning(m->state))
        ebpfMonUsagePublish(m->usage);
}

static ebpfMonOpStatus traceRecord(void *arg, ebpfMonTextReport *report, const char *record, unsigned count, char *why,
                                   size_t size)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    if (status == ebpfMonOpDone &&
        ebpfMonTracePrinterSetPattern(m->publish.tracePrinter, report, record, count, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus addReport(void *arg, ebpfMonTextReport *report, int level)
{
    ebpfMonMonitor *m = arg;
    const ebpfMonReportSources from = { m->targets, m->requests, &m->watch.costs };
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(m->state);

    ebpfMonReportAddHead(report, status == ebpfMonOpDone ? "runs" :
                         status == ebpfMonOpStartFailed ? "failed to start" : "not started", &m->settings);
    if (status == ebpfMonOpDone)
        ebpfMonReportAdd(report, &from, level);
    return ebpfMonOpDone;
}

void ebpfMonOperationsFill(ebpfMonMonitor *m, ebpfMonMonitorOps *ops)
{
    *ops = (ebpfMonMonitorOps){
        .arg = m, .setFilter = setFilter, .isFilterApplied = isFilterApplied,
        .getFilter = getFilterInForce, .setLevel = setLevel, .getLevel = getLevel,
        .setReference = setReference, .resetLost = resetLost, .acknowledgeGone = acknowledgeGone,
        .addIocs = addIocs, .addRecords = addRecords, .addChains = addChains, .addClients = addClients,
        .addUsers = addUsers, .publishClients = publishClients,
        .trace = traceRecord, .addReport = addReport,
    };
}

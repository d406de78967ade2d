/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/textReport.h"
#include "model/filter.h"
#include "model/ops.h"
#include "module/modules.h"
#include "monitor/monitor.h"
#include "publish/lists.h"

static long setFilter(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    ebpfMonMonitor *m = arg;
    ebpfMonFilter f = *filter;
    unsigned number;

    memset(answer, 0, sizeof(*answer));
    if (ebpfMonFilterCheck(&f, why, size))
        return -1;
    number = ebpfMonRequestsSetFilter(m->requests, &f);
    if (ebpfMonStartStateCountFilter(&m->state, &answer->generation)) {
        answer->number = number;
        answer->matching = ebpfMonTargetsCountMatching(m->targets, f.ioc, f.record);
    }
    return 0;
}

static int isFilterApplied(void *arg, unsigned number)
{
    ebpfMonMonitor *m = arg;

    return ebpfMonStartStateIsRunning(&m->state) && ebpfMonRequestsIsApplied(m->requests, number);
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
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(&m->state);

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
    if (ebpfMonStartStateIsRunning(&m->state))
        ebpfMonPublisherResetLost(m->publish.publisher);
}

static void acknowledgeGone(void *arg)
{
    ebpfMonMonitor *m = arg;

    if (ebpfMonStartStateIsRunning(&m->state))
        ebpfMonPublisherAcknowledgeGone(m->publish.publisher);
}

static ebpfMonOpStatus addList(void *arg, ebpfMonList of, ebpfMonTextReport *report, const char *pattern,
                               const char *record)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(&m->state);

    if (status != ebpfMonOpDone)
        return status;
    switch (of) {
    case ebpfMonListIocs:    ebpfMonListsAddIocs(report, m->targets, m->watch.follower); break;
    case ebpfMonListRecords: ebpfMonListsAddRecords(report, m->targets, pattern, record); break;
    case ebpfMonListChains:  ebpfMonListsAddChains(report, pattern); break;
    }
    return ebpfMonOpDone;
}

static ebpfMonOpStatus traceRecord(void *arg, ebpfMonTextReport *report, const char *record, unsigned count, char *why,
                                   size_t size)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(&m->state);

    if (status == ebpfMonOpDone &&
        ebpfMonTracePrinterSetPattern(m->publish.tracePrinter, report, record, count, why, size))
        status = ebpfMonOpRefused;
    return status;
}

static ebpfMonOpStatus addReport(void *arg, ebpfMonTextReport *report, int level)
{
    ebpfMonMonitor *m = arg;
    ebpfMonOpStatus status = ebpfMonStartStateGetStatus(&m->state);

    ebpfMonTextReportAdd(report, "ebpfMon: %s\n", status == ebpfMonOpDone ? "runs" :
                         status == ebpfMonOpStartFailed ? "failed to start" : "not started");
    ebpfMonTextReportAdd(report, "  event ring %u KiB, packet rings %d KiB each%s\n", m->settings.ringKiB,
                         m->settings.wireKiB, m->settings.watchSelf ? ", watches itself" : "");
    if (status == ebpfMonOpDone)
        ebpfMonListsAddReport(report, m->targets, m->requests, &m->watch.costs, level);
    return ebpfMonOpDone;
}

void ebpfMonOperationsFill(ebpfMonMonitor *m, ebpfMonMonitorOps *ops)
{
    *ops = (ebpfMonMonitorOps){
        .arg = m, .setFilter = setFilter, .isFilterApplied = isFilterApplied,
        .getFilter = getFilterInForce, .setLevel = setLevel, .getLevel = getLevel,
        .setReference = setReference, .resetLost = resetLost, .acknowledgeGone = acknowledgeGone,
        .addList = addList, .trace = traceRecord, .addReport = addReport,
    };
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/published.h"
#include "model/filter.h"
#include "probe/kernelLoad.h"
#include "probe/kernelRoots.h"
#include "probe/kernelTables.h"
#include "publish/lists.h"
#include "publish/report.h"

static void addFilter(ebpfMonTextReport *report, ebpfMonRequests *requests)
{
    ebpfMonFilter f;

    ebpfMonRequestsGetFilter(requests, &f);
    ebpfMonTextReportAdd(report, "  filter: IOCs \"%s\" at level %s, records \"%s\", fields \"%s\", hosts \"%s\", "
                         "users \"%s\"\n", f.ioc, ebpfMonLevelName(f.level), f.record, f.field, f.host, f.user);
    ebpfMonTextReportAdd(
        report, "          slow chains from %g us, one in %u traced, timed in %g %% of the time, budget %g %%\n",
        f.slowUs, f.sample, f.timed, f.budget);
}

static void addKernel(ebpfMonTextReport *report, const ebpfMonCosts *costs)
{
    ebpfMonTextReportAdd(
        report,
        "  kernel %s: bpf_loop %s, uprobe_multi %s, receives %s, inet_sock_set_state %s, return probes "
        "under seccomp %s\n",
        ebpfMonKernelRelease(), ebpfMonFeature.loop ? "yes" : "no", ebpfMonFeature.uprobeMulti ? "yes" : "no",
        ebpfMonFeature.recvLength ? "yes" : "no", ebpfMonFeature.connectState ? "yes" : "no",
        ebpfMonFeature.returnUnderSeccomp ? "yes" : "no");
    ebpfMonTextReportAdd(report,
                         "  one trap costs %.0f ns (return %.0f, single-stepped %.0f; after a pause %.0f more)\n",
                         costs->entryNs, costs->returnNs, costs->steppedNs, costs->coldNs);
}

static void addState(ebpfMonTextReport *report)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    ebpfMonTextReportAdd(report, "  state: %s\n", published->stateMessage);
    ebpfMonTextReportAdd(report, "  %llu puts, %llu processings, %llu slow chains, %llu events lost\n",
                         (unsigned long long)published->puts.count, (unsigned long long)published->processings.count,
                         (unsigned long long)published->chains.slowCount, (unsigned long long)published->losses.count);
    for (unsigned i = 0; i < published->losses.kinds; i++)
        if (published->losses.by[i].count)
            ebpfMonTextReportAdd(report, "    lost: %s %llu\n", published->losses.by[i].reason,
                                 (unsigned long long)published->losses.by[i].count);
    ebpfMonTextReportAdd(report, "  CPU %.2f %%, memory %.1f MB, taken from the IOCs %.3f %%\n", published->costs.cpu,
                         published->costs.memory, published->costs.iocs);
    ebpfMonPublishedUnlock();
}

static void addRules(ebpfMonTextReport *report, ebpfMonRequests *requests)
{
    ebpfMonLevelRule rule[EBPFMON_LEVEL_RULES_MAX];
    unsigned n = ebpfMonRequestsGetLevelRules(requests, rule);

    ebpfMonTextReportAdd(report, "  rules: %u of %d, the last that fits an IOC counts\n", n, EBPFMON_LEVEL_RULES_MAX);
    for (unsigned i = 0; i < n; i++)
        if (rule[i].level >= 0)
            ebpfMonTextReportAdd(report, "    ebpfMonLevel \"%s\" %s\n", rule[i].pattern,
                                 ebpfMonLevelName((ebpfMonLevel)rule[i].level));
        else
            ebpfMonTextReportAdd(report, "    ebpfMonReference \"%s\" %d\n", rule[i].pattern, rule[i].reference);
}

static void addWatchedRecords(ebpfMonTextReport *report)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    ebpfMonTextReportAdd(report, "  watched records: %u of %d\n", published->watched.count, EBPFMON_WATCH_MAX);
    for (unsigned i = 0; i < published->watched.count; i++)
        ebpfMonTextReportAdd(report, "    %s%s\n", published->watched.row[i].record,
                             published->watched.row[i].found ? "" : ": no watched IOC has it");
    ebpfMonPublishedUnlock();
}

static void addSlots(ebpfMonTextReport *report, ebpfMonTargets *targets)
{
    const ebpfMonLoadSizes *size = &ebpfMonKernelTables()->size;
    unsigned records = 0, places = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        records += t->slot != UINT32_MAX ? t->cat->count : 0;
        places += t->closureAt != UINT32_MAX ? t->closureCount : 0;
        places += t->oldClosureAt != UINT32_MAX ? t->oldClosureCount : 0;
    }
    ebpfMonTargetsUnlock(targets);
    ebpfMonTextReportAdd(report, "  slots used: records %u of %u, closures %u of %u, chain roots %u of %u\n", records,
                         size->maxRecords, places, size->maxClosure, ebpfMonKernelCountRoots(), size->maxRoots);
}

static void addSites(ebpfMonTextReport *report, const ebpfMonBinary *b)
{
    static const char *const classNames[] = { "not there", "emulated", "single-stepped: dear" };

    ebpfMonTextReportAdd(report, "    %s build-id %s\n", b->path, b->buildId[0] ? b->buildId : "none");
    for (int i = 0; i < ebpfMonFnCount; i++)
        ebpfMonTextReportAdd(report, "      %-18s +%-3u %-6s %s%s\n", ebpfMonFnNames[i], b->site[i].skip,
                             b->site[i].insn, classNames[b->site[i].cls],
                             b->site[i].canReturn ? "" : ", no return probe");
}

static void addBinaries(ebpfMonTextReport *report, ebpfMonTargets *targets)
{
    const ebpfMonBinary *last = NULL;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (t->image.core != last) { /* IOCs one after the other mostly have the same file */
            last = t->image.core;
            addSites(report, last);
            if (t->image.com && t->image.com != last)
                addSites(report, t->image.com);
        }
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonReportAddHead(ebpfMonTextReport *report, const char *life, const ebpfMonSettings *settings)
{
    ebpfMonTextReportAdd(report, "ebpfMon: %s\n", life);
    ebpfMonTextReportAdd(report, "  event ring %u KiB, packet rings %d KiB each%s\n", settings->ringKiB,
                         settings->wireKiB, settings->watchSelf ? ", watches itself" : "");
}

void ebpfMonReportAdd(ebpfMonTextReport *report, const ebpfMonReportSources *from, int level)
{
    addFilter(report, from->requests);
    addKernel(report, from->costs);
    addState(report);
    if (level < 1)
        return;
    addSlots(report, from->targets);
    addRules(report, from->requests);
    addWatchedRecords(report);
    ebpfMonListsAddIocs(report, from->targets);
    ebpfMonListsAddHealth(report);
    if (level >= 2)
        addBinaries(report, from->targets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsString.h>

#include "model/published.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "publish/lists.h"

#define BEGIN_TABLE(report, columns) \
    ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof((columns)[0]))
#define ASIDE_MAX 16
#define CELL ebpfMonTextReportAddCell

static void addCount(ebpfMonTextReport *report, uint64_t count)
{
    CELL(report, "%llu", (unsigned long long)count);
}

/* Servers without records of EPICS Base. */
static void addOthers(ebpfMonTextReport *report)
{
    const ebpfMonOtherServerValues *others = &ebpfMonPublishedLock()->others;

    for (unsigned i = 0; i < others->count; i++) {
        const ebpfMonIocRow *row = &others->ioc[i];

        CELL(report, "%s", row->name);
        CELL(report, "%d", (int)row->pid);
        CELL(report, "-");
        CELL(report, "0");
        CELL(report, "%s", ebpfMonLevelName(row->level));
        for (int k = 0; k < 4; k++)
            CELL(report, "-");
        CELL(report, " %s", row->note);
    }
    ebpfMonPublishedUnlock();
}

/* The IOCs, with their levels, costs and notes. */
static void addIocs(ebpfMonTextReport *report, ebpfMonTargets *targets)
{
    static const ebpfMonReportColumn columns[] = {
        {"IOC", -24}, {"pid", 8}, {"Base", -12}, {"records", 9}, {"level", -7}, {"probes", -7}, {"traps/s", 9},
        {"cold/s", 7}, {"cost %", 7}, {" note", 0}
    };
    static const char *const ways[] = { "entries", "calls", "lists" }; /* by ebpfMonAttachWay */

    BEGIN_TABLE(report, columns);
    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        if (t->gone)
            continue;
        CELL(report, "%s", t->name);
        CELL(report, "%d", (int)t->pid);
        CELL(report, "%s", t->version);
        CELL(report, "%u", t->cat ? t->cat->count : 0);
        CELL(report, "%s", ebpfMonLevelName(t->level));
        CELL(report, "%s",
             t->level >= ebpfMonLevelCounts ?
                 t->sweeps ? t->level == ebpfMonLevelChains ? "turns" : "passes" : ways[t->way] :
                 "-");
        CELL(report, "%.0f", t->cost.traps);
        CELL(report, "%.1f", t->cost.cold);
        CELL(report, "%.3f", ebpfMonTargetGetWholeCost(t));
        CELL(report, " %s%s", ebpfMonTargetIsStarting(t) ? EBPFMON_NOTE_STARTS : "", t->note);
    }
    ebpfMonTargetsUnlock(targets);
    addOthers(report);
}

/* The processes that the follower has set aside for a while, with the reason. Adds nothing if there are none. */
static void addAside(ebpfMonTextReport *report, ebpfMonFollower *follower)
{
    ebpfMonAsideProcess list[ASIDE_MAX];
    unsigned n = ebpfMonFollowerGetAside(follower, list, ASIDE_MAX);

    for (unsigned i = 0; i < n; i++)
        ebpfMonTextReportAdd(report, "set aside: pid %d of user %u: %s. Next look in %u s\n", (int)list[i].pid,
                             (unsigned)list[i].uid, list[i].why, list[i].seconds);
}

void ebpfMonListsAddIocs(ebpfMonTextReport *report, ebpfMonTargets *targets, ebpfMonFollower *follower)
{
    addIocs(report, targets);
    addAside(report, follower);
}

static void addRecord(ebpfMonTextReport *report, const ebpfMonTarget *t, uint32_t i)
{
    volatile struct ebpfMonRecState *state;

    CELL(report, "%s", ebpfMonCatalogueName(t->cat, i));
    if (t->slot == UINT32_MAX) {
        for (int k = 0; k < 3; k++)
            CELL(report, "-");
        CELL(report, "not counted");
        return;
    }
    state = &ebpfMonKernelTables()->state[t->slot + i];
    addCount(report, ebpfMonTargetCountRecord(t, i));
    addCount(report, state->trapped);
    addCount(report, state->entered);
    CELL(report, "%s", ebpfMonTargetIsAtLeast(t, i) ? "atleast" : t->how[i] & EBPFMON_BY_TRAP ? "trap" : "-");
}

void ebpfMonListsAddRecords(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *iocPattern,
                            const char *recordPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"record", -32}, {"count", 12}, {"trapped", 12}, {"entered", 12}, {"flags", 0}
    };

    BEGIN_TABLE(report, columns);
    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        unsigned shown = 0;

        if (t->gone || !t->cat || !epicsStrGlobMatch(t->name, iocPattern))
            continue;
        for (uint32_t i = 0; i < t->cat->count; i++) {
            if (!epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), recordPattern))
                continue;
            if (!shown++) /* several IOCs may have records of the same name */
                ebpfMonTextReportAdd(report, "IOC %s:\n", t->name);
            addRecord(report, t, i);
        }
    }
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonListsAddChains(ebpfMonTextReport *report, const char *rootPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"root", -32}, {"chains", 10}, {"mean", 10}, {"p50", 10}, {"p99", 10}, {"max", 10}, {"wait", 10},
        {"max wait us", 10}
    };
    const ebpfMonPublished *published;

    BEGIN_TABLE(report, columns);
    published = ebpfMonPublishedLock();
    for (unsigned i = 0; i < published->chains.slowestCount; i++) {
        const ebpfMonChainRow *r = &published->chains.slowest[i];

        if (!epicsStrGlobMatch(r->name, rootPattern))
            continue;
        CELL(report, "%s", r->name);
        addCount(report, r->count);
        CELL(report, "%.1f", r->mean);
        CELL(report, "%.1f", r->p50);
        CELL(report, "%.1f", r->p99);
        CELL(report, "%.1f", r->max);
        CELL(report, "%.1f", r->waitMean);
        CELL(report, "%.1f", r->waitMax);
    }
    ebpfMonPublishedUnlock();
}

/* --- the report of the monitor about itself --- */

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

static void addHangs(ebpfMonTextReport *report)
{
    const ebpfMonHealth *health = &ebpfMonPublishedLock()->health;

    ebpfMonTextReportAdd(report, "threads that hang: %u\n", health->hangs);
    for (unsigned i = 0; i < health->hangLines; i++)
        ebpfMonTextReportAdd(report, "  %s\n", health->hangLine[i]);
    ebpfMonPublishedUnlock();
}

static void addSlots(ebpfMonTextReport *report, ebpfMonTargets *targets)
{
    const ebpfMonLoadSizes *size = &ebpfMonKernelTables()->size;
    unsigned records = 0, places = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        records += t->slot != UINT32_MAX ? t->cat->count : 0;
        places += t->closures.at != UINT32_MAX ? t->closures.count : 0;
        places += t->closures.oldAt != UINT32_MAX ? t->closures.oldCount : 0;
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

void ebpfMonListsAddReport(ebpfMonTextReport *report, ebpfMonTargets *targets, ebpfMonRequests *requests,
                           const ebpfMonCosts *costs, int level)
{
    addFilter(report, requests);
    addKernel(report, costs);
    addState(report);
    if (level < 1)
        return;
    addSlots(report, targets);
    addRules(report, requests);
    addWatchedRecords(report);
    addIocs(report, targets);
    addHangs(report);
    if (level >= 2)
        addBinaries(report, targets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <epicsStdio.h>
#include <epicsString.h>

#include "model/published.h"
#include "model/filter.h"
#include "watch/requests.h"
#include "publish/report.h"
#include "watch/target.h"
#include "probe/loader.h"

long ebpfMonReportIocs(void)
{
    printf("%-24s %8s %-12s %9s %-7s %7s  %s\n", "IOC", "pid", "Base", "records", "level", "cost %", "note");
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next) {
        if (t->gone)
            continue;
        printf("%-24s %8d %-12s %9u %-7s %7.3f  %s%s\n", t->name, (int)t->pid, t->version,
               t->cat ? t->cat->count : 0, ebpfMonLevelName(t->level), t->cost,
               t->running ? "" : "starting; ", t->note);
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return 0;
}

long ebpfMonReportRecords(const char *iocPattern, const char *recordPattern)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();

    printf("%-32s %12s %12s %12s %s\n", "record", "count", "trapped", "entered", "flags");
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next) {
        unsigned shown = 0;

        if (t->gone || !t->cat || !epicsStrGlobMatch(t->name, iocPattern))
            continue;
        for (uint32_t i = 0; i < t->cat->count; i++) {
            const char *name = ebpfMonCatalogueName(t->cat, i);
            const char *how = "-";

            if (!epicsStrGlobMatch(name, recordPattern))
                continue;
            if (!shown++) /* IOCs may have records of the same name */
                printf("IOC %s:\n", t->name);
            if (t->slot == UINT32_MAX) {
                printf("%-32s %12s %12s %12s not counted\n", name, "-", "-", "-");
                continue;
            }
            if (t->how[i] & EBPFMON_AT_LEAST)
                how = "atleast";
            else if (t->how[i] & EBPFMON_BY_TRAP)
                how = "trap";
            printf("%-32s %12llu %12llu %12llu %s\n", name, (unsigned long long)ebpfMonTargetCountRecord(t, i),
                   (unsigned long long)tab->state[t->slot + i].trapped,
                   (unsigned long long)tab->state[t->slot + i].entered, how);
        }
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return 0;
}

long ebpfMonReportChains(const char *rootPattern)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    printf("%-32s %10s %10s %10s %10s %10s %10s %10s us\n", "root", "chains", "mean", "p50", "p99", "max", "wait",
           "max wait");
    for (unsigned i = 0; i < published->chainTop; i++) {
        const ebpfMonChainRow *r = &published->chain[i];

        if (epicsStrGlobMatch(r->name, rootPattern))
            printf("%-32s %10llu %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", r->name,
                   (unsigned long long)r->count, r->mean, r->p50, r->p99, r->max, r->waitMean, r->waitMax);
    }
    ebpfMonPublishedUnlock();
    return 0;
}

uint32_t ebpfMonReportNetns(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) ? 0 : (uint32_t)st.st_ino;
}

static void rules(void)
{
    ebpfMonLevelRule rule[EBPFMON_LEVEL_RULES_MAX];
    unsigned n = ebpfMonRequestsGetLevelRules(ebpfMonTheRequests, rule);

    printf("  rules: %u of %d, the last that fits an IOC counts\n", n, EBPFMON_LEVEL_RULES_MAX);
    for (unsigned i = 0; i < n; i++)
        if (rule[i].level >= 0)
            printf("    ebpfMonLevel \"%s\" %s\n", rule[i].pattern,
                   ebpfMonLevelName((ebpfMonLevel)rule[i].level));
        else
            printf("    ebpfMonReference \"%s\" %d\n", rule[i].pattern, rule[i].reference);
}

static void watches(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    printf("  watched records: %u of %d\n", published->watchCount, EBPFMON_WATCH_MAX);
    for (unsigned i = 0; i < published->watchCount; i++)
        printf("    %s%s\n", published->watch[i].record, published->watch[i].found ? "" : ": no watched IOC has it");
    ebpfMonPublishedUnlock();
}

static void countRoot(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat)
{
    (void)slot;
    (void)stat;
    ++*(unsigned *)arg;
}

static void slotsUsed(void)
{
    const ebpfMonLoadSizes *size = &ebpfMonKernelTables()->size;
    unsigned records = 0, places = 0, roots = 0;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next) {
        records += t->slot != UINT32_MAX ? t->cat->count : 0;
        places += t->closureAt != UINT32_MAX ? t->closureCount : 0;
        places += t->oldClosureAt != UINT32_MAX ? t->oldClosureCount : 0;
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonKernelEachRoot(countRoot, &roots);
    printf("  slots used: records %u of %u, closures %u of %u, chain roots %u of %u\n", records,
           size->maxRecords, places, size->maxClosure, roots, size->maxRoots);
}

static void health(void)
{
    ebpfMonHealth *shown = malloc(sizeof(*shown)); /* printing may wait: the published is not kept locked meanwhile */

    if (!shown)
        return;
    *shown = ebpfMonPublishedLock()->health;
    ebpfMonPublishedUnlock();
    printf("%-24s %7s %9s %11s %7s %7s %8s %9s\n", "IOC", "CPU %", "memory MB", "files", "threads", "clients",
           "channels", "CAS CPU %");
    for (unsigned i = 0; i < shown->iocs; i++) {
        const ebpfMonIocHealth *r = &shown->ioc[i];

        printf("%-24s %7.1f %9.1f %5u/%-5u %7u %7d %8d %9.2f\n", r->name, r->cpu, r->mem, r->fds, r->fdLimit,
               r->threads, r->clients, r->channels, r->cas);
    }
    printf("%-24s %10s %10s %10s %10s %10s  %s\n", "longest wait, ms", "cbLow", "cbMedium", "cbHigh", "scanOnce",
           "lock held", "by");
    for (unsigned i = 0; i < shown->iocs; i++) {
        const ebpfMonIocHealth *r = &shown->ioc[i];

        printf("%-24s %10.3f %10.3f %10.3f %10.3f %10.3f  %s\n", r->name, r->callback[0], r->callback[1],
               r->callback[2], r->once, r->hold, r->holder);
    }
    printf("%-24s %-12s %10s %10s %8s %7s  %s\n", "IOC", "scan", "period s", "worst s", "late", "busy %", "most by");
    for (unsigned i = 0; i < shown->scans; i++) {
        const ebpfMonScanRow *r = &shown->scan[i];

        printf("%-24s %-12s %10.4f %10.4f %8llu %7.1f  %s\n", r->ioc, r->name, r->period, r->worst,
               (unsigned long long)r->late, r->busy, r->topRoot);
    }
    printf("threads that hang: %u\n", shown->hangs);
    for (unsigned i = 0; i < shown->hangLines; i++)
        printf("  %s\n", shown->hangLine[i]);
    free(shown);
}

static void sites(const ebpfMonBinary *b)
{
    static const char *const cls[] = { "not there", "emulated", "single-stepped: dear" };

    printf("    %s build-id %s\n", b->path, b->buildId[0] ? b->buildId : "none");
    for (int i = 0; i < ebpfMonFnCount; i++)
        printf("      %-18s +%-3u %-6s %s%s\n", ebpfMonFnNames[i], b->site[i].skip, b->site[i].insn,
               cls[b->site[i].cls], b->site[i].canReturn ? "" : ", no return probe");
}

void ebpfMonReport(int level)
{
    ebpfMonFilter f;
    ebpfMonPublished *published;
    const ebpfMonBinary *last = NULL;

    ebpfMonRequestsGetFilter(ebpfMonTheRequests, &f);
    printf("  filter: IOCs \"%s\" at level %s, records \"%s\", fields \"%s\", hosts \"%s\", users \"%s\"\n", f.ioc,
           ebpfMonLevelName(f.level), f.record, f.field, f.host, f.user);
    printf("          slow chains from %g us, one in %u traced, budget %g %%\n", f.slowUs, f.sample, f.budget);
    printf("  kernel %s: bpf_loop %s, uprobe_multi %s, receives %s, inet_sock_set_state %s\n",
           ebpfMonKernelRelease(), ebpfMonFeature.loop ? "yes" : "no", ebpfMonFeature.uprobeMulti ? "yes" : "no",
           ebpfMonFeature.recvLength ? "yes" : "no", ebpfMonFeature.connectState ? "yes" : "no");
    printf("  one trap costs %.0f ns (return %.0f, single-stepped %.0f)\n", ebpfMonCost.entryNs,
           ebpfMonCost.returnNs, ebpfMonCost.steppedNs);
    published = ebpfMonPublishedLock();
    printf("  state: %s\n", published->stateMsg);
    printf("  %llu puts, %llu processings, %llu slow chains, %llu events lost\n",
           (unsigned long long)published->putCount, (unsigned long long)published->procCount,
           (unsigned long long)published->slowCount, (unsigned long long)published->lostCount);
    for (unsigned i = 0; i < published->lostKinds; i++)
        if (published->lost[i].count)
            printf("    lost: %s %llu\n", published->lost[i].reason, (unsigned long long)published->lost[i].count);
    printf("  CPU %.2f %%, memory %.1f MB, taken from the IOCs %.3f %%\n", published->cpu, published->mem, published->cost);
    ebpfMonPublishedUnlock();
    if (level < 1)
        return;
    slotsUsed();
    rules();
    watches();
    ebpfMonReportIocs();
    health();
    if (level < 2)
        return;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next)
        if (t->image.core != last) { /* neighbours usually share their binary */
            last = t->image.core;
            sites(last);
            if (t->image.com && t->image.com != last)
                sites(t->image.com);
        }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}

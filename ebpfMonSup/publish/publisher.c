/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "search/search.h"
#include "health/healthCollector.h"
#include "model/losses.h"
#include "publish/publisher.h"
#include "publish/rankings.h"
#include "watch/target.h"
#include "probe/loader.h"

#define PERIOD 1.0
#define SMOOTH 0.3 /* of the last second in PUT_RATE */

/* The kernel's reasons, and our own. */
enum { lostKinds = EBPFMON_LOST_KERNEL + ebpfMonLossKinds };

static const char *const lostReason[lostKinds] = {
    [EBPFMON_LOST_RING] = "event ring full", [EBPFMON_LOST_THREADS] = "thread table full",
    [EBPFMON_LOST_ROOTS] = "chain table full", [EBPFMON_LOST_NESTED] = "locks nested too deep",
    [EBPFMON_LOST_FAULT] = "memory not readable", [EBPFMON_LOST_KERNEL + ebpfMonLossGone] = "IOC gone",
    [EBPFMON_LOST_KERNEL + ebpfMonLossParts] = "too many chains at once",
};

static ebpfMonWorker *worker;
static uint64_t lostBase[lostKinds];
static char trouble[200]; /* under ebpfMonTargetsLock */

void ebpfMonPublisherSetState(ebpfMonState state, const char *text)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    int changed = published->state != state || strcmp(published->stateMsg, text) != 0;

    published->state = state;
    snprintf(published->stateMsg, sizeof(published->stateMsg), "%s", text);
    epicsTimeGetCurrent(&published->time[ebpfMonGroupState]);
    ebpfMonPublishedUnlock();
    if (changed && state >= ebpfMonDegraded)
        errlogSevPrintf(state == ebpfMonFailed ? errlogMajor : errlogMinor, "ebpfMon: %s\n", text);
    if (changed)
        for (int g = 0; g < ebpfMonGroupCount; g++) /* severities of all records follow the state */
            ebpfMonPublishedNotify((ebpfMonGroup)g);
}

void ebpfMonPublisherSetTrouble(const char *text)
{
    ebpfMonTargetsLock(ebpfMonTheTargets);
    snprintf(trouble, sizeof(trouble), "%s", text);
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonPublisherWake();
}

void ebpfMonPublisherWake(void)
{
    ebpfMonWorkerWake(worker);
}

static void lostNow(uint64_t lost[lostKinds])
{
    ebpfMonKernelGetLost(lost);
    for (int i = 0; i < ebpfMonLossKinds; i++)
        lost[EBPFMON_LOST_KERNEL + i] = ebpfMonLossesGet((ebpfMonLoss)i);
}

void ebpfMonPublisherResetLost(void)
{
    lostNow(lostBase);
    ebpfMonPublisherWake();
}

static void state(void)
{
    char text[256], first[200], ours[sizeof(trouble)];
    unsigned n, iocs = 0, watched = 0;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    memcpy(ours, trouble, sizeof(ours));
    n = ebpfMonTargetsFindTrouble(ebpfMonTheTargets, first, sizeof(first));
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next)
        if (!t->gone) {
            iocs++;
            watched += t->level > ebpfMonLevelOff;
        }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    if (ours[0]) {
        ebpfMonPublisherSetState(ebpfMonDegraded, ours);
    } else if (n) {
        if (n > 1)
            epicsSnprintf(text, sizeof(text), "%s (and %u more: ebpfMonIocs)", first, n - 1);
        else
            epicsSnprintf(text, sizeof(text), "%s", first);
        ebpfMonPublisherSetState(ebpfMonDegraded, text);
    } else {
        epicsSnprintf(text, sizeof(text), "watching %u of %u IOC%s", watched, iocs, iocs == 1 ? "" : "s");
        ebpfMonPublisherSetState(ebpfMonRunning, text);
    }
}

static void iocs(void)
{
    ebpfMonPublished *published;
    unsigned n = 0, shown = 0;
    double cost = 0;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    published = ebpfMonPublishedLock();
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t && n < EBPFMON_IOCS_MAX; t = t->next) {
        ebpfMonIocRow *row = &published->ioc[n];

        if (t->gone)
            continue;
        snprintf(row->name, sizeof(row->name), "%s", t->name);
        row->pid = (int32_t)t->pid;
        snprintf(row->version, sizeof(row->version), "%s", t->version);
        row->records = t->cat ? t->cat->count : 0;
        row->level = t->level;
        snprintf(row->note, sizeof(row->note), "%s", t->note);
        row->cost = t->cost;
        row->procCount = t->publisher.procCount;
        cost += t->cost;
        shown += t->shown;
        n++;
    }
    published->iocCount = n;
    published->filterMatching = shown;
    published->cost = cost;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupIocs]);
    ebpfMonPublishedUnlock();
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}

static void lost(void)
{
    uint64_t now[lostKinds], sum = 0;
    static uint64_t told;
    ebpfMonPublished *published;
    char which[160] = "";

    lostNow(now);
    published = ebpfMonPublishedLock();
    for (unsigned i = 0; i < lostKinds; i++) {
        uint64_t n = now[i] - lostBase[i];
        const char *reason = lostReason[i];

        snprintf(published->lost[i].reason, sizeof(published->lost[i].reason), "%s", reason);
        published->lost[i].count = n;
        sum += n;
        if (n)
            epicsSnprintf(which + strlen(which), sizeof(which) - strlen(which), " %s %llu;", reason,
                          (unsigned long long)n);
    }
    published->lostKinds = lostKinds;
    published->lostCount = sum;
    ebpfMonPublishedUnlock();
    /* on a change of state only: losses began, or were reset */
    if (!told != !sum && sum)
        errlogSevPrintf(errlogMinor, "ebpfMon: events were lost:%s LOST_BY counts on; LOST_RESET resets\n", which);
    told = sum;
}

/* The monitor's own use of the machine. Memory: what we allocated and the kernel's tables; not the files that
 * we share with others. */
static void own(double seconds)
{
    static double before = -1;
    struct timespec cpu;
    double used, anon = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ebpfMonPublished *published;
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "RssAnon: %lf", &anon) == 1)
            break;
    if (f)
        fclose(f);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    used = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    published = ebpfMonPublishedLock();
    if (before >= 0 && seconds > 0)
        published->cpu = 100 * (used - before) / seconds;
    published->mem = anon / 1e3 + (double)ebpfMonKernelTables()->bytes / 1e6;
    published->hitCost = ebpfMonCost.entryNs;
    ebpfMonPublishedUnlock();
    before = used;
}

static void putRate(double seconds)
{
    static uint64_t before;
    ebpfMonPublished *published = ebpfMonPublishedLock();
    double rate = (double)(published->putCount - before) / seconds;

    before = published->putCount;
    published->putRate = rate == 0 && published->putRate < 0.01 ? 0 : published->putRate + SMOOTH * (rate - published->putRate);
    ebpfMonPublishedUnlock();
}

static void runPublisher(ebpfMonWorker *self, void *arg)
{
    ebpfMonSearch *search = arg;
    uint64_t last = ebpfMonClockMonotonic();

    while (!ebpfMonWorkerIsStopping(self)) {
        double left = PERIOD - (double)(ebpfMonClockMonotonic() - last) / 1e9, seconds;
        uint64_t now;

        if (left > 0 && ebpfMonWorkerWait(self, left)) {
            /* An IOC came, went or is watched otherwise, or losses were reset: that is not kept waiting. What
             * is counted by the second is. */
            iocs();
            lost();
            state();
            ebpfMonPublishedNotify(ebpfMonGroupIocs);
            ebpfMonPublishedNotify(ebpfMonGroupState);
            continue;
        }
        now = ebpfMonClockMonotonic();
        seconds = (double)(now - last) / 1e9;
        last = now;
        putRate(seconds);
        ebpfMonRankingsUpdateRecords(seconds);
        ebpfMonRankingsUpdateChains();
        ebpfMonHealthCollect();
        ebpfMonSearchPublish(search, ebpfMonClockReal(), seconds);
        iocs();
        lost();
        own(seconds);
        state();
        for (int g = 0; g < ebpfMonGroupCount; g++)
            if (g != ebpfMonGroupSlow)
                ebpfMonPublishedNotify((ebpfMonGroup)g);
    }
}

void ebpfMonPublisherStart(ebpfMonSearch *search)
{
    worker = ebpfMonWorkerStart("ebpfMonPublish", epicsThreadPriorityLow, runPublisher, search);
}

int ebpfMonPublisherStop(void)
{
    return ebpfMonWorkerStop(&worker, 5.0);
}

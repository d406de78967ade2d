/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>

#include "model/search.h"
#include "monitor/healthCollect.h"
#include "monitor/losses.h"
#include "monitor/publish.h"
#include "monitor/rank.h"
#include "monitor/target.h"
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

static epicsEventId wake, ended;
static volatile int stopping;
static uint64_t lostBase[lostKinds];
static char trouble[200]; /* under ebpfMonTargetsLock */

static uint64_t nowNs(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ebpfMonPublishState(ebpfMonState state, const char *text)
{
    ebpfMonBoard *board = ebpfMonBoardLock();
    int changed = board->state != state || strcmp(board->stateMsg, text) != 0;

    board->state = state;
    snprintf(board->stateMsg, sizeof(board->stateMsg), "%s", text);
    epicsTimeGetCurrent(&board->time[ebpfMonGroupState]);
    ebpfMonBoardUnlock();
    if (changed && state >= ebpfMonDegraded)
        errlogSevPrintf(state == ebpfMonFailed ? errlogMajor : errlogMinor, "ebpfMon: %s\n", text);
    if (changed)
        for (int g = 0; g < ebpfMonGroupCount; g++) /* severities of all records follow the state */
            ebpfMonBoardChanged((ebpfMonGroup)g);
}

void ebpfMonPublishTrouble(const char *text)
{
    ebpfMonTargetsLock();
    snprintf(trouble, sizeof(trouble), "%s", text);
    ebpfMonTargetsUnlock();
    ebpfMonPublishSoon();
}

void ebpfMonPublishSoon(void)
{
    epicsEventMustTrigger(wake);
}

static void lostNow(uint64_t lost[lostKinds])
{
    ebpfMonLostGet(lost);
    for (int i = 0; i < ebpfMonLossKinds; i++)
        lost[EBPFMON_LOST_KERNEL + i] = ebpfMonLossGet((ebpfMonLoss)i);
}

void ebpfMonPublishResetLost(void)
{
    lostNow(lostBase);
    ebpfMonPublishSoon();
}

static void state(void)
{
    char text[256], first[200], ours[sizeof(trouble)];
    unsigned n, iocs = 0, watched = 0;

    ebpfMonTargetsLock();
    memcpy(ours, trouble, sizeof(ours));
    n = ebpfMonTargetsTroubles(first, sizeof(first));
    for (ebpfMonTarget *t = ebpfMonTargetsFirst(); t; t = t->next)
        if (!t->gone) {
            iocs++;
            watched += t->level > ebpfMonLevelOff;
        }
    ebpfMonTargetsUnlock();
    if (ours[0]) {
        ebpfMonPublishState(ebpfMonDegraded, ours);
    } else if (n) {
        if (n > 1)
            epicsSnprintf(text, sizeof(text), "%s (and %u more: ebpfMonIocs)", first, n - 1);
        else
            epicsSnprintf(text, sizeof(text), "%s", first);
        ebpfMonPublishState(ebpfMonDegraded, text);
    } else {
        epicsSnprintf(text, sizeof(text), "watching %u of %u IOC%s", watched, iocs, iocs == 1 ? "" : "s");
        ebpfMonPublishState(ebpfMonRunning, text);
    }
}

static void iocs(void)
{
    ebpfMonBoard *board;
    unsigned n = 0, shown = 0;
    double cost = 0;

    ebpfMonTargetsLock();
    board = ebpfMonBoardLock();
    for (ebpfMonTarget *t = ebpfMonTargetsFirst(); t && n < EBPFMON_IOCS_MAX; t = t->next) {
        ebpfMonIocRow *row = &board->ioc[n];

        if (t->gone)
            continue;
        snprintf(row->name, sizeof(row->name), "%s", t->name);
        row->pid = (int32_t)t->pid;
        snprintf(row->version, sizeof(row->version), "%s", t->version);
        row->records = t->cat ? t->cat->count : 0;
        row->level = t->level;
        snprintf(row->note, sizeof(row->note), "%s", t->note);
        row->cost = t->cost;
        row->procCount = t->procCount;
        cost += t->cost;
        shown += t->shown;
        n++;
    }
    board->iocCount = n;
    board->filterMatching = shown;
    board->cost = cost;
    epicsTimeGetCurrent(&board->time[ebpfMonGroupIocs]);
    ebpfMonBoardUnlock();
    ebpfMonTargetsUnlock();
}

static void lost(void)
{
    uint64_t now[lostKinds], sum = 0;
    static uint64_t told;
    ebpfMonBoard *board;
    char which[160] = "";

    lostNow(now);
    board = ebpfMonBoardLock();
    for (unsigned i = 0; i < lostKinds; i++) {
        uint64_t n = now[i] - lostBase[i];
        const char *reason = lostReason[i];

        snprintf(board->lost[i].reason, sizeof(board->lost[i].reason), "%s", reason);
        board->lost[i].count = n;
        sum += n;
        if (n)
            epicsSnprintf(which + strlen(which), sizeof(which) - strlen(which), " %s %llu;", reason,
                          (unsigned long long)n);
    }
    board->lostKinds = lostKinds;
    board->lostCount = sum;
    ebpfMonBoardUnlock();
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
    ebpfMonBoard *board;
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "RssAnon: %lf", &anon) == 1)
            break;
    if (f)
        fclose(f);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    used = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    board = ebpfMonBoardLock();
    if (before >= 0 && seconds > 0)
        board->cpu = 100 * (used - before) / seconds;
    board->mem = anon / 1e3 + (double)ebpfMonLoaded()->bytes / 1e6;
    board->hitCost = ebpfMonCost.entryNs;
    ebpfMonBoardUnlock();
    before = used;
}

static void putRate(double seconds)
{
    static uint64_t before;
    ebpfMonBoard *board = ebpfMonBoardLock();
    double rate = (double)(board->putCount - before) / seconds;

    before = board->putCount;
    board->putRate = rate == 0 && board->putRate < 0.01 ? 0 : board->putRate + SMOOTH * (rate - board->putRate);
    ebpfMonBoardUnlock();
}

static uint64_t realNs(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void publishThread(void *arg)
{
    uint64_t last = nowNs();

    (void)arg;
    while (!stopping) {
        double left = PERIOD - (double)(nowNs() - last) / 1e9, seconds;
        uint64_t now;

        if (left > 0 && epicsEventWaitWithTimeout(wake, left) == epicsEventOK) {
            /* An IOC came, went or is watched otherwise, or losses were reset: that is not kept waiting. What
             * is counted by the second is. */
            iocs();
            lost();
            state();
            ebpfMonBoardChanged(ebpfMonGroupIocs);
            ebpfMonBoardChanged(ebpfMonGroupState);
            continue;
        }
        now = nowNs();
        seconds = (double)(now - last) / 1e9;
        last = now;
        putRate(seconds);
        ebpfMonRankRecords(seconds);
        ebpfMonRankChains();
        ebpfMonHealthCollect();
        ebpfMonSearchSnapshot(realNs(), seconds);
        iocs();
        lost();
        own(seconds);
        state();
        for (int g = 0; g < ebpfMonGroupCount; g++)
            if (g != ebpfMonGroupSlow)
                ebpfMonBoardChanged((ebpfMonGroup)g);
    }
    epicsEventMustTrigger(ended);
}

void ebpfMonPublishInit(void)
{
    wake = epicsEventMustCreate(epicsEventEmpty);
    ended = epicsEventMustCreate(epicsEventEmpty);
}

void ebpfMonPublishStart(void)
{
    epicsThreadMustCreate("ebpfMonPublish", epicsThreadPriorityLow,
                          epicsThreadGetStackSize(epicsThreadStackBig), publishThread, NULL);
}

void ebpfMonPublishStop(void)
{
    stopping = 1;
    epicsEventMustTrigger(wake);
    epicsEventWaitWithTimeout(ended, 5.0);
}

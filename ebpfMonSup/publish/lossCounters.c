/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsStdio.h>
#include <errlog.h>

#include "common/clock.h"
#include "model/published.h"
#include "probe/kernelTables.h"
#include "publish/lossCounters.h"

_Static_assert(EBPFMON_LOST_ALL <= EBPFMON_LOSSES_MAX, "published->losses has room for all reasons");

static const char *const reasonNames[EBPFMON_LOST_ALL] = {
    [EBPFMON_LOST_RING] = "event ring full", [EBPFMON_LOST_THREADS] = "thread table full",
    [EBPFMON_LOST_ROOTS] = "chain table full", [EBPFMON_LOST_NESTED] = "locks nested too deep",
    [EBPFMON_LOST_FAULT] = "memory not readable", [EBPFMON_LOST_KERNEL + ebpfMonLossGone] = "IOC gone",
    [EBPFMON_LOST_KERNEL + ebpfMonLossParts] = "too many chains at once",
    [EBPFMON_LOST_KERNEL + ebpfMonLossOwnPut] = "too many puts to the monitor",
    [EBPFMON_LOST_KERNEL + ebpfMonLossSkipped] = "program not run",
    [EBPFMON_LOST_KERNEL + ebpfMonLossUrgent] = "TCP urgent data",
    [EBPFMON_LOST_KERNEL + ebpfMonLossCircuits] = "too many connections",
    [EBPFMON_LOST_KERNEL + ebpfMonLossWrongSum] = "wrong checksum",
    [EBPFMON_LOST_KERNEL + ebpfMonLossOwnAddress] = "own address from outside",
    [EBPFMON_LOST_KERNEL + ebpfMonLossForged] = "packets of no connection",
};

struct ebpfMonLossCounters {
    ebpfMonLossRead read;
    void        *arg;                /* of "read" */
    epicsMutexId lock;               /* guards "base" */
    uint64_t base[EBPFMON_LOST_ALL]; /* counters at the last reset; any thread */
    /* publishing thread only */
    int      hasLosses;              /* nonzero: there were losses at the last publication */
    uint64_t before[EBPFMON_LOST_ALL]; /* the counters since the start at the last publication */
    unsigned newest;                 /* the reason that has grown last */
    double   grownAt;                /* … when (s, monotonic); 0: since the last reset none has */
};

void ebpfMonLossReadMonitor(void *losses, uint64_t lost[EBPFMON_LOST_ALL])
{
    ebpfMonKernelGetLost(lost);
    for (int i = 0; i < ebpfMonLossKinds; i++)
        lost[EBPFMON_LOST_KERNEL + i] = ebpfMonLossesGet(losses, (ebpfMonLoss)i);
    lost[EBPFMON_LOST_KERNEL + ebpfMonLossSkipped] = ebpfMonKernelCountSkipped();
}

ebpfMonLossCounters *ebpfMonLossCountersNew(ebpfMonLossRead read, void *arg)
{
    ebpfMonLossCounters *counters = calloc(1, sizeof(*counters));

    if (counters) {
        counters->read = read;
        counters->arg = arg;
        counters->lock = epicsMutexMustCreate();
    }
    return counters;
}

void ebpfMonLossCountersFree(ebpfMonLossCounters *counters)
{
    if (!counters)
        return;
    epicsMutexDestroy(counters->lock);
    free(counters);
}

void ebpfMonLossCountersReset(ebpfMonLossCounters *counters)
{
    uint64_t now[EBPFMON_LOST_ALL];

    counters->read(counters->arg, now);
    epicsMutexMustLock(counters->lock);
    memcpy(counters->base, now, sizeof(now));
    epicsMutexUnlock(counters->lock);
}

static void noteGrowth(ebpfMonLossCounters *counters, const uint64_t now[EBPFMON_LOST_ALL])
{
    for (unsigned i = 0; i < EBPFMON_LOST_ALL; i++) {
        if (now[i] > counters->before[i]) {
            counters->newest = i;
            counters->grownAt = ebpfMonClockSeconds();
        }
        counters->before[i] = now[i];
    }
}

void ebpfMonLossCountersPublish(ebpfMonLossCounters *counters)
{
    uint64_t since[EBPFMON_LOST_ALL], sum = 0;
    ebpfMonPublished *published;
    char which[160] = "";

    counters->read(counters->arg, since);
    noteGrowth(counters, since);
    epicsMutexMustLock(counters->lock);
    for (unsigned i = 0; i < EBPFMON_LOST_ALL; i++) /* if a reset read the counters after us, its values are greater */
        since[i] -= since[i] > counters->base[i] ? counters->base[i] : since[i];
    epicsMutexUnlock(counters->lock);
    published = ebpfMonPublishedLock();
    for (unsigned i = 0; i < EBPFMON_LOST_ALL; i++) {
        ebpfMonLossRow *row = &published->losses.by[i];

        snprintf(row->reason, sizeof(row->reason), "%s", reasonNames[i]);
        row->count = since[i];
        sum += since[i];
        if (since[i])
            epicsSnprintf(which + strlen(which), sizeof(which) - strlen(which), " %s %llu;", reasonNames[i],
                          (unsigned long long)since[i]);
    }
    published->losses.kinds = EBPFMON_LOST_ALL;
    published->losses.count = sum;
    published->losses.isGrowing = sum && ebpfMonClockSeconds() - counters->grownAt < EBPFMON_LOSS_SECONDS;
    snprintf(published->losses.newest, sizeof(published->losses.newest), "%s",
             published->losses.isGrowing ? reasonNames[counters->newest] : "");
    ebpfMonPublishedUnlock();
    if (!counters->hasLosses && sum)
        errlogSevPrintf(errlogMinor, "ebpfMon: events were lost:%s LOST_CNTS counts them; LOST_RESET resets it\n",
                        which);
    counters->hasLosses = sum != 0;
}

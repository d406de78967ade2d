/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "device/deviceIocs.h"
#include "device/deviceRows.h"
#include "device/devices.h"

#define PERIOD  1.0    /* s */
#define ASLEEP  3600.0 /* s; nothing is watched, so the thread sleeps until it is woken */
#define PATTERN 61

struct ebpfMonDevices {
    const ebpfMonModule *module;
    ebpfMonSharedWorker worker;
    epicsMutexId lock;      /* guards "wanted" */
    char     wanted[PATTERN]; /* the newest pattern of IOC names; empty: nothing is to be watched */
    /* not changed while the thread runs */
    ebpfMonTargets     *targets;
    const ebpfMonCosts *costs;
    /* only the thread uses what follows */
    char     pattern[PATTERN]; /* the pattern in force */
    ebpfMonDevicePrograms *programs;
    ebpfMonDeviceIocs     *iocs;
    ebpfMonDeviceRows     *rows;
    uint64_t lookedAt; /* time of the last look (monotonic ns) */
    ebpfMonDeviceValues values;
    ebpfMonDeviceValues shown; /* under the lock of the published values */
};

ebpfMonDevices *ebpfMonDevicesNew(const ebpfMonModule *module)
{
    ebpfMonDevices *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->module = module;
    d->lock = epicsMutexMustCreate();
    ebpfMonSharedWorkerInit(&d->worker);
    return d;
}

void ebpfMonDevicesWatch(ebpfMonDevices *d, const char *pattern)
{
    epicsMutexMustLock(d->lock);
    snprintf(d->wanted, sizeof(d->wanted), "%s", pattern);
    epicsMutexUnlock(d->lock);
    ebpfMonSharedWorkerWake(&d->worker);
}

const ebpfMonDeviceValues *ebpfMonDevicesGetValues(const ebpfMonDevices *d)
{
    return &d->shown;
}

static void unloadPrograms(ebpfMonDevices *d)
{
    ebpfMonDeviceIocsFree(d->iocs);
    ebpfMonDeviceRowsFree(d->rows);
    ebpfMonDeviceProgramsFree(d->programs);
    d->iocs = NULL;
    d->rows = NULL;
    d->programs = NULL;
    d->pattern[0] = 0;
}

/* Loads the programs. If it cannot, d->values.state says why. */
static void loadPrograms(ebpfMonDevices *d)
{
    d->programs = ebpfMonDeviceProgramsLoad(d->values.state, sizeof(d->values.state));
    if (!d->programs)
        return;
    d->rows = ebpfMonDeviceRowsNew();
    d->iocs = d->rows ? ebpfMonDeviceIocsNew(d->programs, d->rows, d->targets, d->module) : NULL;
    d->lookedAt = ebpfMonClockMonotonic();
    if (d->iocs)
        return;
    snprintf(d->values.state, sizeof(d->values.state), "out of memory");
    unloadPrograms(d);
}

/* Loads or unloads the programs if the wanted pattern was changed. Nonzero: IOCs are to be watched. */
static int takeWanted(ebpfMonDevices *d)
{
    char wanted[PATTERN];

    epicsMutexMustLock(d->lock);
    memcpy(wanted, d->wanted, sizeof(wanted));
    epicsMutexUnlock(d->lock);
    if (strcmp(wanted, d->pattern) == 0)
        return wanted[0] != 0;
    unloadPrograms(d);
    memset(&d->values, 0, sizeof(d->values));
    if (wanted[0])
        loadPrograms(d);
    else
        snprintf(d->values.state, sizeof(d->values.state),
                 "off: ebpfMonDeviceWatch \"*\" watches the ports of all IOCs");
    memcpy(d->pattern, wanted, sizeof(wanted));
    return wanted[0] != 0;
}

static void countCost(ebpfMonDevices *d)
{
    struct ebpfMonDeviceCounts counts;
    uint64_t now = ebpfMonClockMonotonic();
    double seconds = (double)(now - d->lookedAt) / 1e9;

    ebpfMonDeviceProgramsReadCounts(d->programs, &counts);
    d->values.lost = counts.lost;
    d->values.cost = ebpfMonDeviceIocsCharge(d->iocs, d->costs, seconds);
    d->lookedAt = now;
}

static void readRows(ebpfMonDevices *d, ebpfMonWorker *worker)
{
    ebpfMonDeviceValues *v = &d->values;
    const char *trouble;
    unsigned nameless;

    ebpfMonDeviceIocsFollow(d->iocs, d->targets, d->pattern, worker);
    nameless = ebpfMonDeviceRowsMake(d->rows, d->programs, d->targets, v);
    v->iocs = ebpfMonDeviceIocsCount(d->iocs);
    trouble = ebpfMonDeviceIocsGetTrouble(d->iocs);
    if (nameless)
        snprintf(v->state, sizeof(v->state),
                 "%u rows are not shown: the names of their ports cannot be read. Only asyn 4 is supported", nameless);
    else if (trouble[0])
        snprintf(v->state, sizeof(v->state), "%s", trouble);
    else
        snprintf(v->state, sizeof(v->state), "watches the ports of %u IOCs with asyn", v->iocs);
    countCost(d);
}

static void runDevices(ebpfMonWorker *worker, void *arg)
{
    ebpfMonDevices *d = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        int isWanted = takeWanted(d);

        if (isWanted && d->programs)
            readRows(d, worker);
        ebpfMonModuleShowValues(d->module, &d->shown, &d->values, sizeof(d->values));
        ebpfMonWorkerWait(worker, isWanted && d->programs ? PERIOD : ASLEEP);
    }
    unloadPrograms(d);
}

int ebpfMonDevicesBegin(void *devices, const ebpfMonModuleCore *core)
{
    ebpfMonDevices *d = devices;

    d->targets = core->targets;
    d->costs = core->costs;
    snprintf(d->values.state, sizeof(d->values.state), "off: ebpfMonDeviceWatch \"*\" watches the ports of all IOCs");
    return ebpfMonSharedWorkerSet(&d->worker,
                                  ebpfMonWorkerStart("ebpfMonDevice", epicsThreadPriorityLow, runDevices, d));
}

int ebpfMonDevicesStop(void *devices, double seconds)
{
    ebpfMonDevices *d = devices;

    return ebpfMonSharedWorkerStop(&d->worker, seconds);
}

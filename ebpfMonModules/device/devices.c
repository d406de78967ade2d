/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for which port of asyn, and for how long. A thread sets probes in the IOCs that have asyn, and publishes
 * the counts of these probes. As long as no pattern is set (ebpfMonDeviceWatch), no program is loaded and no probe is
 * set.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dbDefs.h>
#include <epicsExport.h>
#include <epicsMutex.h>
#include <epicsThread.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/worker.h"
#include "device/asynLayout.h"
#include "device/devicePrograms.h"
#include "device/deviceRows.h"
#include "device/deviceValues.h"
#include "ebpfMonModule.h"
#include "host/procInfo.h"
#include "model/filter.h"
#include "probe/calibrate.h"
#include "record/shellCommand.h"
#include "shared/followedIocs.h"
#include "shared/functionSite.h"
#include "watch/target.h"

/* --- the probes in the IOCs with watched ports: only the thread uses them ---------------------------------------- */

#define RETRY_NS (10 * EBPFMON_SECOND_NS) /* try again: asyn may be loaded later, or a file may answer later */
#define REST_NS  (600 * EBPFMON_SECOND_NS) /* its ports took too much of its budget: try again */
#define TRIES    6 /* then it is taken for an IOC without asyn */

typedef struct {
    ebpfMonFollowedIoc ioc;
    unsigned tries;
    int      hasTrouble;
    uint32_t number;       /* of the probes below */
    ebpfMonProbe *probe; /* the probes at queueRequest and at the functions below */
    size_t   probes, probeRoom;
    struct ebpfMonDeviceFunction *function; /* functions of device support that have a probe, or cannot have one */
    size_t   functions, functionRoom;
    struct ebpfMonDeviceConf before; /* what its programs had counted at the last look */
} Followed;

typedef struct {
    ebpfMonDevicePrograms *programs;
    ebpfMonDeviceRows *rows;
    ebpfMonFollowedIocs *iocs;
    ebpfMonTargets *targets;
    const ebpfMonModule *module;
    uint32_t lastNumber;   /* of an IOC that was entered */
    char     trouble[160]; /* why an IOC, or a part of it, is not watched; "": all that have asyn are */
} deviceIocs;

/* Notes what the ports of an IOC take from it, percent of one core. Nonzero: they must save, and "why" says so. Takes
 * the targets lock. */
static int charge(deviceIocs *d, uint32_t iocId, double cost, char *why, size_t size)
{
    ebpfMonTarget *t;
    int mustSave = 0;

    ebpfMonTargetsLock(d->targets);
    t = ebpfMonTargetsFindById(d->targets, iocId);
    if (t) {
        ebpfMonTargetSetShare(t, d->module, cost);
        mustSave = ebpfMonTargetMustSave(t, d->module, ebpfMonClockSeconds());
    }
    if (mustSave)
        snprintf(why, size,
                 "stopped: it paid %.3g %% of a core, %.3g %% of it for its ports, and FILTER_BUDGET is %.3g",
                 ebpfMonTargetGetCost(t), cost, t->cost.limit);
    ebpfMonTargetsUnlock(d->targets);
    return mustSave;
}

/* Nonzero: the IOC has nothing left to pay; "why" says so. Takes the targets lock. */
static int isSpent(deviceIocs *d, uint32_t iocId, char *why, size_t size)
{
    const ebpfMonTarget *t;
    int spent;

    ebpfMonTargetsLock(d->targets);
    t = ebpfMonTargetsFindById(d->targets, iocId);
    spent = t && ebpfMonTargetIsSpent(t);
    if (spent)
        snprintf(why, size, "not watched: it pays %.3g %% of a core already, and FILTER_BUDGET is %.3g",
                 ebpfMonTargetGetCost(t), t->cost.limit);
    ebpfMonTargetsUnlock(d->targets);
    return spent;
}

static void leaveIoc(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded)
{
    Followed *f = (Followed *)ioc;
    deviceIocs *d = arg;

    if (f->probes)
        (hasEnded ? ebpfMonCloserCloseLater : ebpfMonCloserClose)(f->probe, (unsigned)f->probes);
    if (ioc->isOn) {
        ebpfMonDeviceProgramsRemoveProcess(d->programs, ioc->pid);
        ebpfMonDeviceRowsForget(d->rows, ioc->pid);
        charge(d, ioc->iocId, 0, NULL, 0);
    }
    free(f->probe);
    free(f->function);
    f->probe = NULL;
    f->function = NULL;
    f->probes = f->probeRoom = f->functions = f->functionRoom = 0;
    ioc->isOn = 0;
}

/* Sets the probe at one function, or both at entry and return. 0, or -1: none is set. */
static int setProbe(deviceIocs *d, Followed *f, uint64_t address, ebpfMonDeviceSite site)
{
    ebpfMonFunctionPlace place;
    const ebpfMonUprobePlaces at = { .path = place.path, .offset = &place.site.offset, .count = 1, .pid = f->ioc.pid,
                                     .cookie = f->number };
    ebpfMonProbe probe[2];
    unsigned count;

    if (ebpfMonArrayGrow(&f->probe, &f->probeRoom, f->probes + 2, 16, sizeof(*f->probe)) ||
        ebpfMonCodePlaceFind(f->ioc.pid, address, EBPFMON_ARG1, site == ebpfMonDeviceServe, &place) ||
        ebpfMonDeviceProgramsProbe(d->programs, site, &at, probe, &count))
        return -1;
    memcpy(f->probe + f->probes, probe, count * sizeof(*probe));
    f->probes += count;
    return 0;
}

static void setTrouble(deviceIocs *d, Followed *f, const char *why)
{
    f->hasTrouble = 1;
    snprintf(d->trouble, sizeof(d->trouble), "%.60s: %.97s", f->ioc.name, why);
}

/* Begins to watch an IOC, if it has asyn. */
static void enterIoc(void *arg, ebpfMonFollowedIoc *ioc, uint64_t now)
{
    Followed *f = (Followed *)ioc;
    struct ebpfMonDeviceConf conf;
    deviceIocs *d = arg;
    uint64_t queueRequest;
    char why[120];

    ioc->retryAt = ++f->tries < TRIES ? now + RETRY_NS : UINT64_MAX;
    queueRequest = ebpfMonAsynFindQueueRequest(ioc->pid);
    if (!queueRequest)
        return;
    if (ebpfMonProcSeccomp(ioc->pid) == 2) {
        setTrouble(d, f, "not watched: it runs under seccomp, which may forbid return probes");
        return;
    }
    if (isSpent(d, ioc->iocId, why, sizeof(why))) {
        ioc->retryAt = now + RETRY_NS;
        setTrouble(d, f, why);
        return;
    }
    f->hasTrouble = 0;
    ebpfMonAsynFillConf(&conf, ioc->iocId);
    f->number = conf.number = ++d->lastNumber;
    if (setProbe(d, f, queueRequest, ebpfMonDeviceQueue)) {
        setTrouble(d, f, "not watched: no probe can be set at queueRequest of its asyn");
        return;
    }
    ioc->isOn = 1;
    f->before = conf;
    if (ebpfMonDeviceProgramsAddProcess(d->programs, ioc->pid, &conf))
        leaveIoc(d, ioc, 0);
}

/* NULL without memory. All pointers stay the caller's. "rows" forgets each IOC that is not watched any more. */
static deviceIocs *newIocs(ebpfMonDevicePrograms *programs, ebpfMonDeviceRows *rows,
                                        ebpfMonTargets *targets, const ebpfMonModule *module)
{
    deviceIocs *d = calloc(1, sizeof(*d));
    const ebpfMonFollowedUser user = { .size = sizeof(Followed), .enter = enterIoc, .leave = leaveIoc, .arg = d };

    if (!d)
        return NULL;
    d->programs = programs;
    d->rows = rows;
    d->targets = targets;
    d->module = module;
    d->iocs = ebpfMonFollowedIocsNew(&user);
    if (!d->iocs) {
        free(d);
        return NULL;
    }
    return d;
}

/* Closes all probes. NULL does no harm. */
static void freeIocs(deviceIocs *d)
{
    if (!d)
        return;
    ebpfMonFollowedIocsFree(d->iocs);
    free(d);
}

/* Sets probes at a function of device support that a request has shown. */
static void addFunction(void *arg, const struct ebpfMonDeviceFunction *function)
{
    deviceIocs *d = arg;
    ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(d->iocs);
    Followed *f;

    while (ioc && (!ioc->isOn || (uint32_t)ioc->pid != function->tgid))
        ioc = ioc->next;
    if (!ioc)
        return;
    f = (Followed *)ioc;
    for (size_t i = 0; i < f->functions; i++)
        if (memcmp(&f->function[i], function, sizeof(*function)) == 0)
            return;
    if (ebpfMonArrayGrow(&f->function, &f->functionRoom, f->functions + 1, 16, sizeof(*f->function)))
        return;
    f->function[f->functions++] = *function;
    if (setProbe(d, f, function->address, function->isTimeout ? ebpfMonDeviceTimeout : ebpfMonDeviceServe))
        setTrouble(d, f, "no probe can be set at a function of its device support: its requests are not counted");
}

/* Follows the IOCs that match: sets probes in new ones, and closes the probes of those that ended. Then it sets
 * probes at the functions that requests have shown. Takes the targets lock for a short time; it may take seconds,
 * and gives signs of progress for "worker" (may be NULL). */
static void followIocs(deviceIocs *d, ebpfMonTargets *targets, const char *pattern, ebpfMonWorker *worker)
{
    const ebpfMonFollowedIoc *ioc;

    ebpfMonFollowedIocsFollow(d->iocs, targets, pattern, worker);
    ebpfMonDeviceProgramsEachFunction(d->programs, addFunction, d);
    ioc = ebpfMonFollowedIocsGetFirst(d->iocs);
    while (ioc && !((const Followed *)ioc)->hasTrouble)
        ioc = ioc->next;
    if (!ioc)
        d->trouble[0] = 0; /* the IOC with trouble has ended */
}

/* Charges each IOC for what the programs did in the last "seconds". An IOC that pays more than FILTER_BUDGET for too
 * long, most of it for its ports, is left for ten minutes. Returns what all IOCs paid, in percent of one core. */
static double chargeIocs(deviceIocs *d, const ebpfMonCosts *costs, double seconds)
{
    double sum = 0;
    struct ebpfMonDeviceConf paid;
    char why[120];

    for (ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(d->iocs); ioc; ioc = ioc->next) {
        Followed *f = (Followed *)ioc;
        double cost;

        if (!ioc->isOn || seconds <= 0 || ebpfMonDeviceProgramsReadProcess(d->programs, ioc->pid, &paid))
            continue;
        cost = 100 / (seconds * 1e9) * ((double)(paid.entries - f->before.entries) * costs->entryNs +
                                        (double)(paid.returns - f->before.returns) * costs->returnNs +
                                        (double)(paid.ns - f->before.ns));
        f->before = paid;
        sum += cost;
        if (!charge(d, ioc->iocId, cost, why, sizeof(why)))
            continue;
        leaveIoc(d, ioc, 0);
        ioc->retryAt = ebpfMonClockMonotonic() + REST_NS;
        setTrouble(d, f, why);
    }
    return sum;
}

/* The number of IOCs that are watched. */
static unsigned countIocs(const deviceIocs *d)
{
    unsigned on = 0;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(d->iocs); ioc; ioc = ioc->next)
        on += ioc->isOn != 0;
    return on;
}

const char *YY(const deviceIocs *d)
{
    return d->trouble;
}

/* --- the thread -------------------------------------------------------------------------------------------------- */

#define PERIOD  1.0    /* s */
#define ASLEEP  3600.0 /* s; nothing is watched, so the thread sleeps until it is woken */
#define PATTERN 61

typedef struct {
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
    deviceIocs     *iocs;
    ebpfMonDeviceRows     *rows;
    uint64_t lookedAt; /* time of the last look (monotonic ns) */
    ebpfMonDeviceValues values;
    ebpfMonDeviceValues shown; /* under the lock of the published values, as the next */
    int      isReset;  /* the count of losses is to begin again */
    uint64_t lostBase; /* lost until the last reset */
} ebpfMonDevices;

/* NULL without memory. There is one in a process. It is never freed, because a shell command may still use it. "module"
 * stays the caller's. */
static ebpfMonDevices *newDevices(const ebpfMonModule *module)
{
    ebpfMonDevices *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->module = module;
    d->lock = epicsMutexMustCreate();
    ebpfMonSharedWorkerInit(&d->worker);
    return d;
}

/* Sets which IOCs to watch: a pattern of their names (glob), which is copied; "": none. Any thread, also before
 * Begin. */
static void setPattern(ebpfMonDevices *d, const char *pattern)
{
    epicsMutexMustLock(d->lock);
    snprintf(d->wanted, sizeof(d->wanted), "%s", pattern);
    epicsMutexUnlock(d->lock);
    ebpfMonSharedWorkerWake(&d->worker);
}

static void unloadPrograms(ebpfMonDevices *d)
{
    freeIocs(d->iocs);
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
    d->iocs = d->rows ? newIocs(d->programs, d->rows, d->targets, d->module) : NULL;
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
    d->lostBase = 0; /* the programs count anew */
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
    ebpfMonModuleLock();
    d->lostBase = d->isReset ? counts.lost : d->lostBase;
    d->isReset = 0;
    ebpfMonModuleUnlock();
    d->values.lost = counts.lost - d->lostBase;
    d->values.cost = chargeIocs(d->iocs, d->costs, seconds);
    d->lookedAt = now;
}

static void readRows(ebpfMonDevices *d, ebpfMonWorker *worker)
{
    ebpfMonDeviceValues *v = &d->values;
    const char *trouble;
    unsigned nameless;

    followIocs(d->iocs, d->targets, d->pattern, worker);
    nameless = ebpfMonDeviceRowsMake(d->rows, d->programs, d->targets, v);
    v->iocs = countIocs(d->iocs);
    trouble = d->iocs->trouble;
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

static int beginDevices(void *devices, const ebpfMonModuleCore *core)
{
    ebpfMonDevices *d = devices;

    d->targets = core->targets;
    d->costs = core->costs;
    snprintf(d->values.state, sizeof(d->values.state), "off: ebpfMonDeviceWatch \"*\" watches the ports of all IOCs");
    return ebpfMonSharedWorkerSet(&d->worker,
                                  ebpfMonWorkerStart("ebpfMonDevice", epicsThreadPriorityLow, runDevices, d));
}

static void resetLost(void *devices)
{
    ebpfMonDevices *d = devices;

    ebpfMonModuleLock();
    d->isReset = 1;
    ebpfMonModuleUnlock();
}

static int stopDevices(void *devices, double seconds)
{
    ebpfMonDevices *d = devices;

    return ebpfMonSharedWorkerStop(&d->worker, seconds);
}

/* --- PVs, commands, registration --------------------------------------------------------------------------------- */

#define VALUE(member) offsetof(ebpfMonDeviceValues, member)
#define ROW(member)   offsetof(ebpfMonDeviceRow, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonDevices *devices;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : &devices->shown;
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonDeviceValues *v = &devices->shown;

    return index < v->rows ? &v->row[index] : NULL;
}

/* In the order of ebpfMonDevice.substitutions. */
static ebpfMonPv pvs[] = {
    {"DEVICE_IOC_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(iocs)},
    {"DEVICE_REQUEST_CNT", 0, getValues, ebpfMonCellCount, VALUE(requests)},
    {"DEVICE_TIMEOUT_CNT", 0, getValues, ebpfMonCellCount, VALUE(timeouts)},
    {"DEVICE_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost)},
    {"DEVICE_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"DEVICE_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"DEVICE_PORTS", 0, getRow, ebpfMonCellText, ROW(port)},
    {"DEVICE_RECORDS", 0, getRow, ebpfMonCellText, ROW(user)},
    {"DEVICE_CNTS", 0, getRow, ebpfMonCellCount, ROW(count)},
    {"DEVICE_WAIT_MEANS", 0, getRow, ebpfMonCellDouble, ROW(waitMean), .gaps = 1},
    {"DEVICE_WAIT_P99S", 0, getRow, ebpfMonCellDouble, ROW(waitP99), .gaps = 1},
    {"DEVICE_WAIT_MAXS", 0, getRow, ebpfMonCellDouble, ROW(waitMax), .gaps = 1},
    {"DEVICE_TIME_MEANS", 0, getRow, ebpfMonCellDouble, ROW(serveMean), .gaps = 1},
    {"DEVICE_TIME_MAXS", 0, getRow, ebpfMonCellDouble, ROW(serveMax)},
    {"DEVICE_TIMEOUT_CNTS", 0, getRow, ebpfMonCellCount, ROW(timeouts)},
    {"DEVICE_BEHINDS", 0, getRow, ebpfMonCellText, ROW(behind)},
    {"DEVICE_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
    {"DEVICE_SILENT_CNTS", 0, getRow, ebpfMonCellDouble, ROW(silent), .gaps = 1},
    {"DEVICE_LINKS", 0, getRow, ebpfMonCellText, ROW(link)},
};

static ebpfMonModule module = {
    .name = "device", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = beginDevices,
    .stop = stopDevices, .resetLost = resetLost,
};

static void watchDevices(const iocshArgBuf *args)
{
    const char *given = args[0].sval ? args[0].sval : "*";
    char pattern[EBPFMON_PATTERN_SIZE] = "", why[160] = "";
    int isWrong = given[0] && ebpfMonPatternRead(pattern, given, "IOC", why, sizeof(why));

    if (!isWrong)
        setPattern(devices, pattern);
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonDeviceWatch", isWrong ? ebpfMonOpRefused : ebpfMonOpDone, why));
}

static void addRow(ebpfMonTextReport *report, const ebpfMonDeviceRow *row)
{
    ebpfMonTextReportAddCell(report, "%s", row->port);
    ebpfMonTextReportAddCell(report, "%s", row->user);
    ebpfMonTextReportAddCell(report, "%d", (int)row->reason);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->count);
    ebpfMonTextReportAddCell(report, "%.3f", row->waitMean);
    ebpfMonTextReportAddCell(report, "%.3f", row->waitP99);
    ebpfMonTextReportAddCell(report, "%.3f", row->waitMax);
    ebpfMonTextReportAddCell(report, "%.3f", row->serveMean);
    ebpfMonTextReportAddCell(report, "%.3f", row->serveMax);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->timeouts);
    ebpfMonTextReportAddCell(report, isnan(row->silent) ? "-" : "%.0f", row->silent);
    ebpfMonTextReportAddCell(report, "%s", row->behind);
    ebpfMonTextReportAddCell(report, "%s", row->link);
    ebpfMonTextReportAddCell(report, "%s", row->ioc);
}

static void listDevices(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {
        {"port", -12}, {"record", -24}, {"reason", 6}, {"requests", 9}, {"wait ms", 9}, {"99 %", 9}, {"max", 9},
        {"served ms", 9}, {"max", 9}, {"timeouts", 8}, {"no answer", 9}, {"behind", -20}, {"link", -24}, {"IOC", 0},
    };
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonDeviceValues *v = &devices->shown;

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n", v->state[0] ? v->state : "the monitor does not run");
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++)
        addRow(report, &v->row[i]);
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonDeviceWatch", watchDevices, {{"pattern", iocshArgString}},
     "Watches requests to ports of asyn, in the IOCs with a matching name (default: *). \"\" watches none.\n"
     "Example: ebpfMonDeviceWatch \"vac*\"\n"},
    {"ebpfMonDevices", listDevices, EBPFMON_NO_ARGS,
     "Lists which record waited for which port of asyn, how long the port served it, and for which other\n"
     "record it waited longest (documentation/use/device.md).\n"}
};

static void ebpfMonDeviceRegistrar(void)
{
    devices = newDevices(&module);
    ebpfMonShellAddModule(&module, devices, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonDeviceRegistrar);

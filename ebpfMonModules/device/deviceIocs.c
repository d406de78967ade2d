/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/functionSite.h"
#include "common/array.h"
#include "common/clock.h"
#include "device/asynLayout.h"
#include "device/deviceIocs.h"
#include "host/procInfo.h"
#include "shared/followedIocs.h"

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

struct ebpfMonDeviceIocs {
    ebpfMonDevicePrograms *programs;
    ebpfMonDeviceRows *rows;
    ebpfMonFollowedIocs *iocs;
    ebpfMonTargets *targets;
    const ebpfMonModule *module;
    uint32_t lastNumber;   /* of an IOC that was entered */
    char     trouble[200]; /* why an IOC, or a part of it, is not watched; empty: none */
};

/* Notes what the ports of an IOC take from it, percent of one core. Nonzero: they must save, and "why" says so. Takes
 * the targets lock. */
static int charge(ebpfMonDeviceIocs *d, uint32_t iocId, double cost, char *why, size_t size)
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
                 ebpfMonTargetGetCost(t), cost, t->costLimit);
    ebpfMonTargetsUnlock(d->targets);
    return mustSave;
}

/* Nonzero: the IOC has nothing left to pay; "why" says so. Takes the targets lock. */
static int isSpent(ebpfMonDeviceIocs *d, uint32_t iocId, char *why, size_t size)
{
    const ebpfMonTarget *t;
    int spent;

    ebpfMonTargetsLock(d->targets);
    t = ebpfMonTargetsFindById(d->targets, iocId);
    spent = t && ebpfMonTargetIsSpent(t);
    if (spent)
        snprintf(why, size, "not watched: it pays %.3g %% of a core already, and FILTER_BUDGET is %.3g",
                 ebpfMonTargetGetCost(t), t->costLimit);
    ebpfMonTargetsUnlock(d->targets);
    return spent;
}

static void leaveIoc(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded)
{
    Followed *f = (Followed *)ioc;
    ebpfMonDeviceIocs *d = arg;

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
static int setProbe(ebpfMonDeviceIocs *d, Followed *f, uint64_t address, ebpfMonDeviceSite site)
{
    ebpfMonFunctionPlace place;
    ebpfMonProbe probe[2];
    unsigned count;

    if (ebpfMonArrayGrow(&f->probe, &f->probeRoom, f->probes + 2, 16, sizeof(*f->probe)) ||
        ebpfMonCodePlaceFind(f->ioc.pid, address, EBPFMON_ARG1, site == ebpfMonDeviceServe, &place) ||
        ebpfMonDeviceProgramsProbe(d->programs, site, place.path, place.site.offset, f->ioc.pid, f->number, probe,
                                   &count))
        return -1;
    memcpy(f->probe + f->probes, probe, count * sizeof(*probe));
    f->probes += count;
    return 0;
}

static void setTrouble(ebpfMonDeviceIocs *d, Followed *f, const char *why)
{
    f->hasTrouble = 1;
    snprintf(d->trouble, sizeof(d->trouble), "%.60s: %s", f->ioc.name, why);
}

/* Begins to watch an IOC, if it has asyn. */
static void enterIoc(void *arg, ebpfMonFollowedIoc *ioc, uint64_t now)
{
    Followed *f = (Followed *)ioc;
    struct ebpfMonDeviceConf conf;
    ebpfMonDeviceIocs *d = arg;
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

ebpfMonDeviceIocs *ebpfMonDeviceIocsNew(ebpfMonDevicePrograms *programs, ebpfMonDeviceRows *rows,
                                        ebpfMonTargets *targets, const ebpfMonModule *module)
{
    ebpfMonDeviceIocs *d = calloc(1, sizeof(*d));
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

void ebpfMonDeviceIocsFree(ebpfMonDeviceIocs *d)
{
    if (!d)
        return;
    ebpfMonFollowedIocsFree(d->iocs);
    free(d);
}

/* Sets probes at a function of device support that a request has shown. */
static void addFunction(void *arg, const struct ebpfMonDeviceFunction *function)
{
    ebpfMonDeviceIocs *d = arg;
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

void ebpfMonDeviceIocsFollow(ebpfMonDeviceIocs *d, ebpfMonTargets *targets, const char *pattern, ebpfMonWorker *worker)
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

double ebpfMonDeviceIocsCharge(ebpfMonDeviceIocs *d, const ebpfMonCosts *costs, double seconds)
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

unsigned ebpfMonDeviceIocsCount(const ebpfMonDeviceIocs *d)
{
    unsigned on = 0;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(d->iocs); ioc; ioc = ioc->next)
        on += ioc->isOn != 0;
    return on;
}

const char *ebpfMonDeviceIocsGetTrouble(const ebpfMonDeviceIocs *d)
{
    return d->trouble;
}

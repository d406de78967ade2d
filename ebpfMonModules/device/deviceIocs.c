/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/functionSite.h"
#include "common/array.h"
#include "common/clock.h"
#include "device/asynLayout.h"
#include "device/deviceBudget.h"
#include "device/deviceIocs.h"
#include "host/procInfo.h"
#include "watch/followedIocs.h"

#define RETRY_NS (10 * EBPFMON_SECOND_NS) /* try again: asyn may be loaded later, or a file may answer later */
#define REST_NS  (600 * EBPFMON_SECOND_NS) /* its ports took too much of its budget: try again */
#define TRIES    6 /* then it is taken for an IOC without asyn */

typedef struct {
    ebpfMonFollowedIoc ioc;
    unsigned tries;
    int      hasTrouble;
    ebpfMonProbe *probe; /* the probes at queueRequest and at the functions below */
    size_t   probes, probeRoom;
    struct ebpfMonDeviceFunction *function; /* functions of device support that have a probe, or cannot have one */
    size_t   functions, functionRoom;
    ebpfMonDeviceShare share;
} Followed;

struct ebpfMonDeviceIocs {
    ebpfMonDevicePrograms *programs;
    ebpfMonDeviceRows *rows;
    ebpfMonFollowedIocs *iocs;
    ebpfMonTargets *targets;
    char     trouble[200]; /* why an IOC, or a part of it, is not watched; empty: none */
};

static void leaveIoc(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded)
{
    Followed *f = (Followed *)ioc;
    ebpfMonDeviceIocs *d = arg;

    if (f->probes)
        (hasEnded ? ebpfMonCloserCloseLater : ebpfMonCloserClose)(f->probe, (unsigned)f->probes);
    if (ioc->isOn) {
        ebpfMonDeviceProgramsRemoveProcess(d->programs, ioc->pid);
        ebpfMonDeviceRowsForget(d->rows, ioc->pid);
        ebpfMonDeviceShareClear(d->targets, ioc->iocId);
    }
    memset(&f->share, 0, sizeof(f->share));
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
        ebpfMonDeviceProgramsProbe(d->programs, site, place.path, place.site.offset, f->ioc.pid, probe, &count))
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
    if (ebpfMonDeviceShareRefuses(d->targets, ioc->iocId, why, sizeof(why))) {
        ioc->retryAt = now + RETRY_NS;
        setTrouble(d, f, why);
        return;
    }
    f->hasTrouble = 0;
    ebpfMonAsynFillConf(&conf, ioc->iocId);
    if (setProbe(d, f, queueRequest, ebpfMonDeviceQueue)) {
        setTrouble(d, f, "not watched: no probe can be set at queueRequest of its asyn");
        return;
    }
    ioc->isOn = 1;
    f->share.before = conf;
    if (ebpfMonDeviceProgramsAddProcess(d->programs, ioc->pid, &conf))
        leaveIoc(d, ioc, 0);
}

ebpfMonDeviceIocs *ebpfMonDeviceIocsNew(ebpfMonDevicePrograms *programs, ebpfMonDeviceRows *rows,
                                        ebpfMonTargets *targets)
{
    ebpfMonDeviceIocs *d = calloc(1, sizeof(*d));
    const ebpfMonFollowedUser user = { .size = sizeof(Followed), .enter = enterIoc, .leave = leaveIoc, .arg = d };

    if (!d)
        return NULL;
    d->programs = programs;
    d->rows = rows;
    d->targets = targets;
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
    double sum = 0, now = ebpfMonClockSeconds();
    struct ebpfMonDeviceConf paid;
    char why[120];

    for (ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(d->iocs); ioc; ioc = ioc->next) {
        Followed *f = (Followed *)ioc;

        if (!ioc->isOn || ebpfMonDeviceProgramsReadProcess(d->programs, ioc->pid, &paid))
            continue;
        ebpfMonDeviceShareAdd(&f->share, &paid, costs, seconds);
        sum += f->share.cost;
        if (!ebpfMonDeviceShareIsOver(&f->share, d->targets, ioc->iocId, now, why, sizeof(why)))
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

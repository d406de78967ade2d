/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "common/array.h"
#include "common/clock.h"
#include "device/asynLayout.h"
#include "device/deviceIocs.h"
#include "ioc/codePlace.h"
#include "ioc/procInfo.h"

#define RETRY_NS (10 * EBPFMON_SECOND_NS) /* asyn may be loaded later, and files that do not answer may do so */
#define TRIES    6

typedef struct {
    pid_t    pid;
    uint32_t iocId;
    char     name[EBPFMON_IOCNAME_SIZE];
    int      present;    /* in the list of targets still */
    int      on;
    unsigned tries;
    uint64_t retryAt;
    ebpfMonProbe *probe; /* at queueRequest, and at each function */
    size_t   probes, probeRoom;
    struct ebpfMonDeviceFunction *function; /* that have a probe, or cannot have one */
    size_t   functions, functionRoom;
} Followed;

struct ebpfMonDeviceIocs {
    ebpfMonDevicePrograms *programs;
    Followed *ioc;
    size_t   count, room;
    char     trouble[160];
};

ebpfMonDeviceIocs *ebpfMonDeviceIocsNew(ebpfMonDevicePrograms *programs)
{
    ebpfMonDeviceIocs *d = calloc(1, sizeof(*d));

    if (d)
        d->programs = programs;
    return d;
}

static void leave(ebpfMonDeviceIocs *d, Followed *f, int hasEnded)
{
    if (f->probes)
        (hasEnded ? ebpfMonCloserCloseLater : ebpfMonCloserClose)(f->probe, (unsigned)f->probes);
    if (f->on)
        ebpfMonDeviceProgramsRemoveProcess(d->programs, f->pid);
    free(f->probe);
    free(f->function);
    f->probe = NULL;
    f->function = NULL;
    f->probes = f->probeRoom = f->functions = f->functionRoom = 0;
    f->on = 0;
}

void ebpfMonDeviceIocsFree(ebpfMonDeviceIocs *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++)
        leave(d, &d->ioc[i], 0);
    free(d->ioc);
    free(d);
}

/* Copies the targets that match; those that it knows already are marked. */
static void findTargets(ebpfMonDeviceIocs *d, ebpfMonTargets *targets, const char *pattern)
{
    for (size_t i = 0; i < d->count; i++)
        d->ioc[i].present = 0;
    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        size_t i = 0;

        if (t->gone || t->level == ebpfMonLevelOff || !epicsStrGlobMatch(t->name, pattern))
            continue;
        while (i < d->count && d->ioc[i].iocId != t->iocId)
            i++;
        if (i == d->count) {
            if (ebpfMonArrayGrow(&d->ioc, &d->room, d->count + 1, 8, sizeof(*d->ioc)))
                break;
            d->ioc[d->count] = (Followed){ .pid = t->pid, .iocId = t->iocId };
            memcpy(d->ioc[d->count++].name, t->name, sizeof(t->name));
        }
        d->ioc[i].present = 1;
    }
    ebpfMonTargetsUnlock(targets);
}

static void forgetEnded(ebpfMonDeviceIocs *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->count; i++) {
        if (d->ioc[i].present)
            d->ioc[kept++] = d->ioc[i];
        else
            leave(d, &d->ioc[i], 1);
    }
    d->count = kept;
}

/* Sets the probe, or both, at one function. 0, or -1. */
static int setProbe(ebpfMonDeviceIocs *d, Followed *f, uint64_t address, ebpfMonDeviceSite site)
{
    ebpfMonFunctionPlace place;
    ebpfMonProbe probe[2];
    unsigned count;

    if (ebpfMonArrayGrow(&f->probe, &f->probeRoom, f->probes + 2, 16, sizeof(*f->probe)) ||
        ebpfMonCodePlaceFind(f->pid, address, EBPFMON_ARG1, site == ebpfMonDeviceServe, &place) ||
        ebpfMonDeviceProgramsProbe(d->programs, site, place.path, place.site.offset, f->pid, probe, &count))
        return -1;
    memcpy(f->probe + f->probes, probe, count * sizeof(*probe));
    f->probes += count;
    return 0;
}

static void setTrouble(ebpfMonDeviceIocs *d, const Followed *f, const char *why)
{
    snprintf(d->trouble, sizeof(d->trouble), "%.60s: %s", f->name, why);
}

/* Watches one IOC from now on, if it has asyn. */
static void enter(ebpfMonDeviceIocs *d, Followed *f, uint64_t now)
{
    struct ebpfMonDeviceConf conf;
    uint64_t queueRequest;

    f->retryAt = ++f->tries < TRIES ? now + RETRY_NS : UINT64_MAX;
    queueRequest = ebpfMonAsynFindQueueRequest(f->pid);
    if (!queueRequest)
        return;
    if (ebpfMonProcSeccomp(f->pid) == 2) {
        setTrouble(d, f, "it runs under seccomp, which may forbid return probes");
        return;
    }
    ebpfMonAsynFillConf(&conf, f->iocId);
    if (setProbe(d, f, queueRequest, ebpfMonDeviceQueue)) {
        setTrouble(d, f, "queueRequest of its asyn cannot be probed");
        return;
    }
    f->on = 1;
    if (ebpfMonDeviceProgramsAddProcess(d->programs, f->pid, &conf))
        leave(d, f, 0);
}

/* A function that a request has shown. */
static void addFunction(void *arg, const struct ebpfMonDeviceFunction *function)
{
    ebpfMonDeviceIocs *d = arg;
    Followed *f = NULL;

    for (size_t i = 0; i < d->count && !f; i++)
        if (d->ioc[i].on && (uint32_t)d->ioc[i].pid == function->tgid)
            f = &d->ioc[i];
    if (!f)
        return;
    for (size_t i = 0; i < f->functions; i++)
        if (memcmp(&f->function[i], function, sizeof(*function)) == 0)
            return;
    if (ebpfMonArrayGrow(&f->function, &f->functionRoom, f->functions + 1, 16, sizeof(*f->function)))
        return;
    f->function[f->functions++] = *function;
    if (setProbe(d, f, function->address, function->isTimeout ? ebpfMonDeviceTimeout : ebpfMonDeviceServe))
        setTrouble(d, f, "a function of its device support cannot be probed: what it serves is not seen");
}

void ebpfMonDeviceIocsFollow(ebpfMonDeviceIocs *d, ebpfMonTargets *targets, const char *pattern, ebpfMonWorker *worker)
{
    uint64_t now = ebpfMonClockMonotonic();

    findTargets(d, targets, pattern);
    forgetEnded(d);
    for (size_t i = 0; i < d->count; i++)
        if (!d->ioc[i].on && now >= d->ioc[i].retryAt) {
            enter(d, &d->ioc[i], now);
            ebpfMonWorkerGiveSign(worker);
        }
    ebpfMonDeviceProgramsEachFunction(d->programs, addFunction, d);
}

unsigned ebpfMonDeviceIocsCount(const ebpfMonDeviceIocs *d)
{
    unsigned on = 0;

    for (size_t i = 0; i < d->count; i++)
        on += d->ioc[i].on != 0;
    return on;
}

const char *ebpfMonDeviceIocsGetTrouble(const ebpfMonDeviceIocs *d)
{
    return d->trouble;
}

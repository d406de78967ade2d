/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "common/clock.h"
#include "shared/followedIocs.h"

struct ebpfMonFollowedIocs {
    ebpfMonFollowedUser user;
    ebpfMonFollowedIoc *first;
};

ebpfMonFollowedIocs *ebpfMonFollowedIocsNew(const ebpfMonFollowedUser *user)
{
    ebpfMonFollowedIocs *iocs = calloc(1, sizeof(*iocs));

    if (iocs)
        iocs->user = *user;
    return iocs;
}

static void leaveUnwanted(ebpfMonFollowedIocs *iocs)
{
    ebpfMonFollowedIoc **at = &iocs->first;

    while (*at) {
        ebpfMonFollowedIoc *ioc = *at;

        if (ioc->isWanted) {
            at = &ioc->next;
            continue;
        }
        *at = ioc->next;
        iocs->user.leave(iocs->user.arg, ioc, !ioc->isAlive);
        free(ioc);
    }
}

void ebpfMonFollowedIocsFree(ebpfMonFollowedIocs *iocs)
{
    if (!iocs)
        return;
    for (ebpfMonFollowedIoc *ioc = iocs->first; ioc; ioc = ioc->next)
        ioc->isWanted = 0;
    leaveUnwanted(iocs);
    free(iocs);
}

static ebpfMonFollowedIoc *findIoc(ebpfMonFollowedIocs *iocs, const ebpfMonTarget *t)
{
    ebpfMonFollowedIoc *ioc = iocs->first;

    while (ioc && ioc->iocId != t->iocId)
        ioc = ioc->next;
    return ioc;
}

static ebpfMonFollowedIoc *addIoc(ebpfMonFollowedIocs *iocs, const ebpfMonTarget *t)
{
    ebpfMonFollowedIoc *ioc = calloc(1, iocs->user.size);

    if (ioc) {
        ioc->pid = t->pid;
        ioc->iocId = t->iocId;
        memcpy(ioc->name, t->name, sizeof(ioc->name));
        ioc->next = iocs->first;
        iocs->first = ioc;
    }
    return ioc;
}

static void findTargets(ebpfMonFollowedIocs *iocs, ebpfMonTargets *targets, const char *pattern)
{
    for (ebpfMonFollowedIoc *ioc = iocs->first; ioc; ioc = ioc->next)
        ioc->isWanted = ioc->isAlive = 0;
    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        int isWanted = t->level != ebpfMonLevelOff && epicsStrGlobMatch(t->name, pattern);
        ebpfMonFollowedIoc *ioc = t->gone ? NULL : findIoc(iocs, t);

        if (!ioc && !t->gone && isWanted)
            ioc = addIoc(iocs, t);
        if (ioc) {
            ioc->isAlive = 1;
            ioc->level = t->level;
            ioc->isWanted = isWanted;
        }
    }
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonFollowedIocsFollow(ebpfMonFollowedIocs *iocs, ebpfMonTargets *targets, const char *pattern,
                               ebpfMonWorker *worker)
{
    uint64_t now = ebpfMonClockMonotonic();

    findTargets(iocs, targets, pattern);
    leaveUnwanted(iocs);
    for (ebpfMonFollowedIoc *ioc = iocs->first; ioc; ioc = ioc->next)
        if (!ioc->isOn && now >= ioc->retryAt) {
            iocs->user.enter(iocs->user.arg, ioc, now);
            ebpfMonWorkerGiveSign(worker);
        }
}

ebpfMonFollowedIoc *ebpfMonFollowedIocsGetFirst(const ebpfMonFollowedIocs *iocs)
{
    return iocs->first;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group is never queued twice. While its records are being processed, and for SPACING after the last
 * priority has reported completion, a further change only marks it. So one put reaches its PVs at once, and
 * ten thousand a second cost as much as a hundred.
 *
 * scanIoRequest (database/src/ioc/db/dbScan.c) returns the priorities that it has queued: 0 when the IOC is
 * not running, when the callback queue is full, and when no record is in the list. The last is no reason to
 * try again; for the others no completion will come, so a timer does.
 */
#include <string.h>

#include <callback.h>
#include <epicsMutex.h>

#include "record/pvScan.h"

#define SPACING 0.01 /* s: the most that a put waits for those before it */
#define RETRY   0.1  /* s */

typedef struct {
    IOSCANPVT     list;
    epicsCallback timer;
    unsigned      members;
    unsigned      busy;    /* priorities queued or processing, a bit each */
    int           waiting; /* the timer is running */
    int           dirty;   /* has changed since it was queued */
    uint64_t      newest;  /* ebpfMonGroupBad: the unexpected put that all its records will have shown by then */
} scanGroup;

static scanGroup groups[ebpfMonGroupCount];
static epicsMutexId scanLock; /* of all groups; of our locks only the published's is taken under it */
static int scanning;
static int wasUseful;         /* the state let data through, when it was last looked at */

static void groupWait(scanGroup *group, double delay)
{
    group->waiting = 1;
    callbackRequestDelayed(&group->timer, delay);
}

/* Under the lock: a completion may come before scanIoRequest returns, and must find "busy" set. */
static void groupQueue(scanGroup *group)
{
    group->dirty = 0;
    if (group == &groups[ebpfMonGroupBad])
        group->newest = ebpfMonPublishedGetBadNumber();
    group->busy = scanIoRequest(group->list);
    if (!group->busy && group->members) {
        group->dirty = 1;
        groupWait(group, RETRY);
    }
}

static void groupComplete(void *user, IOSCANPVT list, int priority)
{
    scanGroup *group = user;
    uint64_t shown = 0;

    (void)list;
    epicsMutexMustLock(scanLock);
    group->busy &= ~(1u << priority);
    if (!group->busy)
        shown = group->newest;
    if (scanning && !group->busy && !group->waiting)
        groupWait(group, SPACING);
    epicsMutexUnlock(scanLock);
    if (shown)
        ebpfMonPublishedSetBadShown(ebpfMonShownByPvs, shown);
}

static void groupTimer(epicsCallback *callback)
{
    scanGroup *group = callback->user;

    epicsMutexMustLock(scanLock);
    group->waiting = 0;
    if (scanning && !group->busy && group->dirty)
        groupQueue(group);
    epicsMutexUnlock(scanLock);
}

static void groupChanged(scanGroup *group)
{
    epicsMutexMustLock(scanLock);
    if (scanning) {
        if (group->busy || group->waiting)
            group->dirty = 1;
        else
            groupQueue(group);
    }
    epicsMutexUnlock(scanLock);
}

static void boardChanged(ebpfMonGroup group)
{
    ebpfMonState state;
    int useful, turned, i;

    if (group == ebpfMonGroupState) {
        /* Every record is INVALID while the monitor does not run: all must be told when that turns. */
        state = ebpfMonPublishedLock()->state;
        ebpfMonPublishedUnlock();
        useful = state == ebpfMonRunning || state == ebpfMonDegraded;
        epicsMutexMustLock(scanLock);
        turned = useful != wasUseful;
        wasUseful = useful;
        epicsMutexUnlock(scanLock);
        if (turned) {
            for (i = 0; i < ebpfMonGroupCount; i++)
                groupChanged(&groups[i]);
            return;
        }
    }
    if ((unsigned)group < ebpfMonGroupCount)
        groupChanged(&groups[group]);
}

void ebpfMonScanInit(void)
{
    int i;

    if (!scanLock)
        scanLock = epicsMutexMustCreate();
    for (i = 0; i < ebpfMonGroupCount; i++) {
        scanGroup *group = &groups[i];

        memset(group, 0, sizeof(*group)); /* a timer of an IOC that was shut down (tests) is gone with it */
        scanIoInit(&group->list);
        scanIoSetComplete(group->list, groupComplete, group);
        callbackSetCallback(groupTimer, &group->timer);
        callbackSetPriority(priorityMedium, &group->timer);
        callbackSetUser(group, &group->timer);
    }
    wasUseful = 0;
    scanning = 1;
    ebpfMonPublishedSetListener(boardChanged);
}

void ebpfMonScanStop(void)
{
    if (!scanLock)
        return;
    ebpfMonPublishedSetListener(NULL);
    epicsMutexMustLock(scanLock);
    scanning = 0;
    epicsMutexUnlock(scanLock);
}

IOSCANPVT ebpfMonScanList(ebpfMonGroup group, int leaves)
{
    epicsMutexMustLock(scanLock);
    if (!leaves)
        groups[group].members++;
    else if (groups[group].members)
        groups[group].members--;
    epicsMutexUnlock(scanLock);
    return groups[group].list;
}

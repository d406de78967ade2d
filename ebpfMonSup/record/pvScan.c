/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group is never queued twice. While its records process, and for SPACING after the last priority reported
 * completion, a change only marks the group. So one put reaches its PVs at once, and ten thousand puts per second cost
 * as much as a hundred.
 *
 * scanIoRequest (database/src/ioc/db/dbScan.c) returns the priorities that it queued. It returns 0 when the IOC does
 * not run, when the callback queue is full, and when no record is in the list. In the first two cases no completion
 * will come, so a timer tries again. In the third there is nothing to do.
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
    epicsCallback post;    /* its tables: later than the records of all groups that have changed meanwhile */
    unsigned      members; /* records in the list */
    unsigned      busy;    /* one bit for each priority that is queued or processes */
    int           waiting; /* the timer runs */
    int           dirty;   /* a value changed after the group was queued */
    uint64_t      newest;  /* ebpfMonGroupUnexpected: number of the newest unexpected put that its records will show */
} scanGroup;

/* One per process, because the scan lists and the callback queues of Base are. scanLock guards all of it. */
static scanGroup groups[ebpfMonGroupCount];
static epicsMutexId scanLock; /* under it we take no other lock than that of the published values */
static int scanning;
static int wasUseful;         /* at the last change of the state the records had values */
static void (*onShown)(ebpfMonGroup group); /* set before the first scan */

static void groupWait(scanGroup *group, double delay)
{
    group->waiting = 1;
    callbackRequestDelayed(&group->timer, delay);
}

/* Call it with the lock held: a completion may come before scanIoRequest returns, and must find "busy" set. */
static void groupQueue(scanGroup *group)
{
    group->dirty = 0;
    if (group == &groups[ebpfMonGroupUnexpected])
        group->newest = ebpfMonPublishedCountUnexpected();
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
    int isDone;

    (void)list;
    epicsMutexMustLock(scanLock);
    group->busy &= ~(1u << priority);
    isDone = scanning && !group->busy;
    if (!group->busy)
        shown = group->newest;
    if (scanning && !group->busy && !group->waiting)
        groupWait(group, SPACING);
    epicsMutexUnlock(scanLock);
    if (shown)
        ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, shown);
    if (isDone)
        callbackRequest(&group->post); /* a queue that is full: the next change posts them */
}

static void groupPost(epicsCallback *callback)
{
    const scanGroup *group = callback->user;

    onShown((ebpfMonGroup)(group - groups));
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

static void publishedChanged(ebpfMonGroup group)
{
    ebpfMonState state;
    int useful, turned, i;

    if (group == ebpfMonGroupState) {
        /* Every record is INVALID while the monitor does not run, so all must process when that changes. */
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

void ebpfMonScanInit(void (*shown)(ebpfMonGroup group))
{
    int i;

    onShown = shown;
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
        callbackSetCallback(groupPost, &group->post);
        callbackSetPriority(priorityLow, &group->post);
        callbackSetUser(group, &group->post);
    }
    wasUseful = 0;
    scanning = 1;
    ebpfMonPublishedSetListener(publishedChanged);
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

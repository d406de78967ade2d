/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group is never queued twice. While its records process, and for SPACING afterwards, a change only marks the group.
 * So a single put reaches its PVs at once, and ten thousand puts per second cost as much as a hundred. A timer is
 * started only if a change comes so early: a group that changes once a second needs none.
 *
 * scanIoRequest (dbScan.c) returns the priorities that it queued. It returns 0 if the IOC does not run, if the callback
 * queue is full, or if the list has no record. In the first two cases no completion will come, so a timer tries again.
 * In the third there is nothing to do.
 */
#include <string.h>

#include <callback.h>
#include <epicsMutex.h>

#include "common/clock.h"
#include "record/pvScan.h"

#define SPACING_NS 10000000ull /* a put waits at most so long for puts before it */
#define RETRY_NS   100000000ull
#define POST_NS    100000000ull /* so often a table is posted at most: a post makes all its cells anew */

typedef struct {
    IOSCANPVT     list;
    epicsCallback timer;
    epicsCallback post;    /* posts its tables, with low priority: after the records of all groups */
    uint64_t      posts;   /* it was requested for this time (monotonic ns); 0: never */
    unsigned      members; /* records in the list */
    unsigned      busy;    /* one bit for each priority that is queued or processes */
    uint64_t      spaced;  /* the next change has to wait until then (monotonic ns) */
    int           waiting; /* the timer runs */
    int           dirty;   /* a value changed after the group was queued */
    uint64_t      newest;  /* only ebpfMonGroupUnexpected: number of the newest unexpected put that its records will
                            * show */
} scanGroup;

/* One per process, because Base has one of each scan list and callback queue. scanLock guards all of it. */
static scanGroup groups[ebpfMonGroupCount];
static epicsMutexId scanLock; /* only the lock of the published values may be taken under it */
static int isScanning;
static int hadValues;         /* the records had values after the last change of the state */
static void (*onShown)(ebpfMonGroup group); /* set before the first scan */

static void delayGroup(scanGroup *group, uint64_t ns)
{
    group->waiting = 1;
    callbackRequestDelayed(&group->timer, (double)ns / 1e9);
}

/* The caller holds scanLock. So a completion that comes before scanIoRequest returns waits, and then finds "busy"
 * set. */
static void queueGroup(scanGroup *group)
{
    group->dirty = 0;
    if (group == &groups[ebpfMonGroupUnexpected])
        group->newest = ebpfMonPublishedCountUnexpected();
    group->busy = scanIoRequest(group->list);
    if (!group->busy && group->members) {
        group->dirty = 1;
        delayGroup(group, RETRY_NS);
    }
}

/* The caller holds scanLock. If the queue is full, the next change posts the tables. */
static void requestPost(scanGroup *group, uint64_t now)
{
    if (group->posts > now) /* it is requested already, and will have this change, too */
        return;
    if (!group->posts || now - group->posts >= POST_NS) {
        group->posts = now;
        callbackRequest(&group->post);
    } else {
        group->posts += POST_NS;
        callbackRequestDelayed(&group->post, (double)(group->posts - now) / 1e9);
    }
}

static void onComplete(void *user, IOSCANPVT list, int priority)
{
    scanGroup *group = user;
    uint64_t shown = 0, now;

    (void)list;
    epicsMutexMustLock(scanLock);
    group->busy &= ~(1u << priority);
    if (!group->busy) {
        shown = group->newest;
        now = ebpfMonClockMonotonic();
        group->spaced = now + SPACING_NS;
        if (isScanning)
            requestPost(group, now);
    }
    if (isScanning && !group->busy && group->dirty && !group->waiting)
        delayGroup(group, SPACING_NS);
    epicsMutexUnlock(scanLock);
    if (shown)
        ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, shown);
}

static void postGroup(epicsCallback *callback)
{
    const scanGroup *group = callback->user;

    onShown((ebpfMonGroup)(group - groups));
}

static void onTimer(epicsCallback *callback)
{
    scanGroup *group = callback->user;

    epicsMutexMustLock(scanLock);
    group->waiting = 0;
    if (isScanning && !group->busy && group->dirty)
        queueGroup(group);
    epicsMutexUnlock(scanLock);
}

static void changeGroup(scanGroup *group)
{
    uint64_t now = ebpfMonClockMonotonic();

    epicsMutexMustLock(scanLock);
    if (isScanning && !group->busy && !group->waiting && now >= group->spaced) {
        queueGroup(group);
    } else if (isScanning) {
        group->dirty = 1;
        if (!group->busy && !group->waiting)
            delayGroup(group, group->spaced - now);
    }
    epicsMutexUnlock(scanLock);
}

static void onPublished(ebpfMonGroup group)
{
    ebpfMonState state;
    int haveValues, isChange, i;

    if (group == ebpfMonGroupState) {
        /* Every record is INVALID while the monitor does not run, so all must process when that changes. */
        state = ebpfMonPublishedLock()->state;
        ebpfMonPublishedUnlock();
        haveValues = state == ebpfMonRunning || state == ebpfMonDegraded;
        epicsMutexMustLock(scanLock);
        isChange = haveValues != hadValues;
        hadValues = haveValues;
        epicsMutexUnlock(scanLock);
        if (isChange) {
            for (i = 0; i < ebpfMonGroupCount; i++)
                changeGroup(&groups[i]);
            return;
        }
    }
    if ((unsigned)group < ebpfMonGroupCount)
        changeGroup(&groups[group]);
}

void ebpfMonScanInit(void (*shown)(ebpfMonGroup group))
{
    int i;

    onShown = shown;
    if (!scanLock)
        scanLock = epicsMutexMustCreate();
    for (i = 0; i < ebpfMonGroupCount; i++) {
        scanGroup *group = &groups[i];

        memset(group, 0, sizeof(*group)); /* in tests an IOC may have been shut down before; its timers were freed */
        scanIoInit(&group->list);
        scanIoSetComplete(group->list, onComplete, group);
        callbackSetCallback(onTimer, &group->timer);
        callbackSetPriority(priorityMedium, &group->timer);
        callbackSetUser(group, &group->timer);
        callbackSetCallback(postGroup, &group->post);
        callbackSetPriority(priorityLow, &group->post);
        callbackSetUser(group, &group->post);
    }
    hadValues = 0;
    isScanning = 1;
    ebpfMonPublishedSetListener(onPublished);
}

void ebpfMonScanStop(void)
{
    if (!scanLock)
        return;
    ebpfMonPublishedSetListener(NULL);
    epicsMutexMustLock(scanLock);
    isScanning = 0;
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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group has two scan lists. Its values process first, its rows (waveforms) and its tables afterwards: they take much
 * longer, and a value must not wait for them. A list is never queued twice. While the values process, and for
 * VALUES_NS afterwards, a change only marks the group; rows and tables have ROWS_NS. So a single put reaches all its
 * PVs at once, and ten thousand puts per second cost as much as a hundred. Timers are started only if a change comes so
 * early: a group that changes once a second needs none.
 *
 * scanIoRequest (dbScan.c) returns the priorities that it queued. It returns 0 if the IOC does not run, if the callback
 * queue is full, or if the list has no record. In the first two cases no completion will come, so a timer tries again.
 */
#include <string.h>

#include <callback.h>
#include <epicsMutex.h>

#include "common/clock.h"
#include "record/pvScan.h"

#define VALUES_NS 10000000ull  /* a put waits at most so long for puts before it */
#define ROWS_NS   250000000ull /* rows and tables have the changes of so long: all their cells are made anew */
#define EARLY_NS  10000000ull  /* a timer of Base runs up to 5 ms early (timer.cpp) */
#define RETRY_NS  100000000ull
#define LATE_NS   1000000000ull

typedef struct {
    IOSCANPVT list;
    unsigned  members; /* records in the list */
    unsigned  busy;    /* one bit for each priority that is queued or processes */
} scanList;

typedef struct {
    scanList      values;
    scanList      rows;
    epicsCallback valueTimer;
    epicsCallback rowTimer; /* requests the rows, with low priority: after the values of all groups */
    uint64_t      spaced;   /* the next change has to wait until then (monotonic ns) */
    uint64_t      rowsAt;   /* the rows were last queued at this time (monotonic ns); 0: never */
    uint64_t      valuesDue; /* valueTimer will run at this time; 0: it will not. It may run somewhat before */
    uint64_t      rowsDue;  /* the same for rowTimer */
    int           dirty;    /* a value changed after the group was queued */
    uint64_t      newest;   /* only ebpfMonGroupUnexpected: number of the newest unexpected put that its rows will
                             * show */
} scanGroup;

/* One per process, because Base has one of each scan list and callback queue. scanLock guards all of it. */
static scanGroup groups[ebpfMonGroupCount];
static epicsMutexId scanLock; /* only the lock of the published values may be taken under it */
static int isScanning;
static int hadValues;         /* the records had values after the last change of the state */
static void (*onShown)(ebpfMonGroup group); /* set before the first scan */

/* Nonzero: this timer will still run. A timer of Base gives up if it finds the callback queue full (notify,
 * callback.c). So nobody waits for it much longer than it should take. */
static int willRun(uint64_t due)
{
    return due && ebpfMonClockMonotonic() < due + LATE_NS;
}

/* The caller holds scanLock, as in all functions up to the first callback. */
static void delayValues(scanGroup *group, uint64_t ns)
{
    group->valuesDue = ebpfMonClockMonotonic() + ns;
    callbackRequestDelayed(&group->valueTimer, (double)ns / 1e9);
}

/* A completion that comes before scanIoRequest returns waits for scanLock, and then finds "busy" set. 0: the list has
 * to be requested again. */
static int requestList(scanList *list)
{
    list->busy = scanIoRequest(list->list);
    return list->busy || !list->members;
}

static void delayRows(scanGroup *group, uint64_t ns)
{
    group->rowsDue = ebpfMonClockMonotonic() + ns;
    callbackRequestDelayed(&group->rowTimer, (double)ns / 1e9);
}

static void requestRows(scanGroup *group)
{
    uint64_t now = ebpfMonClockMonotonic();
    /* the same moments for all groups: a put changes several, and one wake-up is enough for them */
    uint64_t next = ((group->rowsAt + EARLY_NS) / ROWS_NS + 1) * ROWS_NS;

    if (willRun(group->rowsDue)) /* they will have this change, too */
        return;
    if (group->rowsAt && now < next)
        delayRows(group, next - now);
    else if (callbackRequest(&group->rowTimer) == 0)
        group->rowsDue = now;
    else
        delayRows(group, RETRY_NS);
}

static void queueGroup(scanGroup *group)
{
    group->dirty = 0;
    if (!requestList(&group->values)) {
        group->dirty = 1;
        delayValues(group, RETRY_NS);
    } else if (!group->values.busy) {
        requestRows(group);
    }
}

static void onValues(void *user, IOSCANPVT list, int priority)
{
    scanGroup *group = user;

    epicsMutexMustLock(scanLock);
    group->values.busy &= ~(1u << priority);
    if (!group->values.busy) {
        group->spaced = ebpfMonClockMonotonic() + VALUES_NS;
        if (isScanning)
            requestRows(group);
    }
    if (isScanning && !group->values.busy && group->dirty && !willRun(group->valuesDue))
        delayValues(group, VALUES_NS);
    epicsMutexUnlock(scanLock);
}

static void onValueTimer(epicsCallback *callback)
{
    scanGroup *group = callback->user;

    epicsMutexMustLock(scanLock);
    group->valuesDue = 0;
    if (isScanning && !group->values.busy && group->dirty)
        queueGroup(group);
    epicsMutexUnlock(scanLock);
}

/* All records of the group have processed. Not under scanLock. */
static void endShowing(const scanGroup *group, uint64_t newest)
{
    if (newest)
        ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByPvs, newest);
    onShown((ebpfMonGroup)(group - groups));
}

static void onRows(void *user, IOSCANPVT list, int priority)
{
    scanGroup *group = user;
    uint64_t newest;
    unsigned busy;

    epicsMutexMustLock(scanLock);
    busy = group->rows.busy &= ~(1u << priority);
    newest = group->newest;
    epicsMutexUnlock(scanLock);
    if (!busy)
        endShowing(group, newest);
}

/* Under scanLock. 0: try again. */
static int queueRows(scanGroup *group)
{
    if (group->rows.busy)
        return 0;
    if (group == &groups[ebpfMonGroupUnexpected])
        group->newest = ebpfMonPublishedCountUnexpected();
    return requestList(&group->rows);
}

static void onRowTimer(epicsCallback *callback)
{
    scanGroup *group = callback->user;
    uint64_t newest;
    int isShown = 0;

    epicsMutexMustLock(scanLock);
    group->rowsDue = 0;
    group->rowsAt = ebpfMonClockMonotonic();
    if (isScanning && !queueRows(group))
        delayRows(group, RETRY_NS);
    else
        isShown = isScanning && !group->rows.busy;
    newest = group->newest;
    epicsMutexUnlock(scanLock);
    if (isShown)
        endShowing(group, newest);
}

static void changeGroup(scanGroup *group)
{
    uint64_t now = ebpfMonClockMonotonic();
    int willBeQueued;

    epicsMutexMustLock(scanLock);
    willBeQueued = group->values.busy || willRun(group->valuesDue);
    if (isScanning && !willBeQueued && now >= group->spaced) {
        queueGroup(group);
    } else if (isScanning) {
        group->dirty = 1;
        if (!willBeQueued)
            delayValues(group, group->spaced - now);
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

static void initList(scanList *list, io_scan_complete onComplete, scanGroup *group)
{
    scanIoInit(&list->list);
    scanIoSetComplete(list->list, onComplete, group);
}

static void initTimer(epicsCallback *timer, CALLBACKFUNC onTime, int priority, scanGroup *group)
{
    callbackSetCallback(onTime, timer);
    callbackSetPriority(priority, timer);
    callbackSetUser(group, timer);
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
        initList(&group->values, onValues, group);
        initList(&group->rows, onRows, group);
        initTimer(&group->valueTimer, onValueTimer, priorityMedium, group);
        initTimer(&group->rowTimer, onRowTimer, priorityLow, group);
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

IOSCANPVT ebpfMonScanList(ebpfMonGroup group, int isRows, int leaves)
{
    scanList *list = isRows ? &groups[group].rows : &groups[group].values;

    epicsMutexMustLock(scanLock);
    if (!leaves)
        list->members++;
    else if (list->members)
        list->members--;
    epicsMutexUnlock(scanLock);
    return list->list;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aSub routine ebpfMonFilterProcess. Its inputs: filterInputs.h. Its outputs:
 *   VALA status text, CHAR array    VALB number of records that match    VALC generation of the filter in force
 *
 * The record is asynchronous: it completes when the filter is in force, so a put with callback waits for this. If a
 * filter is refused, the old one stays in force, and the record has the severity of BRSV.
 */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdio.h>
#include <string.h>

#include <aSubRecord.h>
#include <callback.h>
#include <dbAccess.h>
#include <dbFldTypes.h>
#include <dbLock.h>
#include <dbNotify.h>
#include <epicsEvent.h>
#include <epicsExport.h>
#include <registryFunction.h>

#include "common/clock.h"
#include "common/worker.h"
#include "model/ops.h"
#include "model/put.h"
#include "record/filterSub.h"

#define TEXT_SIZE 512
/* This must be more than 5 ms. A timer of Base expires half a tick of 10 ms early (timer::privateStart in
 * timer.cpp). So a timer of 5 ms would expire at once, and polling would take a whole CPU. */
#define POLL_SECONDS 0.02
#define LATE_SECONDS 0.1                 /* polls so often after the record has completed */
#define APPLY_NS (5 * EBPFMON_SECOND_NS) /* the record waits so long; reading a large IOC takes less */
#define COMMAND_SECONDS 10.0             /* the command waits so long: for a filter before it, and for its own */

/* One in a process: there is one filter, with one record and one command. */
static struct {
    aSubRecord      *record;         /* the last one loaded; set before the IOC runs */
    ebpfMonLazyMutex lock;           /* guards what follows */
    int              isReady;        /* the record has processed once, so the command may process it */
    unsigned         commandPending; /* one bit for each input that the command sets when the record processes next */
    ebpfMonFilter    command;        /* the values of these inputs */
} shared = { .lock = EBPFMON_LAZY_MUTEX };

/* The filter for which the record waits. The lock of the record guards it. */
static struct {
    epicsCallback       poll;
    ebpfMonFilterAnswer answer;
    uint64_t            until;       /* the record completes at this time in any case (monotonic ns) */
    int                 isOpen;      /* the record has completed, but the filter is not in force yet */
    int                 isLate;      /* the record processes once more, only to show that the filter is in force */
    char                filter[TEXT_SIZE];
} awaited;

static void showText(aSubRecord *prec, const char *text)
{
    if (prec->ftva != DBF_CHAR && prec->ftva != DBF_UCHAR)
        return;
    ebpfMonTextCopy(prec->vala, prec->nova, text);
    prec->neva = (epicsUInt32)strlen(prec->vala) + 1;
}

static void showProgress(aSubRecord *prec, const char *progress)
{
    char text[TEXT_SIZE + 60];

    snprintf(text, sizeof(text), "%s: %s", progress, awaited.filter);
    showText(prec, text);
    *(epicsUInt32 *)prec->valb = awaited.answer.matching;
    *(epicsUInt32 *)prec->valc = awaited.answer.generation;
}

/* Runs in a callback thread. If a filter takes long, the record completes before the filter is in force. When it is
 * in force, the record processes once more, to tell operators. */
static void pollApplied(epicsCallback *callback)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    int isApplied;
    aSubRecord *prec;
    void *user;

    callbackGetUser(user, callback);
    prec = user;
    dbScanLock((dbCommon *)prec);
    isApplied = monitor->isFilterApplied(monitor->arg, awaited.answer.number);
    if (prec->pact && !isApplied && ebpfMonClockMonotonic() < awaited.until) {
        callbackRequestDelayed(callback, POLL_SECONDS);
    } else if (prec->pact) {
        prec->rset->process((dbCommon *)prec);
    } else if (awaited.isOpen && !isApplied) {
        callbackRequestDelayed(callback, LATE_SECONDS);
    } else if (awaited.isOpen) {
        awaited.isLate = 1;
        dbProcess((dbCommon *)prec);
        awaited.isLate = 0;
    }
    dbScanUnlock((dbCommon *)prec);
}

static void beginWait(aSubRecord *prec)
{
    callbackSetCallback(pollApplied, &awaited.poll);
    callbackSetPriority(priorityLow, &awaited.poll);
    callbackSetUser(prec, &awaited.poll);
    awaited.until = ebpfMonClockMonotonic() + APPLY_NS;
    prec->pact = TRUE;
    callbackRequestDelayed(&awaited.poll, POLL_SECONDS);
}

static void stopWaiting(aSubRecord *prec)
{
    showProgress(prec, "accepted, being applied");
    awaited.isOpen = 1;
    callbackRequestDelayed(&awaited.poll, LATE_SECONDS);
}

static unsigned takeCommand(ebpfMonFilter *command)
{
    unsigned inputs;

    ebpfMonLazyMutexLock(&shared.lock);
    shared.isReady = 1;
    inputs = shared.commandPending;
    shared.commandPending = 0;
    *command = shared.command;
    ebpfMonLazyMutexUnlock(&shared.lock);
    return inputs;
}

/* Requests the filter of the record's inputs, or of a command. 0, or -1: the record shows what is wrong. */
static long setFilter(aSubRecord *prec)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonFilter filter = ebpfMonFilterDefault, command;
    unsigned byCommand = takeCommand(&command);
    char why[TEXT_SIZE];
    long status = 0;

    ebpfMonFilterCheckInputs(prec);
    ebpfMonFilterStampInputs(prec); /* now, because autosave has restored the source records before */
    if (byCommand != EBPFMON_FILTER_ALL)
        status = ebpfMonFilterReadInputs(prec, &filter, why, sizeof(why));
    ebpfMonFilterCopyInputs(&filter, &command, byCommand);
    if (!status)
        status = ebpfMonFilterCheck(&filter, why, sizeof(why));
    if (!status)
        status = monitor->setFilter(monitor->arg, &filter, &awaited.answer, why, sizeof(why));
    if (status) {
        showText(prec, why);
        return -1;
    }
    ebpfMonFilterFormat(&filter, awaited.filter, sizeof(awaited.filter));
    if (byCommand)
        ebpfMonFilterWriteInputs(prec, &filter);
    return 0;
}

static long ebpfMonFilterProcess(aSubRecord *prec)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    int isWaitOver = prec->pact;

    if (!isWaitOver && (prec->ftvb != DBF_ULONG || prec->ftvc != DBF_ULONG)) {
        showText(prec, "not in force: FTVB and FTVC must be ULONG");
        return -1;
    }
    /* An input may have changed meanwhile. Base notes this in RPRO only if a client made the put, but it counts in LCNT
     * each attempt to process an active record (processTarget in dbDbLink.c, dbProcess in dbAccess.c). */
    if (isWaitOver && prec->lcnt)
        prec->rpro = TRUE;
    awaited.isOpen = 0; /* a new filter replaces the one that was waited for, or is refused */
    if (!isWaitOver && !awaited.isLate && setFilter(prec))
        return -1;
    if (!awaited.answer.number)
        showProgress(prec, "accepted, in force as soon as ebpfMon runs");
    else if (monitor->isFilterApplied(monitor->arg, awaited.answer.number))
        showProgress(prec, "in force");
    else if (isWaitOver)
        stopWaiting(prec);
    else
        beginWait(prec);
    return 0;
}

static long ebpfMonFilterInit(aSubRecord *prec)
{
    shared.record = prec;
    shared.isReady = 0;
    return 0;
}

static void onProcessed(processNotify *notify)
{
    epicsEventMustTrigger(notify->usrPvt);
}

static void getNothing(processNotify *notify, notifyGetType type)
{
}

/* Processes the filter record, and waits until it has completed. If it processes already, this waits for that first. */
static long processFilter(char *text, size_t size)
{
    aSubRecord *prec = shared.record;
    epicsEventId done = epicsEventMustCreate(epicsEventEmpty);
    processNotify notify = {
        .requestType = processGetRequest, /* not processRequest, for which processNotifyCommon of Base does nothing */
        .chan = dbChannelCreate(prec->name), .getCallback = getNothing, .doneCallback = onProcessed, .usrPvt = done,
    };
    long status = -1;

    if (notify.chan && dbChannelOpen(notify.chan) == 0) {
        int isDone;

        dbProcessNotify(&notify);
        isDone = epicsEventWaitWithTimeout(done, COMMAND_SECONDS) == epicsEventOK;
        dbNotifyCancel(&notify);
        dbScanLock((dbCommon *)prec);
        if (!isDone) /* what the record has is of an earlier filter */
            snprintf(text, size, "%s does not complete: is the callback queue full? See callbackQueueShow", prec->name);
        else if (prec->ftva == DBF_CHAR || prec->ftva == DBF_UCHAR)
            ebpfMonTextCopy(text, size, prec->vala);
        status = isDone ? prec->val : -1;
        dbScanUnlock((dbCommon *)prec);
    }
    if (notify.chan)
        dbChannelDelete(notify.chan);
    epicsEventDestroy(done);
    return status;
}

static int isReady(void)
{
    int ready;

    ebpfMonLazyMutexLock(&shared.lock);
    ready = shared.isReady;
    ebpfMonLazyMutexUnlock(&shared.lock);
    return ready;
}

void ebpfMonFilterReprocess(void)
{
    char text[TEXT_SIZE];

    if (isReady())
        processFilter(text, sizeof(text));
}

long ebpfMonFilterCommand(const ebpfMonFilter *filter, unsigned inputs, char *text, size_t size)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonFilter checked = *filter;
    ebpfMonFilterAnswer answer;
    int ready;

    if (ebpfMonFilterCheck(&checked, text, size))
        return -1;
    ebpfMonLazyMutexLock(&shared.lock);
    ready = shared.isReady;
    shared.command = checked;
    /* before iocInit there may be several commands, and all of them count */
    shared.commandPending = ready ? EBPFMON_FILTER_ALL : shared.commandPending | inputs;
    ebpfMonLazyMutexUnlock(&shared.lock);
    if (ready)
        return processFilter(text, size);
    /* There is no record, or it has not processed yet. Then it takes the pending inputs when it processes for the
     * first time. */
    if (monitor->setFilter(monitor->arg, &checked, &answer, text, size))
        return -1;
    snprintf(text, size, "accepted, in force as soon as ebpfMon runs: ");
    ebpfMonFilterFormat(&checked, text + strlen(text), size - strlen(text));
    return 0;
}

epicsRegisterFunction(ebpfMonFilterInit);
epicsRegisterFunction(ebpfMonFilterProcess);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stringin, DTYP "ebpfMon pulse": MAJOR for a moment with each unexpected put.
 *
 * An alarm server tells people when a severity rises. One that stays MAJOR until the puts are acknowledged here says
 * nothing of a second put once the first one was acknowledged there. So this one falls back by itself, and rises again
 * for what came in the meantime: the newest one, not each of a burst. In a latching alarm tree each pulse stays.
 */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <alarm.h>
#include <callback.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <epicsTime.h>
#include <recGbl.h>
#include <stringinRecord.h>

#include "model/published.h"
#include "record/pvScan.h"

#define RAISED  1.0 /* s */
#define LOWERED 0.2 /* s: at least so long between two pulses, for clients to see the fall */

typedef enum { pulseIdle, pulseRaised, pulseLowered } pulsePhase;

/* The lock of the record guards it. */
typedef struct {
    epicsCallback timer; /* processes the record when the phase is over */
    pulsePhase     phase;
    epicsUInt64    until; /* end of the phase, epicsMonotonicGet */
    uint64_t       shown; /* number of the unexpected put in the record */
    char           reason[sizeof(((dbCommon *)0)->amsg) - 1]; /* recGblSetSevrVMsg (recGbl.c) takes no more */
} pulseState;

static long init(dbCommon *prec)
{
    pulseState *pulse = callocMustSucceed(1, sizeof(*pulse), "ebpfMon pulse");

    callbackSetProcess(&pulse->timer, priorityMedium, prec);
    strcpy(((stringinRecord *)prec)->val, EBPFMON_NO_UNEXPECTED);
    prec->dpvt = pulse;
    return 0;
}

static long getScanList(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    (void)prec;
    *list = ebpfMonScanList(ebpfMonGroupUnexpected, leaves);
    return 0;
}

/* Takes the newest put if the record has not shown it. Zero: it has. */
static int takeNewest(stringinRecord *prec, pulseState *pulse, epicsTimeStamp *when)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonPut *put = ebpfMonPublishedGetNewestUnexpected(published);
    int isNew = put && published->unexpected.count != pulse->shown;

    if (isNew) {
        pulse->shown = published->unexpected.count;
        ebpfMonPutBrief(put, prec->val);
        ebpfMonTextCopy(pulse->reason, sizeof(pulse->reason), put->rule);
        *when = put->time;
    }
    ebpfMonPublishedUnlock();
    return isNew;
}

static void beginPhase(pulseState *pulse, pulsePhase phase, epicsUInt64 now)
{
    pulse->phase = phase;
    pulse->until = now + (epicsUInt64)((phase == pulseRaised ? RAISED : LOWERED) * 1e9);
}

static long readPulse(stringinRecord *prec)
{
    pulseState *pulse = prec->dpvt;
    epicsUInt64 now = epicsMonotonicGet();
    epicsTimeStamp when, put;
    int turns = !prec->time.secPastEpoch; /* the first time */

    epicsTimeGetCurrent(&when);
    if (pulse->phase != pulseIdle && now >= pulse->until) {
        if (pulse->phase == pulseRaised) {
            beginPhase(pulse, pulseLowered, now);
            turns = 1;
        } else {
            pulse->phase = pulseIdle;
        }
    }
    if (pulse->phase == pulseIdle && takeNewest(prec, pulse, &put)) {
        beginPhase(pulse, pulseRaised, now);
        if (epicsTimeGreaterThan(&put, &prec->time)) /* else the pulse before is later than this put */
            when = put;
        turns = 1;
    }
    if (pulse->phase == pulseRaised)
        recGblSetSevrMsg(prec, STATE_ALARM, MAJOR_ALARM, "%s", pulse->reason);
    if (pulse->phase != pulseIdle)
        callbackRequestDelayed(&pulse->timer, (double)(pulse->until - now) * 1e-9);
    if (turns && prec->tse == epicsTimeEventDeviceTime)
        prec->time = when;
    prec->udf = FALSE;
    return 0;
}

stringindset devEbpfMonPulse = {{5, NULL, NULL, init, getScanList}, readPulse};
epicsExportAddress(dset, devEbpfMonPulse);

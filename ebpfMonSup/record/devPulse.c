/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device support of stringin, DTYP "ebpfMon pulse": the record is MAJOR for a short time after each unexpected put.
 *
 * An alarm server tells people when a severity rises. The PVs PUT_BAD_… stay MAJOR until the puts are acknowledged
 * here. So if the first put was acknowledged at the alarm server only, nobody there learns of a second one. This record
 * goes back to NO_ALARM by itself, and rises again for the next put. Of several puts in one pulse it shows the newest.
 * An alarm tree that latches keeps each pulse until it is acknowledged.
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
#define LOWERED 0.2 /* s; least time between two pulses, in which clients see NO_ALARM */

typedef enum { pulseIdle, pulseRaised, pulseLowered } pulsePhase;

/* The DPVT of the record. The lock of the record guards it. */
typedef struct {
    epicsCallback timer; /* processes the record when the phase is over */
    pulsePhase     phase;
    epicsUInt64    until; /* end of the phase, epicsMonotonicGet */
    uint64_t       shown; /* number of the unexpected put that the record shows */
    char           reason[sizeof(((dbCommon *)0)->amsg) - 1]; /* recGblSetSevrVMsg (recGbl.c) takes no more */
} pulseState;

static long initPulse(dbCommon *prec)
{
    pulseState *pulse = callocMustSucceed(1, sizeof(*pulse), "ebpfMon pulse");

    callbackSetProcess(&pulse->timer, priorityMedium, prec);
    strcpy(((stringinRecord *)prec)->val, EBPFMON_NO_UNEXPECTED);
    prec->dpvt = pulse;
    return 0;
}

static long getScanList(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    *list = ebpfMonScanList(ebpfMonGroupUnexpected, 0, leaves);
    return 0;
}

/* Takes the newest unexpected put. Nonzero: the record has not shown it yet. */
static int takeNewest(stringinRecord *prec, pulseState *pulse, epicsTimeStamp *when)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonPut *put = ebpfMonPublishedGetLastUnexpected(published);
    int isNew = put && published->unexpected.count != pulse->shown &&
                published->unexpected.count > published->unexpected.restored;

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
    int isChange = !prec->time.secPastEpoch; /* the record processes for the first time */

    epicsTimeGetCurrent(&when);
    if (pulse->phase != pulseIdle && now >= pulse->until) {
        if (pulse->phase == pulseRaised) {
            beginPhase(pulse, pulseLowered, now);
            isChange = 1;
        } else {
            pulse->phase = pulseIdle;
        }
    }
    if (pulse->phase == pulseIdle && takeNewest(prec, pulse, &put)) {
        beginPhase(pulse, pulseRaised, now);
        if (epicsTimeGreaterThan(&put, &prec->time)) /* else the last pulse ended after this put */
            when = put;
        isChange = 1;
    }
    if (pulse->phase == pulseRaised)
        recGblSetSevrMsg(prec, STATE_ALARM, MAJOR_ALARM, "%s", pulse->reason);
    if (pulse->phase != pulseIdle)
        callbackRequestDelayed(&pulse->timer, (double)(pulse->until - now) * 1e-9);
    if (isChange && prec->tse == epicsTimeEventDeviceTime)
        prec->time = when;
    prec->udf = FALSE;
    return 0;
}

stringindset devEbpfMonPulse = {{5, NULL, NULL, initPulse, getScanList}, readPulse};
epicsExportAddress(dset, devEbpfMonPulse);

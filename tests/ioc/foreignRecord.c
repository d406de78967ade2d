/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Record types that are not part of EPICS Base, so the monitor does not know them. They count how often they process,
 * and process their forward link. A "fair" record sets its time stamp each time, a "quiet" record every fourth time. A
 * "late" record does as swait does with an output: a thread of its own, which holds no lock set, goes on to the forward
 * link. A put to the field HOLD of a fair record stops the IOC within dbPut, as a signal or a debugger may do at any
 * moment.
 */
#include <signal.h>

#include <cantProceed.h>
#include <dbAccess.h>
#include <epicsEvent.h>
#include <epicsExport.h>
#include <epicsThread.h>
#include <recGbl.h>
#include <recSup.h>

#define GEN_SIZE_OFFSET
#include "fairRecord.h"
#include "lateRecord.h"
#include "quietRecord.h"

static long complete(struct dbCommon *common)
{
    common->udf = FALSE;
    recGblResetAlarms(common);
    recGblFwdLink(common);
    common->pact = FALSE;
    return 0;
}

static long processFair(struct dbCommon *common)
{
    common->pact = TRUE;
    ((fairRecord *)common)->val++;
    recGblGetTimeStamp(common);
    return complete(common);
}

static long processQuiet(struct dbCommon *common)
{
    common->pact = TRUE;
    if (++((quietRecord *)common)->val % 4 == 0)
        recGblGetTimeStamp(common);
    return complete(common);
}

static void forwardLate(void *arg)
{
    struct dbCommon *common = arg;

    for (;;) {
        epicsEventMustWait(common->dpvt);
        recGblFwdLink(common);
    }
}

static long processLate(struct dbCommon *common)
{
    if (!common->dpvt) {
        common->dpvt = epicsEventMustCreate(epicsEventEmpty);
        epicsThreadMustCreate("late", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackMedium),
                              forwardLate, common);
    }
    common->udf = FALSE;
    ((lateRecord *)common)->val++;
    recGblGetTimeStamp(common);
    recGblResetAlarms(common);
    epicsEventMustTrigger(common->dpvt);
    return 0;
}

static long holdFair(struct dbAddr *addr, int after)
{
    if (!after)
        raise(SIGSTOP);
    return 0;
}

static rset fairRSET = {.number = RSETNUMBER, .process = processFair, .special = holdFair};
static rset quietRSET = {.number = RSETNUMBER, .process = processQuiet};
static rset lateRSET = {.number = RSETNUMBER, .process = processLate};
epicsExportAddress(rset, fairRSET);
epicsExportAddress(rset, lateRSET);
epicsExportAddress(rset, quietRSET);

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads INP, and decides what a record shows while there is no value. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdio.h>

#include <alarm.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsTime.h>
#include <errlog.h>
#include <link.h>
#include <recGbl.h>

#include "record/devCommon.h"
#include "record/pvScan.h"

static long refuseInp(dbCommon *prec, const char *what, const char *why)
{
    errlogSevPrintf(errlogMajor, "%s: INP \"%s\" %s\n", prec->name, what, why);
    return S_dev_badInpType;
}

long ebpfMonDevInit(dbCommon *prec, int text)
{
    DBLINK *link = dbGetDevLink(prec);
    char name[40], record[2 * EBPFMON_NAME_SIZE];
    const char *inp;
    const ebpfMonPv *pv;
    ebpfMonDev *dev;
    int parts, isOfIoc = 0, row = 0;

    if (!link || link->type != INST_IO)
        return refuseInp(prec, "", "must be \"@NAME\", \"@NAME record\" or \"@NAME ioc\"");
    inp = link->value.instio.string;
    parts = sscanf(inp, "%39s %121s", name, record);
    if (parts < 1)
        return refuseInp(prec, inp, "is empty: write \"@NAME\", \"@NAME record\" or \"@NAME ioc\"");
    pv = ebpfMonPvFind(name, parts == 2);
    if (!pv && parts == 2) {
        pv = ebpfMonPvFind(name, 0);
        isOfIoc = pv && ebpfMonPvIsOfIoc(pv);
        if (!isOfIoc)
            pv = NULL;
    }
    if (!pv)
        return refuseInp(prec, inp, parts == 1 ? "is not known: ebpfMon.db has all names" :
                         "is not a value of a watched record or of an IOC: see ebpfMonWatch.db, ebpfMonIoc.db");
    if (ebpfMonPvIsText(pv) != text)
        return refuseInp(prec, inp, text ? "is a number: use ai, int64in, longin or a waveform of numbers"
                                         : "is text: use lsi, stringin or a waveform of STRING or CHAR");
    if (parts == 2 && !isOfIoc) {
        row = ebpfMonPublishedAddWatch(record);
        if (row < 0)
            return refuseInp(prec, inp, "cannot be watched: the name is longer than 60 characters, or there "
                             "are 1024 watched records already");
    }
    dev = callocMustSucceed(1, sizeof(*dev), "ebpfMonDevInit");
    dev->pv = pv;
    dev->row = (unsigned)row;
    if (isOfIoc)
        snprintf(dev->ioc, sizeof(dev->ioc), "%.60s", record);
    prec->dpvt = dev;
    return 0;
}

static long findScanList(dbCommon *prec, int isRows, int leaves, IOSCANPVT *list)
{
    ebpfMonDev *dev = prec->dpvt;

    if (!dev)
        return -1;
    *list = ebpfMonScanList(dev->pv->group, isRows, leaves);
    return 0;
}

long ebpfMonDevScanValue(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    return findScanList(prec, 0, leaves, list);
}

long ebpfMonDevScanRows(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    return findScanList(prec, 1, leaves, list);
}

static void setTime(dbCommon *prec, epicsTimeStamp when)
{
    if (prec->tse != epicsTimeEventDeviceTime)
        return;
    if (!when.secPastEpoch) /* nothing has happened yet, so any time is right: take the present */
        epicsTimeGetCurrent(&when);
    prec->time = when;
}

const void *ebpfMonDevRow(const ebpfMonDev *dev, const ebpfMonPublished *published)
{
    return dev->ioc[0] ? ebpfMonPvIocRow(published, dev->pv, dev->ioc) : dev->pv->row(published, dev->row);
}

const ebpfMonPublished *ebpfMonDevBegin(dbCommon *prec)
{
    ebpfMonDev *dev = prec->dpvt;
    const ebpfMonPublished *published;
    char cause[sizeof(prec->amsg) - 1]; /* recGblSetSevrVMsg (recGbl.c) takes no more */
    epicsEnum16 severity;
    const void *row;

    if (!prec->nsev)
        prec->namsg[0] = 0; /* Base 7.0.8 keeps the message of an alarm that is over (recGblResetAlarms) */
    if (!dev) {
        recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
        return NULL;
    }
    published = ebpfMonPublishedLock();
    row = ebpfMonDevRow(dev, published);
    if (!dev->pv->always && published->state != ebpfMonRunning && published->state != ebpfMonDegraded) {
        setTime(prec, published->time[ebpfMonGroupState]);
    } else {
        setTime(prec, ebpfMonPvTime(published, dev->pv, row));
        severity = ebpfMonPvSeverity(published, dev->pv);
        if (severity) {
            ebpfMonTextCopy(cause, sizeof(cause), row ? ebpfMonPvAlarmText(dev->pv, row) : "");
            recGblSetSevrMsg(prec, STATE_ALARM, severity, "%s", cause);
        }
        if (!(dev->ioc[0] && !row) && !ebpfMonPvMissing(published, dev->pv, row))
            return published;
    }
    ebpfMonPublishedUnlock();
    recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
    return NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads INP, and decides what a record shows while there is no value; device support of records with one value, DTYP
 * "ebpfMon": ai, int64in, longin, mbbi, lsi and stringin. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdio.h>
#include <string.h>

#include <aiRecord.h>
#include <alarm.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <epicsTime.h>
#include <errlog.h>
#include <int64inRecord.h>
#include <link.h>
#include <longinRecord.h>
#include <lsiRecord.h>
#include <mbbiRecord.h>
#include <recGbl.h>
#include <stringinRecord.h>

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

/* --- numbers --- */

#define DONE_NO_CONVERT 2 /* ai, mbbi: VAL is set, do not convert RVAL (Record Reference, device support) */

static long initNumber(dbCommon *prec)
{
    return ebpfMonDevInit(prec, 0);
}

/* Returns the row of the record, and holds the lock of the published values. NULL: there is no value, and nothing is
 * locked. A number that is not known of this row (NaN, -1) is shown, and INVALID: a limit or an archive is not to take
 * -1 for a count. */
static const void *lockRow(dbCommon *prec)
{
    const ebpfMonDev *dev = prec->dpvt;
    const ebpfMonPublished *published = ebpfMonDevBegin(prec);
    const void *row;

    if (!published)
        return NULL;
    row = ebpfMonDevRow(dev, published);
    if (!row)
        ebpfMonPublishedUnlock();
    if (!row || ebpfMonPvIsGap(dev->pv, row))
        recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
    return row;
}

static long readAi(aiRecord *prec)
{
    const void *row = lockRow((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;
    char text[sizeof(prec->amsg) - 1]; /* as in readInt64in */

    if (!row)
        return -1;
    prec->val = ebpfMonPvDouble(dev->pv, row);
    ebpfMonTextCopy(text, sizeof(text), ebpfMonPvAlarmText(dev->pv, row));
    ebpfMonPublishedUnlock();
    if (text[0] && prec->hhsv && prec->val >= prec->hihi)
        recGblSetSevrMsg(prec, HIHI_ALARM, prec->hhsv, "%s", text);
    else if (text[0] && prec->hsv && prec->val >= prec->high)
        recGblSetSevrMsg(prec, HIGH_ALARM, prec->hsv, "%s", text);
    return DONE_NO_CONVERT;
}

static long readInt64in(int64inRecord *prec)
{
    const void *row = lockRow((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;
    char text[sizeof(prec->amsg) - 1]; /* recGblSetSevrVMsg (recGbl.c) takes no more */

    if (!row)
        return -1;
    prec->val = ebpfMonPvInteger(dev->pv, row);
    ebpfMonTextCopy(text, sizeof(text), ebpfMonPvAlarmText(dev->pv, row));
    ebpfMonPublishedUnlock();
    if (text[0] && prec->hsv && prec->val >= prec->high) /* the same alarm as the record finds, with its cause */
        recGblSetSevrMsg(prec, HIGH_ALARM, prec->hsv, "%s", text);
    return 0;
}

static long readLongin(longinRecord *prec)
{
    const void *row = lockRow((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;

    if (!row)
        return -1;
    prec->val = (epicsInt32)ebpfMonPvInteger(dev->pv, row);
    ebpfMonPublishedUnlock();
    return 0;
}

static long readMbbi(mbbiRecord *prec)
{
    const void *row = lockRow((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;
    char text[sizeof(prec->amsg) - 1]; /* as in readInt64in */

    if (!row)
        return -1;
    prec->val = (epicsEnum16)ebpfMonPvInteger(dev->pv, row);
    ebpfMonTextCopy(text, sizeof(text), ebpfMonPvAlarmText(dev->pv, row));
    ebpfMonPublishedUnlock();
    if (prec->val < 16) /* the fields ZRSV … FFSV follow each other, as mbbiRecord.c takes for granted */
        recGblSetSevrMsg(prec, STATE_ALARM, (&prec->zrsv)[prec->val], "%s", text);
    prec->udf = FALSE; /* mbbiRecord.c does this only when it converts */
    return DONE_NO_CONVERT;
}

aidset devEbpfMonAi = {{6, NULL, NULL, initNumber, ebpfMonDevScanValue}, readAi, NULL};
int64indset devEbpfMonInt64in = {{5, NULL, NULL, initNumber, ebpfMonDevScanValue}, readInt64in};
longindset devEbpfMonLongin = {{5, NULL, NULL, initNumber, ebpfMonDevScanValue}, readLongin};
mbbidset devEbpfMonMbbi = {{5, NULL, NULL, initNumber, ebpfMonDevScanValue}, readMbbi};
epicsExportAddress(dset, devEbpfMonAi);
epicsExportAddress(dset, devEbpfMonInt64in);
epicsExportAddress(dset, devEbpfMonLongin);
epicsExportAddress(dset, devEbpfMonMbbi);

/* --- texts --- */

static long initText(dbCommon *prec)
{
    return ebpfMonDevInit(prec, 1);
}

static long readLsi(lsiRecord *prec)
{
    const ebpfMonPublished *published = ebpfMonDevBegin((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;

    if (!published)
        return -1;
    ebpfMonPvText(dev->pv, ebpfMonDevRow(dev, published), prec->val, prec->sizv);
    ebpfMonPublishedUnlock();
    prec->len = (epicsUInt32)strlen(prec->val) + 1;
    prec->udf = FALSE;
    return 0;
}

static long readStringin(stringinRecord *prec)
{
    const ebpfMonPublished *published = ebpfMonDevBegin((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;
    int cut;

    if (!published)
        return -1;
    cut = ebpfMonPvText(dev->pv, ebpfMonDevRow(dev, published), prec->val, sizeof(prec->val));
    ebpfMonPublishedUnlock();
    prec->udf = FALSE;
    if (cut) /* tell the reader that the text is longer; an lsi of the same INP shows all of it */
        recGblSetSevr(prec, READ_ALARM, MINOR_ALARM);
    return 0;
}

lsidset devEbpfMonLsi = {{5, NULL, NULL, initText, ebpfMonDevScanValue}, readLsi};
stringindset devEbpfMonStringin = {{5, NULL, NULL, initText, ebpfMonDevScanValue}, readStringin};
epicsExportAddress(dset, devEbpfMonLsi);
epicsExportAddress(dset, devEbpfMonStringin);

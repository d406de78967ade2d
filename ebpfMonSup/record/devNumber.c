/* SPDX-License-Identifier: BSD-3-Clause */
/* Device support of ai, int64in, longin and mbbi, DTYP "ebpfMon". */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <aiRecord.h>
#include <alarm.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <int64inRecord.h>
#include <longinRecord.h>
#include <mbbiRecord.h>
#include <recGbl.h>

#include "record/devCommon.h"

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
    else if (ebpfMonPvIsGap(dev->pv, row))
        recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
    return row;
}

static long readAi(aiRecord *prec)
{
    const void *row = lockRow((dbCommon *)prec);
    const ebpfMonDev *dev = prec->dpvt;

    if (!row)
        return -1;
    prec->val = ebpfMonPvDouble(dev->pv, row);
    ebpfMonPublishedUnlock();
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

    if (!row)
        return -1;
    prec->val = (epicsEnum16)ebpfMonPvInteger(dev->pv, row);
    ebpfMonPublishedUnlock();
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* Device support of lsi and stringin, DTYP "ebpfMon". */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <alarm.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <lsiRecord.h>
#include <recGbl.h>
#include <stringinRecord.h>

#include "record/devCommon.h"

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

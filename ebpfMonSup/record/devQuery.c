/* SPDX-License-Identifier: BSD-3-Clause */
/* Device support of the results of queries, DTYP "ebpfMon query": ai, int64in, mbbi, lsi, waveform. A bo starts and
 * stops a query. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <aiRecord.h>
#include <alarm.h>
#include <boRecord.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <errlog.h>
#include <int64inRecord.h>
#include <lsiRecord.h>
#include <mbbiRecord.h>
#include <recGbl.h>
#include <waveformRecord.h>

#include "common/text.h"
#include "model/ops.h"
#include "record/queryColumn.h"

#define DONE_NO_CONVERT 2 /* ai, mbbi, bo: VAL is set, do not convert RVAL (Record Reference, device support) */

static long initQueryNumber(dbCommon *prec)
{
    return ebpfMonQueryColumnInit(prec, ebpfMonQueryColumnNumber);
}

/* 0, or -1: there is no value. */
static long readQueryNumber(dbCommon *prec, double *value)
{
    const ebpfMonQueryResult *result = ebpfMonQueryColumnBegin(prec);

    if (!result)
        return -1;
    *value = ebpfMonQueryColumnNumberOf(prec->dpvt, result, 0);
    ebpfMonQueryColumnEnd();
    return 0;
}

static long readQueryAi(aiRecord *prec)
{
    return readQueryNumber((dbCommon *)prec, &prec->val) ? -1 : DONE_NO_CONVERT;
}

static long readQueryInt64in(int64inRecord *prec)
{
    double value;

    if (readQueryNumber((dbCommon *)prec, &value))
        return -1;
    prec->val = (epicsInt64)value;
    return 0;
}

static long readQueryMbbi(mbbiRecord *prec)
{
    double value;

    if (readQueryNumber((dbCommon *)prec, &value))
        return -1;
    prec->val = (epicsEnum16)value;
    return DONE_NO_CONVERT;
}

static long initLsi(dbCommon *prec)
{
    return ebpfMonQueryColumnInit(prec, ebpfMonQueryColumnText);
}

static long readQueryLsi(lsiRecord *prec)
{
    const ebpfMonQueryResult *result = ebpfMonQueryColumnBegin((dbCommon *)prec);

    if (!result)
        return -1;
    ebpfMonTextCopy(prec->val, prec->sizv, ebpfMonQueryColumnTextOf(prec->dpvt, result, 0));
    ebpfMonQueryColumnEnd();
    prec->len = (epicsUInt32)strlen(prec->val) + 1;
    return 0;
}

static long initQueryWaveform(dbCommon *pcommon)
{
    const waveformRecord *prec = (waveformRecord *)pcommon;

    if (prec->ftvl == DBF_STRING)
        return ebpfMonQueryColumnInit(pcommon, ebpfMonQueryColumnTexts);
    if (prec->ftvl == DBF_DOUBLE)
        return ebpfMonQueryColumnInit(pcommon, ebpfMonQueryColumnNumbers);
    errlogSevPrintf(errlogMajor, "%s: FTVL must be STRING or DOUBLE\n", prec->name);
    return S_db_badField;
}

static long readQueryWaveform(waveformRecord *prec)
{
    const ebpfMonQueryResult *result = ebpfMonQueryColumnBegin((dbCommon *)prec);
    const ebpfMonQueryDev *dev = prec->dpvt;
    unsigned count;

    if (!result)
        return -1;
    count = ebpfMonQueryColumnCount(dev, result);
    if (count > prec->nelm)
        count = prec->nelm;
    for (unsigned i = 0; i < count; i++)
        if (prec->ftvl == DBF_STRING)
            ebpfMonQueryColumnPrint(dev, result, i, prec->prec, (char *)prec->bptr + (size_t)i * MAX_STRING_SIZE,
                                    MAX_STRING_SIZE);
        else
            ((epicsFloat64 *)prec->bptr)[i] = ebpfMonQueryColumnNumberOf(dev, result, i);
    ebpfMonQueryColumnEnd();
    prec->nord = count;
    return 0;
}

static long initQueryBo(dbCommon *prec)
{
    long status = ebpfMonQueryColumnInit(prec, ebpfMonQueryColumnCommand);

    return status ? status : DONE_NO_CONVERT;
}

static long writeQueryBo(boRecord *prec)
{
    const ebpfMonQueryOps *queries = ebpfMonOpsGet()->queries;
    const ebpfMonQueryDev *dev = prec->dpvt;

    if (!dev || queries->run(queries->arg, dev->name, prec->val != 0)) {
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "this query is not loaded");
        return -1;
    }
    return 0;
}

aidset devEbpfMonQueryAi = {{6, NULL, NULL, initQueryNumber, ebpfMonQueryColumnScanList}, readQueryAi, NULL};
int64indset devEbpfMonQueryInt64in = {{5, NULL, NULL, initQueryNumber, ebpfMonQueryColumnScanList}, readQueryInt64in};
mbbidset devEbpfMonQueryMbbi = {{5, NULL, NULL, initQueryNumber, ebpfMonQueryColumnScanList}, readQueryMbbi};
lsidset devEbpfMonQueryLsi = {{5, NULL, NULL, initLsi, ebpfMonQueryColumnScanList}, readQueryLsi};
wfdset devEbpfMonQueryWaveform = {{5, NULL, NULL, initQueryWaveform, ebpfMonQueryColumnScanList}, readQueryWaveform};
bodset devEbpfMonQueryBo = {{5, NULL, NULL, initQueryBo, NULL}, writeQueryBo};
epicsExportAddress(dset, devEbpfMonQueryAi);
epicsExportAddress(dset, devEbpfMonQueryInt64in);
epicsExportAddress(dset, devEbpfMonQueryMbbi);
epicsExportAddress(dset, devEbpfMonQueryLsi);
epicsExportAddress(dset, devEbpfMonQueryWaveform);
epicsExportAddress(dset, devEbpfMonQueryBo);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device support of waveform, DTYP "ebpfMon": numbers as DOUBLE, FLOAT or LONG; text as STRING (one element for each
 * row) or as CHAR (one text, with one line for each row).
 */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdlib.h>
#include <string.h>

#include <cantProceed.h>
#include <dbAccess.h>
#include <dbFldTypes.h>
#include <devSup.h>
#include <epicsExport.h>
#include <errlog.h>
#include <waveformRecord.h>

#include "record/devCommon.h"

static int isChar(const waveformRecord *prec)
{
    return prec->ftvl == DBF_CHAR || prec->ftvl == DBF_UCHAR;
}

static long initWaveform(dbCommon *pcommon)
{
    waveformRecord *prec = (waveformRecord *)pcommon;
    int text = isChar(prec) || prec->ftvl == DBF_STRING;
    ebpfMonDev *dev;
    long status;

    if (!text && prec->ftvl != DBF_DOUBLE && prec->ftvl != DBF_FLOAT && prec->ftvl != DBF_LONG) {
        errlogSevPrintf(errlogMajor, "%s: FTVL must be DOUBLE, FLOAT, LONG, STRING or CHAR\n", prec->name);
        return S_db_badField;
    }
    status = ebpfMonDevInit(pcommon, text);
    if (status)
        return status;
    dev = prec->dpvt;
    if (dev->pv->group == ebpfMonGroupWatch || dev->ioc[0]) {
        errlogSevPrintf(errlogMajor, "%s: a waveform cannot show the values of one record or one IOC: use ai, int64in "
                        "or lsi\n", prec->name);
        prec->dpvt = NULL;
        return S_dev_badInpType;
    }
    /* Formatting 200 time stamps takes longer than the lock may be held (model/published.h), so they are copied
     * first. */
    if (dev->pv->cell == ebpfMonCellTime)
        dev->rawSize = sizeof(epicsTimeStamp);
    else if (dev->pv->cell == ebpfMonCellPutLine)
        dev->rawSize = sizeof(ebpfMonPut);
    if (dev->rawSize)
        dev->raw = callocMustSucceed(EBPFMON_PUTS_MAX, dev->rawSize, "ebpfMon waveform");
    return 0;
}

/* Writes one row after the other as text. Rows without room are left out; then a CHAR text ends in "...". */
typedef struct {
    waveformRecord *prec;
    unsigned rows;
    size_t   used;
} textWriter;

/* Writes one row. 0: there is no room for another row. */
static int writeText(textWriter *writer, const ebpfMonPv *pv, const void *row)
{
    waveformRecord *prec = writer->prec;
    char *to = prec->bptr;
    size_t left;

    if (!isChar(prec)) {
        if (writer->rows == prec->nelm)
            return 0;
        ebpfMonPvText(pv, row, to + (size_t)writer->rows++ * MAX_STRING_SIZE, MAX_STRING_SIZE);
        return 1;
    }
    if (writer->rows++)
        to[writer->used++] = '\n';
    left = prec->nelm - writer->used;
    if (ebpfMonPvText(pv, row, to + writer->used, left)) {
        writer->used += strlen(to + writer->used);
        return 0;
    }
    writer->used += strlen(to + writer->used);
    return prec->nelm - writer->used > 2; /* a row needs a line feed, a character and the NUL at least */
}

static void readText(waveformRecord *prec, const ebpfMonPublished *published)
{
    const ebpfMonDev *dev = prec->dpvt;
    const ebpfMonPv *pv = dev->pv;
    ebpfMonPv rawPv = *pv;
    textWriter writer = {prec, 0, 0};
    const void *row;
    unsigned i, rawCount = 0;

    ((char *)prec->bptr)[0] = 0;
    for (i = 0; (row = pv->row(published, i)) != NULL; i++) {
        if (!dev->raw) {
            if (!writeText(&writer, pv, row))
                break;
        } else if (rawCount < EBPFMON_PUTS_MAX && rawCount < prec->nelm) {
            memcpy((char *)dev->raw + rawCount++ * dev->rawSize, (const char *)row + pv->offset,
                   dev->rawSize);
        }
    }
    ebpfMonPublishedUnlock();
    rawPv.offset = 0;
    for (i = 0; i < rawCount; i++)
        if (!writeText(&writer, &rawPv, (char *)dev->raw + i * dev->rawSize))
            break;
    prec->nord = isChar(prec) ? (epicsUInt32)writer.used + 1 : writer.rows;
}

static void readNumbers(waveformRecord *prec, const ebpfMonPublished *published)
{
    const ebpfMonPv *pv = ((const ebpfMonDev *)prec->dpvt)->pv;
    const void *row;
    unsigned i;

    for (i = 0; i < prec->nelm && (row = pv->row(published, i)) != NULL; i++) {
        if (prec->ftvl == DBF_DOUBLE)
            ((epicsFloat64 *)prec->bptr)[i] = ebpfMonPvDouble(pv, row);
        else if (prec->ftvl == DBF_FLOAT)
            ((epicsFloat32 *)prec->bptr)[i] = (epicsFloat32)ebpfMonPvDouble(pv, row);
        else
            ((epicsInt32 *)prec->bptr)[i] = (epicsInt32)ebpfMonPvInteger(pv, row);
    }
    ebpfMonPublishedUnlock();
    prec->nord = i;
}

static long readWaveform(waveformRecord *prec)
{
    const ebpfMonPublished *published = ebpfMonDevBegin((dbCommon *)prec);

    if (!published)
        return -1;
    if (isChar(prec) || prec->ftvl == DBF_STRING)
        readText(prec, published);
    else
        readNumbers(prec, published);
    return 0;
}

wfdset devEbpfMonWaveform = {{5, NULL, NULL, initWaveform, ebpfMonDevScanList}, readWaveform};
epicsExportAddress(dset, devEbpfMonWaveform);

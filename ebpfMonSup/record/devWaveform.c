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
#include "record/tableRows.h"

/* The text of each row of a waveform of puts. */
typedef struct ebpfMonPutTexts {
    ebpfMonShownPuts shown;
    char *line[EBPFMON_PUTS_MAX]; /* CHAR: the rows, each with memory of its own. A STRING waveform has them in its
                                   * value */
} putTexts;

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
    if (text && ebpfMonPvHasPuts(dev->pv))
        dev->puts = callocMustSucceed(1, sizeof(*dev->puts), "ebpfMon waveform");
    return 0;
}

/* Writes one row after the other as text. Rows without room are left out; then a CHAR text ends in "...". */
typedef struct {
    waveformRecord *prec;
    unsigned rows;
    size_t   used;
} textWriter;

/* Writes one row. "line": its text; NULL: the row is still to be formatted. 0: there is no room for another row. */
static int writeText(textWriter *writer, const ebpfMonPv *pv, const void *row, const char *line)
{
    waveformRecord *prec = writer->prec;
    char *to = prec->bptr;
    size_t left;
    int isCut;

    if (!isChar(prec)) {
        if (writer->rows == prec->nelm)
            return 0;
        ebpfMonPvText(pv, row, to + (size_t)writer->rows++ * MAX_STRING_SIZE, MAX_STRING_SIZE);
        return 1;
    }
    if (writer->rows++)
        to[writer->used++] = '\n';
    left = prec->nelm - writer->used;
    isCut = line ? ebpfMonTextCopy(to + writer->used, left, line) : ebpfMonPvText(pv, row, to + writer->used, left);
    writer->used += strlen(to + writer->used);
    return !isCut && prec->nelm - writer->used > 2; /* a row needs a line feed, a character and the NUL at least */
}

/* Copies a row whose text is made without the lock. 0: there is no room for it. */
static int keepRaw(const waveformRecord *prec, unsigned i, const void *row)
{
    const ebpfMonDev *dev = prec->dpvt;

    if (i >= EBPFMON_PUTS_MAX || i >= prec->nelm)
        return 0;
    memcpy((char *)dev->raw + i * dev->rawSize, (const char *)row + dev->pv->offset, dev->rawSize);
    return 1;
}

static void readText(waveformRecord *prec, const ebpfMonPublished *published)
{
    const ebpfMonDev *dev = prec->dpvt;
    const ebpfMonPv *pv = dev->pv;
    ebpfMonPv rawPv = *pv;
    textWriter writer = {prec, 0, 0};
    const void *row;
    unsigned i;

    ((char *)prec->bptr)[0] = 0;
    for (i = 0; (row = pv->row(published, i)) != NULL; i++)
        if (!(dev->raw ? keepRaw(prec, i, row) : writeText(&writer, pv, row, NULL)))
            break;
    ebpfMonPublishedUnlock();
    rawPv.offset = 0;
    for (unsigned k = 0; dev->raw && k < i; k++)
        if (!writeText(&writer, &rawPv, (char *)dev->raw + k * dev->rawSize, NULL))
            break;
    prec->nord = isChar(prec) ? (epicsUInt32)writer.used + 1 : writer.rows;
}

/* The first "count" rows are new: writes their texts, after "count" rows were moved on. Without the lock if they were
 * copied. */
static void formatPuts(waveformRecord *prec, const ebpfMonPublished *published, unsigned count)
{
    const ebpfMonDev *dev = prec->dpvt;
    ebpfMonPv pv = *dev->pv;
    char line[EBPFMON_LINE_SIZE];

    if (!published)
        pv.offset = 0;
    for (unsigned i = 0; i < count; i++) {
        const void *row = published ? pv.row(published, i) : (char *)dev->raw + i * dev->rawSize;

        if (isChar(prec)) {
            ebpfMonPvText(&pv, row, line, sizeof(line));
            free(dev->puts->line[i]);
            dev->puts->line[i] = strdup(line);
        } else {
            ebpfMonPvText(&pv, row, (char *)prec->bptr + (size_t)i * MAX_STRING_SIZE, MAX_STRING_SIZE);
        }
    }
}

/* Moves the rows on. */
static void moveRows(waveformRecord *prec, unsigned count)
{
    putTexts *puts = ((const ebpfMonDev *)prec->dpvt)->puts;
    unsigned rest = puts->shown.count - count;

    if (!isChar(prec)) {
        memmove((char *)prec->bptr + (size_t)count * MAX_STRING_SIZE, prec->bptr, (size_t)rest * MAX_STRING_SIZE);
        return;
    }
    for (unsigned i = rest; i < EBPFMON_PUTS_MAX; i++)
        free(puts->line[i]);
    memmove(puts->line + count, puts->line, rest * sizeof(puts->line[0]));
    memset(puts->line, 0, count * sizeof(puts->line[0]));
    memset(puts->line + puts->shown.count, 0, (EBPFMON_PUTS_MAX - puts->shown.count) * sizeof(puts->line[0]));
}

/* The rows are puts: only new ones are formatted. */
static void readPuts(waveformRecord *prec, const ebpfMonPublished *published)
{
    const ebpfMonDev *dev = prec->dpvt;
    textWriter writer = {prec, 0, 0};
    unsigned max = isChar(prec) ? EBPFMON_PUTS_MAX : prec->nelm;
    unsigned moved, count = ebpfMonShownPutsUpdate(&dev->puts->shown, published, dev->pv, max, &moved);

    moveRows(prec, moved);
    for (unsigned i = 0; dev->raw && i < count; i++)
        keepRaw(prec, i, dev->pv->row(published, i));
    if (!dev->raw)
        formatPuts(prec, published, count);
    ebpfMonPublishedUnlock();
    if (dev->raw)
        formatPuts(prec, NULL, count);
    prec->nord = dev->puts->shown.count;
    if (!isChar(prec))
        return;
    ((char *)prec->bptr)[0] = 0;
    for (unsigned i = 0; i < dev->puts->shown.count; i++)
        if (!writeText(&writer, NULL, NULL, dev->puts->line[i] ? dev->puts->line[i] : "?"))
            break;
    prec->nord = (epicsUInt32)writer.used + 1;
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
    if (((const ebpfMonDev *)prec->dpvt)->puts)
        readPuts(prec, published);
    else if (isChar(prec) || prec->ftvl == DBF_STRING)
        readText(prec, published);
    else
        readNumbers(prec, published);
    return 0;
}

wfdset devEbpfMonWaveform = {{5, NULL, NULL, initWaveform, ebpfMonDevScanRows}, readWaveform};
epicsExportAddress(dset, devEbpfMonWaveform);

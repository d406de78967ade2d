/* SPDX-License-Identifier: BSD-3-Clause */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <alarm.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsTime.h>
#include <errlog.h>
#include <link.h>
#include <recGbl.h>

#include "common/text.h"
#include "common/worker.h"
#include "model/ops.h"
#include "record/queryColumn.h"

struct ebpfMonQueryColumn {
    const char *name;
    ebpfMonQueryColumnKind kind;
    size_t offset; /* in its struct; for a key its index */
};

#define ROW(member) ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryRow, member)

/* Columns with one value have no offset: ebpfMonQueryColumnNumberOf and …TextOf find the value by the name. */
static const ebpfMonQueryColumn columns[] = {
    {"STATE", ebpfMonQueryColumnNumber, 0},
    {"COST", ebpfMonQueryColumnNumber, 0},
    {"EVENTS", ebpfMonQueryColumnNumber, 0},
    {"DROPPED", ebpfMonQueryColumnNumber, 0},
    {"KEYS", ebpfMonQueryColumnNumber, 0},
    {"HEAT_STEP", ebpfMonQueryColumnNumber, 0},
    {"REST", ebpfMonQueryColumnNumber, 0},
    {"NOW_RATE", ebpfMonQueryColumnNumber, 0},
    {"NOW_SUM_RATE", ebpfMonQueryColumnNumber, 0},
    {"NOW_MEAN", ebpfMonQueryColumnNumber, 0},
    {"NOW_MAX", ebpfMonQueryColumnNumber, 0},
    {"TITLE", ebpfMonQueryColumnText, 0},
    {"MESSAGE", ebpfMonQueryColumnText, 0},
    {"UNIT", ebpfMonQueryColumnText, 0},
    {"KEY1", ebpfMonQueryColumnTexts, 0},
    {"KEY2", ebpfMonQueryColumnTexts, 1},
    {"KEY3", ebpfMonQueryColumnTexts, 2},
    {"KEY4", ebpfMonQueryColumnTexts, 3},
    {"COUNT", ROW(count)},
    {"RATE", ROW(rate)},
    {"SUM", ROW(sum)},
    {"MIN", ROW(min)},
    {"MAX", ROW(max)},
    {"MEAN", ROW(mean)},
    {"LAST", ROW(last)},
    {"P50", ROW(p50)},
    {"P90", ROW(p90)},
    {"P99", ROW(p99)},
    {"HIST", ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryResult, hist)},
    {"HIST_EDGES", ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryResult, histEdge)},
    {"ROW_HISTS", ebpfMonQueryColumnNumbers, 0},
    {"ROW_HIST_EDGES", ebpfMonQueryColumnNumbers, 0},
    {"HEAT", ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryResult, heat)},
    {"HEAT_EDGES", ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryResult, heatEdge)},
    {"RUN", ebpfMonQueryColumnCommand, 0},
    /* the last events */
    {"EV_TIME", ebpfMonQueryColumnTexts, offsetof(ebpfMonQueryEventRow, time)},
    {"EV_THREAD", ebpfMonQueryColumnTexts, offsetof(ebpfMonQueryEventRow, thread)},
    {"EV_CPU", ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryEventRow, cpu)},
    {"EV_VALUE", ebpfMonQueryColumnNumbers, offsetof(ebpfMonQueryEventRow, value)},
    {"EV_KEY1", ebpfMonQueryColumnTexts, offsetof(ebpfMonQueryEventRow, key[0])},
    {"EV_KEY2", ebpfMonQueryColumnTexts, offsetof(ebpfMonQueryEventRow, key[1])},
    {"EV_KEY3", ebpfMonQueryColumnTexts, offsetof(ebpfMonQueryEventRow, key[2])},
    {"EV_KEY4", ebpfMonQueryColumnTexts, offsetof(ebpfMonQueryEventRow, key[3])},
};

/* One scan list for each query, made with its first record. One set per process, as the scan lists of Base. scanLock
 * guards the array and the flag; Base owns the scan lists. */
static ebpfMonLazyMutex scanLock = EBPFMON_LAZY_MUTEX;
static IOSCANPVT lists[EBPFMON_QUERIES_MAX];
static int isScanning;

static int isHist(const ebpfMonQueryColumn *c)
{
    return strncmp(c->name, "HIST", 4) == 0;
}

static int isRowHist(const ebpfMonQueryColumn *c)
{
    return strncmp(c->name, "ROW_", 4) == 0;
}

static int isHeat(const ebpfMonQueryColumn *c)
{
    return strncmp(c->name, "HEAT", 4) == 0;
}

static int isEvent(const ebpfMonQueryColumn *c)
{
    return strncmp(c->name, "EV_", 3) == 0;
}

static long refuseLink(dbCommon *prec, const char *what, const char *why)
{
    errlogSevPrintf(errlogMajor, "%s: \"%s\" %s\n", prec->name, what, why);
    return S_dev_badInpType;
}

static const ebpfMonQueryColumn *findColumn(const char *name)
{
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

long ebpfMonQueryColumnInit(dbCommon *prec, ebpfMonQueryColumnKind kind)
{
    DBLINK *link = dbGetDevLink(prec);
    const char *text = link && link->type == INST_IO ? link->value.instio.string : "";
    ebpfMonQueryResults *results = ebpfMonOpsGet()->results;
    const ebpfMonQueryColumn *column;
    ebpfMonQueryDev *dev;
    char name[64], what[32], end;
    int number, isPrinted;

    if (sscanf(text, "query( %63[A-Za-z0-9_] , %31[A-Z0-9_] )%c", name, what, &end) != 2)
        return refuseLink(prec, text, "must be \"@query(NAME, COLUMN)\"");
    column = findColumn(what);
    isPrinted = column && kind == ebpfMonQueryColumnTexts && column->kind == ebpfMonQueryColumnNumbers;
    if (!column || (column->kind != kind && !isPrinted))
        return refuseLink(prec, text, column ? "is a column that this record type cannot show: see queries.md" :
                          "names no column: see documentation/use/queries.md");
    if (!results)
        return refuseLink(prec, text, "cannot be shown: this IOC is not linked with ebpfMon, or had no memory at its "
                          "start");
    number = ebpfMonQueryResultsAdd(results, name);
    if (number < 0)
        return refuseLink(prec, text, "cannot be shown: there are 64 names of queries already, or this name has more "
                          "than 31 characters");
    ebpfMonQueryResultsKeep(results, number);
    dev = callocMustSucceed(1, sizeof(*dev), "ebpfMonQueryColumnInit");
    dev->number = number;
    dev->column = column;
    snprintf(dev->name, sizeof(dev->name), "%.31s", name);
    prec->dpvt = dev;
    return 0;
}

long ebpfMonQueryColumnScanList(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    const ebpfMonQueryDev *dev = prec->dpvt;

    (void)leaves;
    if (!dev)
        return -1;
    ebpfMonLazyMutexLock(&scanLock);
    if (!lists[dev->number])
        scanIoInit(&lists[dev->number]);
    *list = lists[dev->number];
    ebpfMonLazyMutexUnlock(&scanLock);
    return 0;
}

/* A result changes twice a second at most. If the callback queue is full, the next change processes the records. */
static void onResult(int number)
{
    ebpfMonLazyMutexLock(&scanLock);
    if (isScanning && lists[number])
        scanIoRequest(lists[number]);
    ebpfMonLazyMutexUnlock(&scanLock);
}

static void setListener(void (*changed)(int number))
{
    ebpfMonQueryResults *results = ebpfMonOpsGet()->results;

    if (results)
        ebpfMonQueryResultsSetListener(results, changed);
}

void ebpfMonQueryScanInit(void)
{
    ebpfMonLazyMutexLock(&scanLock);
    memset(lists, 0, sizeof(lists)); /* in tests an IOC may have been shut down before; its lists were freed */
    isScanning = 1;
    ebpfMonLazyMutexUnlock(&scanLock);
    setListener(onResult);
}

void ebpfMonQueryScanStop(void)
{
    setListener(NULL);
    ebpfMonLazyMutexLock(&scanLock);
    isScanning = 0;
    ebpfMonLazyMutexUnlock(&scanLock);
}

const ebpfMonQueryResult *ebpfMonQueryColumnBegin(dbCommon *prec)
{
    const ebpfMonQueryDev *dev = prec->dpvt;
    const ebpfMonQueryResult *r;
    int isAlwaysValid;

    if (!dev) {
        recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
        return NULL;
    }
    isAlwaysValid = dev->column->kind == ebpfMonQueryColumnText || strcmp(dev->column->name, "STATE") == 0;
    r = ebpfMonQueryResultsLock(ebpfMonOpsGet()->results, dev->number);
    if (prec->tse == epicsTimeEventDeviceTime) {
        if (isAlwaysValid || !r->time.secPastEpoch)
            epicsTimeGetCurrent(&prec->time);
        else
            prec->time = r->time;
    }
    /* state and texts are always valid; the other values of a query that failed are old */
    if (!isAlwaysValid && (r->state == ebpfMonQueryFailed || r->state == ebpfMonQueryAbsent))
        recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
    prec->udf = 0;
    return r;
}

void ebpfMonQueryColumnEnd(void)
{
    ebpfMonQueryResultsUnlock(ebpfMonOpsGet()->results);
}

/* The histograms of the rows one behind the other, and the lower edges of their bars; NaN: there is no such bar, or
 * row. */
static double getRowHist(const ebpfMonQueryColumn *c, const ebpfMonQueryResult *r, unsigned n)
{
    unsigned bar = n % EBPFMON_QUERY_BARS_MAX;

    if (bar >= r->rowBars)
        return NAN;
    if (strcmp(c->name, "ROW_HISTS") != 0)
        return r->barEdge[bar];
    return n / EBPFMON_QUERY_BARS_MAX < r->rows ? r->rowBar[n / EBPFMON_QUERY_BARS_MAX][bar] : NAN;
}

static double getPresent(const ebpfMonQueryColumn *c, const ebpfMonQueryResult *r)
{
    const char *what = c->name + strlen("NOW_");

    return what[0] == 'R' ? r->now.rate : what[0] == 'S' ? r->now.sumRate : strcmp(what, "MEAN") == 0 ? r->now.mean
                                                                                                 : r->now.max;
}

double ebpfMonQueryColumnNumberOf(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *r, unsigned row)
{
    const ebpfMonQueryColumn *c = dev->column;

    if (isEvent(c))
        return *(const double *)(const void *)((const char *)&r->event[row] + c->offset);
    if (isRowHist(c))
        return getRowHist(c, r, row);
    if (c->name[0] == 'N')
        return getPresent(c, r);
    if (strcmp(c->name, "REST") == 0)
        return r->rest;
    if (isHist(c) || (isHeat(c) && c->kind == ebpfMonQueryColumnNumbers))
        return ((const double *)(const void *)((const char *)r + c->offset))[row];
    if (c->kind == ebpfMonQueryColumnNumbers)
        return *(const double *)(const void *)((const char *)&r->row[row] + c->offset);
    return c->name[0] == 'S' ? (double)r->state : c->name[0] == 'C' ? r->cost : c->name[0] == 'E' ? (double)r->events :
        c->name[0] == 'D' ? (double)r->dropped : isHeat(c) ? r->heatSeconds : (double)r->found;
}

const char *ebpfMonQueryColumnTextOf(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *r, unsigned row)
{
    const ebpfMonQueryColumn *c = dev->column;

    if (isEvent(c))
        return (const char *)&r->event[row] + c->offset;
    if (c->kind == ebpfMonQueryColumnTexts)
        return r->row[row].key[c->offset];
    return c->name[0] == 'T' ? r->title : c->name[0] == 'M' ? r->message : r->unit;
}

void ebpfMonQueryColumnPrint(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *r, unsigned row, int digits,
                             char *text, size_t size)
{
    double value;

    if (dev->column->kind != ebpfMonQueryColumnNumbers) {
        ebpfMonTextCopy(text, size, ebpfMonQueryColumnTextOf(dev, r, row));
        return;
    }
    value = ebpfMonQueryColumnNumberOf(dev, r, row);
    if (isnan(value))
        text[0] = 0;
    else
        snprintf(text, size, "%.*f", digits, value);
}

unsigned ebpfMonQueryColumnCount(const ebpfMonQueryDev *dev, const ebpfMonQueryResult *r)
{
    if (isHeat(dev->column) && !r->heatSeconds)
        return 0;
    if (isHeat(dev->column))
        return strcmp(dev->column->name, "HEAT") == 0 ? EBPFMON_QUERY_HEAT_ROWS * EBPFMON_QUERY_HEAT_COLUMNS
                                                      : EBPFMON_QUERY_HEAT_ROWS;
    if (isRowHist(dev->column))
        return EBPFMON_QUERY_BARS_MAX * (!r->rowBars ? 0 : strcmp(dev->column->name, "ROW_HIST_EDGES") == 0 ? 1
                                         : EBPFMON_QUERY_METRICS_MAX);
    return isHist(dev->column) ? r->bars : isEvent(dev->column) ? r->eventRows : r->rows;
}

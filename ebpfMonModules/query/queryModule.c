/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module: its device support, DTYP "ebpfMon query", its commands, its registration.
 *
 * A record shows one value of a query: INP or OUT "@query(NAME, COLUMN)". The query need not be loaded; it may be
 * loaded later or never. documentation/use/queries.md lists the columns.
 */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <aiRecord.h>
#include <alarm.h>
#include <boRecord.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <dbScan.h>
#include <devSup.h>
#include <epicsExport.h>
#include <epicsStdio.h>
#include <epicsTime.h>
#include <errlog.h>
#include <initHooks.h>
#include <int64inRecord.h>
#include <link.h>
#include <lsiRecord.h>
#include <mbbiRecord.h>
#include <recGbl.h>
#include <waveformRecord.h>

#include "access/guard.h"
#include "common/text.h"
#include "common/worker.h"
#include "query/queries.h"
#include "query/queryValues.h"
#include "record/shellCommand.h"

/* One per process, because Base calls registrars, commands and device support without a context. */
static ebpfMonQueryResults *results;
static ebpfMonQueries *queries;

/* --- records --- */

#define DONE_NO_CONVERT 2 /* ai, mbbi, bo: VAL is set, do not convert RVAL (Record Reference, device support) */

typedef enum { isNumber, isText, isNumbers, isTexts, isCommand } ColumnKind;

typedef struct {
    const char *name;
    ColumnKind kind;
    size_t offset; /* in its struct; for a key its index */
} Column;

/* What a record shows; its DPVT. It is never freed. */
typedef struct {
    int number; /* number of the result (query/queryValues.h) */
    char name[EBPFMON_QUERY_NAME_SIZE];
    const Column *column;
} ShownColumn;

#define ROW(member) isNumbers, offsetof(ebpfMonQueryRow, member)

/* Columns with one value have no offset: getNumber and …TextOf find the value by the name. */
static const Column columns[] = {
    {"STATE", isNumber, 0},
    {"COST", isNumber, 0},
    {"EVENTS", isNumber, 0},
    {"DROPPED", isNumber, 0},
    {"KEYS", isNumber, 0},
    {"HEAT_STEP", isNumber, 0},
    {"REST", isNumber, 0},
    {"NOW_RATE", isNumber, 0},
    {"NOW_SUM_RATE", isNumber, 0},
    {"NOW_MEAN", isNumber, 0},
    {"NOW_MAX", isNumber, 0},
    {"TITLE", isText, 0},
    {"MESSAGE", isText, 0},
    {"UNIT", isText, 0},
    {"KEY1", isTexts, 0},
    {"KEY2", isTexts, 1},
    {"KEY3", isTexts, 2},
    {"KEY4", isTexts, 3},
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
    {"HIST", isNumbers, offsetof(ebpfMonQueryResult, hist)},
    {"HIST_EDGES", isNumbers, offsetof(ebpfMonQueryResult, histEdge)},
    {"ROW_HISTS", isNumbers, 0},
    {"ROW_HIST_EDGES", isNumbers, 0},
    {"HEAT", isNumbers, offsetof(ebpfMonQueryResult, heat)},
    {"HEAT_EDGES", isNumbers, offsetof(ebpfMonQueryResult, heatEdge)},
    {"RUN", isCommand, 0},
    /* the last events */
    {"EV_TIME", isTexts, offsetof(ebpfMonQueryEventRow, time)},
    {"EV_THREAD", isTexts, offsetof(ebpfMonQueryEventRow, thread)},
    {"EV_CPU", isNumbers, offsetof(ebpfMonQueryEventRow, cpu)},
    {"EV_VALUE", isNumbers, offsetof(ebpfMonQueryEventRow, value)},
    {"EV_KEY1", isTexts, offsetof(ebpfMonQueryEventRow, key[0])},
    {"EV_KEY2", isTexts, offsetof(ebpfMonQueryEventRow, key[1])},
    {"EV_KEY3", isTexts, offsetof(ebpfMonQueryEventRow, key[2])},
    {"EV_KEY4", isTexts, offsetof(ebpfMonQueryEventRow, key[3])},
};

/* One scan list for each query, made with its first record. One set per process, as the scan lists of Base. scanLock
 * guards the array and the flag; Base owns the scan lists. */
static ebpfMonLazyMutex scanLock = EBPFMON_LAZY_MUTEX;
static IOSCANPVT lists[EBPFMON_QUERIES_MAX];
static int isScanning;

static int isHist(const Column *c)
{
    return strncmp(c->name, "HIST", 4) == 0;
}

static int isRowHist(const Column *c)
{
    return strncmp(c->name, "ROW_", 4) == 0;
}

static int isHeat(const Column *c)
{
    return strncmp(c->name, "HEAT", 4) == 0;
}

static int isEvent(const Column *c)
{
    return strncmp(c->name, "EV_", 3) == 0;
}

static long refuseLink(dbCommon *prec, const char *what, const char *why)
{
    errlogSevPrintf(errlogMajor, "%s: \"%s\" %s\n", prec->name, what, why);
    return S_dev_badInpType;
}

static const Column *findColumn(const char *name)
{
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

static long initColumn(dbCommon *prec, ColumnKind kind)
{
    DBLINK *link = dbGetDevLink(prec);
    const char *text = link && link->type == INST_IO ? link->value.instio.string : "";
    const Column *column;
    ShownColumn *dev;
    char name[64], what[32], end;
    int number, isPrinted;

    if (sscanf(text, "query( %63[A-Za-z0-9_] , %31[A-Z0-9_] )%c", name, what, &end) != 2)
        return refuseLink(prec, text, "must be \"@query(NAME, COLUMN)\"");
    column = findColumn(what);
    isPrinted = column && kind == isTexts && column->kind == isNumbers;
    if (!column || (column->kind != kind && !isPrinted))
        return refuseLink(prec, text, column ? "is a column that this record type cannot show: see queries.md" :
                          "names no column: see documentation/use/queries.md");
    number = ebpfMonQueryResultsAdd(results, name);
    if (number < 0)
        return refuseLink(prec, text, "cannot be shown: there are 64 names of queries already, or this name has more "
                          "than 31 characters");
    ebpfMonQueryResultsKeep(results, number);
    dev = callocMustSucceed(1, sizeof(*dev), "initColumn");
    dev->number = number;
    dev->column = column;
    snprintf(dev->name, sizeof(dev->name), "%.31s", name);
    prec->dpvt = dev;
    return 0;
}

static long getScanList(int leaves, dbCommon *prec, IOSCANPVT *list)
{
    const ShownColumn *dev = prec->dpvt;

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

static const ebpfMonQueryResult *beginValue(dbCommon *prec)
{
    const ShownColumn *dev = prec->dpvt;
    const ebpfMonQueryResult *r;
    int isAlwaysValid;

    if (!dev) {
        recGblSetSevr(prec, READ_ALARM, INVALID_ALARM);
        return NULL;
    }
    isAlwaysValid = dev->column->kind == isText || strcmp(dev->column->name, "STATE") == 0;
    r = ebpfMonQueryResultsLock(results, dev->number);
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

/* The histograms of the rows one behind the other, and the lower edges of their bars; NaN: there is no such bar, or
 * row. */
static double getRowHist(const Column *c, const ebpfMonQueryResult *r, unsigned n)
{
    unsigned bar = n % EBPFMON_QUERY_BARS_MAX;

    if (bar >= r->rowBars)
        return NAN;
    if (strcmp(c->name, "ROW_HISTS") != 0)
        return r->barEdge[bar];
    return n / EBPFMON_QUERY_BARS_MAX < r->rows ? r->rowBar[n / EBPFMON_QUERY_BARS_MAX][bar] : NAN;
}

static double getPresent(const Column *c, const ebpfMonQueryResult *r)
{
    const char *what = c->name + strlen("NOW_");

    return what[0] == 'R' ? r->now.rate : what[0] == 'S' ? r->now.sumRate : strcmp(what, "MEAN") == 0 ? r->now.mean
                                                                                                 : r->now.max;
}

static double getNumber(const ShownColumn *dev, const ebpfMonQueryResult *r, unsigned row)
{
    const Column *c = dev->column;

    if (isEvent(c))
        return *(const double *)(const void *)((const char *)&r->event[row] + c->offset);
    if (isRowHist(c))
        return getRowHist(c, r, row);
    if (c->name[0] == 'N')
        return getPresent(c, r);
    if (strcmp(c->name, "REST") == 0)
        return r->rest;
    if (isHist(c) || (isHeat(c) && c->kind == isNumbers))
        return ((const double *)(const void *)((const char *)r + c->offset))[row];
    if (c->kind == isNumbers)
        return *(const double *)(const void *)((const char *)&r->row[row] + c->offset);
    return c->name[0] == 'S' ? (double)r->state : c->name[0] == 'C' ? r->cost : c->name[0] == 'E' ? (double)r->events :
        c->name[0] == 'D' ? (double)r->dropped : isHeat(c) ? r->heatSeconds : (double)r->found;
}

static const char *getText(const ShownColumn *dev, const ebpfMonQueryResult *r, unsigned row)
{
    const Column *c = dev->column;

    if (isEvent(c))
        return (const char *)&r->event[row] + c->offset;
    if (c->kind == isTexts)
        return r->row[row].key[c->offset];
    return c->name[0] == 'T' ? r->title : c->name[0] == 'M' ? r->message : r->unit;
}

static void printValue(const ShownColumn *dev, const ebpfMonQueryResult *r, unsigned row, int digits,
                             char *text, size_t size)
{
    double value;

    if (dev->column->kind != isNumbers) {
        ebpfMonTextCopy(text, size, getText(dev, r, row));
        return;
    }
    value = getNumber(dev, r, row);
    if (isnan(value))
        text[0] = 0;
    else
        snprintf(text, size, "%.*f", digits, value);
}

static unsigned countValues(const ShownColumn *dev, const ebpfMonQueryResult *r)
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

static long initQueryNumber(dbCommon *prec)
{
    return initColumn(prec, isNumber);
}

/* 0, or -1: there is no value. */
static long readQueryNumber(dbCommon *prec, double *value)
{
    const ebpfMonQueryResult *result = beginValue(prec);

    if (!result)
        return -1;
    *value = getNumber(prec->dpvt, result, 0);
    ebpfMonQueryResultsUnlock(results);
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
    return initColumn(prec, isText);
}

static long readQueryLsi(lsiRecord *prec)
{
    const ebpfMonQueryResult *result = beginValue((dbCommon *)prec);

    if (!result)
        return -1;
    ebpfMonTextCopy(prec->val, prec->sizv, getText(prec->dpvt, result, 0));
    ebpfMonQueryResultsUnlock(results);
    prec->len = (epicsUInt32)strlen(prec->val) + 1;
    return 0;
}

static long initQueryWaveform(dbCommon *pcommon)
{
    const waveformRecord *prec = (waveformRecord *)pcommon;

    if (prec->ftvl == DBF_STRING)
        return initColumn(pcommon, isTexts);
    if (prec->ftvl == DBF_DOUBLE)
        return initColumn(pcommon, isNumbers);
    errlogSevPrintf(errlogMajor, "%s: FTVL must be STRING or DOUBLE\n", prec->name);
    return S_db_badField;
}

static long readQueryWaveform(waveformRecord *prec)
{
    const ebpfMonQueryResult *result = beginValue((dbCommon *)prec);
    const ShownColumn *dev = prec->dpvt;
    unsigned count;

    if (!result)
        return -1;
    count = countValues(dev, result);
    if (count > prec->nelm)
        count = prec->nelm;
    for (unsigned i = 0; i < count; i++)
        if (prec->ftvl == DBF_STRING)
            printValue(dev, result, i, prec->prec, (char *)prec->bptr + (size_t)i * MAX_STRING_SIZE,
                                    MAX_STRING_SIZE);
        else
            ((epicsFloat64 *)prec->bptr)[i] = getNumber(dev, result, i);
    ebpfMonQueryResultsUnlock(results);
    prec->nord = count;
    return 0;
}

static long initQueryBo(dbCommon *prec)
{
    long status = initColumn(prec, isCommand);

    if (!status)
        status = ebpfMonGuardAdd(prec);
    return status ? status : DONE_NO_CONVERT;
}

static long writeQueryBo(boRecord *prec)
{
    const ShownColumn *dev = prec->dpvt;

    if (!ebpfMonGuardAccepts((dbCommon *)prec)) {
        prec->rval = prec->oraw;
        return EBPFMON_GUARD_REFUSED;
    }
    if (!dev || ebpfMonQueriesRun(queries, dev->name, prec->val != 0)) {
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "this query is not loaded");
        return -1;
    }
    return 0;
}

aidset devEbpfMonQueryAi = {{6, NULL, NULL, initQueryNumber, getScanList}, readQueryAi, NULL};
int64indset devEbpfMonQueryInt64in = {{5, NULL, NULL, initQueryNumber, getScanList}, readQueryInt64in};
mbbidset devEbpfMonQueryMbbi = {{5, NULL, NULL, initQueryNumber, getScanList}, readQueryMbbi};
lsidset devEbpfMonQueryLsi = {{5, NULL, NULL, initLsi, getScanList}, readQueryLsi};
wfdset devEbpfMonQueryWaveform = {{5, NULL, NULL, initQueryWaveform, getScanList}, readQueryWaveform};
bodset devEbpfMonQueryBo = {{5, NULL, NULL, initQueryBo, NULL}, writeQueryBo};
epicsExportAddress(dset, devEbpfMonQueryAi);
epicsExportAddress(dset, devEbpfMonQueryInt64in);
epicsExportAddress(dset, devEbpfMonQueryMbbi);
epicsExportAddress(dset, devEbpfMonQueryLsi);
epicsExportAddress(dset, devEbpfMonQueryWaveform);
epicsExportAddress(dset, devEbpfMonQueryBo);

/* --- commands --- */

static void loadQueries(const iocshArgBuf *args)
{
    char text[800];
    int status = ebpfMonQueriesLoad(queries, args[0].sval, text, sizeof(text));

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonQueryLoad: %s\n", text);
    else
        printf("%s\n", text);
    ebpfMonShellSetStatus(status);
}

static void runQuery(const char *command, const char *name, int on)
{
    int status = ebpfMonShellHasText(name) ? ebpfMonQueriesRun(queries, name, on) : -1;

    if (status)
        errlogSevPrintf(errlogMajor, "%s: there is no query \"%s\". ebpfMonQueries lists those that are loaded\n",
                        command, ebpfMonShellGetText(name, ""));
    ebpfMonShellSetStatus(status);
}

static void startQuery(const iocshArgBuf *args)
{
    runQuery("ebpfMonQueryStart", args[0].sval, 1);
}

static void stopQuery(const iocshArgBuf *args)
{
    runQuery("ebpfMonQueryStop", args[0].sval, 0);
}

static void listQueries(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    ebpfMonQueriesAddList(queries, report);
    ebpfMonTextReportPrint(report);
}

/* Prints a report of the query "name"; the function "add" writes it. */
static void printPart(const char *command, const char *name,
                      int (*add)(ebpfMonQueries *queries, ebpfMonTextReport *report, const char *name))
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    int status = ebpfMonShellHasText(name) ? add(queries, report, name) : -1;

    if (status)
        errlogSevPrintf(errlogMajor, "%s: there is no query \"%s\". ebpfMonQueries lists those that are loaded\n",
                        command, ebpfMonShellGetText(name, ""));
    ebpfMonTextReportPrint(report);
    ebpfMonShellSetStatus(status);
}

static void printQuery(const iocshArgBuf *args)
{
    printPart("ebpfMonQueryPrint", args[0].sval, ebpfMonQueriesAddResult);
}

static void printStacks(const iocshArgBuf *args)
{
    printPart("ebpfMonQueryStacks", args[0].sval, ebpfMonQueriesAddStacks);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonQueryLoad", loadQueries, {{"file", iocshArgStringPath}},
     "Loads the queries of a file (documentation/use/queries.md). If the file has a mistake, it loads none. The\n"
     "queries replace those that were loaded from this file before. Queries that run are started again.\n"
     "Example: ebpfMonQueryLoad \"queries/systemCalls.json\"\n"},
    {"ebpfMonQueryStart", startQuery, {{"name", iocshArgString}},
     "Starts a query, or starts one again that stopped. Its counts begin with 0.\n"},
    {"ebpfMonQueryStop", stopQuery, {{"name", iocshArgString}},
     "Stops a query and removes its probes and programs. Its results stay until it starts again.\n"},
    {"ebpfMonQueries", listQueries, EBPFMON_NO_ARGS,
     "Lists the queries with their states, their costs, and the events that they did not count.\n"},
    {"ebpfMonQueryPrint", printQuery, {{"name", iocshArgString}},
     "Prints the rows of a query, its histogram as bars, and the last events, if it has \"events\".\n"},
    {"ebpfMonQueryStacks", printStacks, {{"name", iocshArgString}},
     "Prints the stacks of a query that has \"stacks\". Each different stack is one line: the functions,\n"
     "outermost first, with ';' between them, and how often it was seen. flamegraph.pl draws it.\n"
     "Example: ebpfMonQueryStacks CPU_STACKS > /tmp/cpu.folded\n"}
};

/* --- the module --- */

static void giveMetrics(void *arg, ebpfMonModuleTakeMetric take, void *to)
{
    ebpfMonQueryResultsGiveMetrics(results, take, to);
}

static ebpfMonModule module = {
    .name = "query", .start = ebpfMonQueriesBegin, .stop = ebpfMonQueriesStop, .metrics = giveMetrics,
};

/* Records join the scan lists after this. */
static void initHook(initHookState state)
{
    if (state != initHookAfterInitDrvSup && state != initHookAtShutdown)
        return;
    ebpfMonLazyMutexLock(&scanLock);
    isScanning = state == initHookAfterInitDrvSup;
    if (isScanning)
        memset(lists, 0, sizeof(lists)); /* in tests an IOC may have been shut down before; its lists were freed */
    ebpfMonLazyMutexUnlock(&scanLock);
}

static void ebpfMonQueryRegistrar(void)
{
    results = ebpfMonQueryResultsNew();
    queries = results ? ebpfMonQueriesNew(&module, results) : NULL;
    if (!queries || initHookRegister(initHook))
        cantProceed("ebpfMon: no memory for the module query");
    ebpfMonQueryResultsSetListener(results, onResult);
    ebpfMonShellAddModule(&module, queries, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonQueryRegistrar);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shipped db files in an IOC without a monitor: the published is filled by hand, the monitor's operations
 * are the test's own.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <alarm.h>
#include <dbAccess.h>
#include <dbUnitTest.h>
#include <envDefs.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>
#include <iocsh.h>
#include <testMain.h>

#include "model/published.h"
#include "model/control.h"
#include "model/logControl.h"

#define PATH "../../../db:../../../../db"
#define DEADLINE 5.0 /* s */

void testRecord_registerRecordDeviceDriver(struct dbBase *);

/* The monitor's part, played by the test. */
static ebpfMonFilter inForce;
static unsigned generations, started, resets;
static int levelSet = -2;
static unsigned logResets, rotations;
static int logReport;

static long fakeConfigure(const ebpfMonSettings *settings)
{
    return settings->maxRecords == 200000 && settings->maxRoots == 77 && settings->watchSelf == 1 ? 0 : -1;
}

static long fakeStart(void)
{
    started++;
    return 0;
}

static long fakeSetFilter(const ebpfMonFilter *filter, char *text, size_t size, unsigned *matching,
                          unsigned *generation)
{
    if (strcmp(filter->record, "REFUSE") == 0) {
        snprintf(text, size, "the monitor refuses");
        return -1;
    }
    inForce = *filter;
    *matching = 42;
    *generation = generations += started > 0; /* before that it is kept, not in force */
    snprintf(text, size, "in force: %s", filter->record);
    return 0;
}

static void fakeGetFilter(ebpfMonFilter *filter)
{
    *filter = inForce;
}

static long fakeSetLevel(const char *iocPattern, int level)
{
    levelSet = level;
    return strcmp(iocPattern, "soft*") == 0 ? 0 : -1;
}

static long fakeSetReference(const char *iocPattern, int on)
{
    return strcmp(iocPattern, "soft*") == 0 && on ? 0 : -1;
}

static void fakeResetLost(void)
{
    resets++;
}

static void fakeLogReset(void)
{
    logResets++;
}

static long fakeRotate(void)
{
    rotations++;
    return 0;
}

static void fakeLogReport(int level)
{
    logReport = level;
}

static const ebpfMonLogOps fakeLog = {.rotate = fakeRotate, .resetLost = fakeLogReset, .report = fakeLogReport};

static long fakeList(void)
{
    return 0;
}

static long fakeListRecords(const char *iocPattern, const char *recordPattern)
{
    return strcmp(iocPattern, "*") == 0 && strcmp(recordPattern, "*") == 0 ? 0 : -1;
}

static long fakeListChains(const char *rootPattern)
{
    return strcmp(rootPattern, "*") == 0 ? 0 : -1;
}

static long fakeTrace(const char *recordPattern, unsigned count)
{
    return strcmp(recordPattern, "*") == 0 && count == 0 ? 0 : -1;
}

static void fakeReport(int level)
{
    testPass("report at level %d", level);
}

static const ebpfMonOps fake = {
    fakeConfigure, fakeStart, fakeSetFilter, fakeGetFilter, fakeSetLevel, fakeSetReference, fakeResetLost,
    fakeList, fakeListRecords, fakeListChains, fakeTrace, fakeReport
};

/* Reads "pv" as text until it is "value", or the deadline has passed; how long that took, or -1. */
static double reached(const char *pv, const char *value, char *seen, size_t size)
{
    epicsTimeStamp begin, now;
    DBADDR addr;
    long count;

    seen[0] = 0;
    if (dbNameToAddr(pv, &addr))
        return -1;
    epicsTimeGetCurrent(&begin);
    do {
        count = (long)size;
        if (addr.dbr_field_type == DBR_CHAR) {
            memset(seen, 0, size);
            dbGetField(&addr, DBR_CHAR, seen, NULL, &count, NULL);
        } else {
            count = 1;
            dbGetField(&addr, DBR_STRING, seen, NULL, &count, NULL);
        }
        epicsTimeGetCurrent(&now);
        if (strcmp(seen, value) == 0)
            return epicsTimeDiffInSeconds(&now, &begin);
        epicsThreadSleep(0.001);
    } while (epicsTimeDiffInSeconds(&now, &begin) < DEADLINE);
    return -1;
}

static void expect(const char *pv, const char *value)
{
    char seen[2048];
    double took = reached(pv, value, seen, sizeof(seen));

    testOk(took >= 0, "%s is \"%s\" after %.1f ms", pv, seen, took * 1e3);
    if (took < 0)
        testDiag("    expected \"%s\"", value);
}

static void putText(const char *pv, const char *text)
{
    char name[80];

    sprintf(name, "%s.VAL$", pv);
    testdbPutArrFieldOk(name, DBR_CHAR, (unsigned long)strlen(text) + 1, text);
}

static void change(ebpfMonGroup group)
{
    epicsTimeStamp now;

    epicsTimeGetCurrent(&now);
    ebpfMonPublishedLock()->time[group] = now;
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(group);
}

static void addPut(unsigned n, const char *pv, const char *val)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonPut *put;

    published->putHead = (published->putHead + 1) % EBPFMON_PUTS_MAX;
    if (published->putRecent < EBPFMON_PUTS_MAX)
        published->putRecent++;
    put = &published->put[published->putHead];
    memset(put, 0, sizeof(*put));
    put->time.secPastEpoch = 1163575683u + n;
    put->time.nsec = 123456000;
    strcpy(put->ioc, "soft");
    strcpy(put->pv, pv);
    strcpy(put->val, val);
    strcpy(put->old, "old");
    strcpy(put->who, "alice@opi1");
    strcpy(put->origin, "CA");
    published->putCount++;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupPuts);
}

static void testBefore(void)
{
    testDiag("before the monitor runs");
    testOk1(started == 1);
    testdbGetFieldEqual("T:STATE", DBR_STRING, "Starting");
    testdbGetFieldEqual("T:STATE.SEVR", DBR_STRING, "MINOR");
    testdbGetFieldEqual("T:PUT_CNT.SEVR", DBR_STRING, "INVALID");
    testdbGetFieldEqual("T:PUT_LAST.SEVR", DBR_STRING, "INVALID");
    testdbGetFieldEqual("T:IOC_NAMES.SEVR", DBR_STRING, "INVALID");
    testdbGetFieldEqual("T:IOC_CNT.SEVR", DBR_STRING, "INVALID");
    testdbGetFieldEqual("T:COST.SEVR", DBR_STRING, "INVALID");
    testdbGetFieldEqual("T:COST.STAT", DBR_STRING, "READ");
    testdbGetFieldEqual("T:STATE_MSG.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:FILTER_IOC.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:CHAIN_HIST_ROOT.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:LOST_RESET.SEVR", DBR_STRING, "NO_ALARM");
}

static void fillBoard(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonWatchRow *watch;

    published->state = ebpfMonRunning;
    strcpy(published->stateMsg, "watching 2 IOCs");
    published->iocCount = 2;
    strcpy(published->ioc[0].name, "soft");
    strcpy(published->ioc[1].name, "1234567890123456789012345678901234567890");
    published->ioc[0].pid = 4711;
    published->ioc[0].records = 5;
    published->ioc[0].level = ebpfMonLevelChains;
    published->ioc[0].cost = 0.25;
    published->procCount = 9007199254740993u; /* no double has it */
    published->procTop = 1;
    strcpy(published->proc[0].name, "REC:A");
    published->proc[0].count = 12;
    published->proc[0].rate = 1.5;
    published->chainTop = 1;
    published->chain[0].p99 = 99.5;
    published->hist[3] = 7;
    published->lostKinds = 1;
    strcpy(published->lost[0].reason, "ring full");
    published->lost[0].count = 3;
    published->cost = 0.75;
    strcpy(published->slow, "REC:A 1 ms\n  REC:B 2 ms");
    published->searches.never = 7;
    published->searches.names = 1;
    strcpy(published->searches.name[0].name, "NOT:THERE");
    published->searches.name[0].count = 12;
    strcpy(published->searches.name[0].who, "10.0.0.1:40000 CA");
    published->searches.rate = 2.5;
    published->searches.clients = published->searches.servers = 1;
    strcpy(published->searches.client[0].name, "10.0.0.2:40000 PVA");
    published->searches.client[0].never = 3;
    published->searches.server[0].restarts = 4;
    published->wireState = ebpfMonWireTrouble;
    published->wireGaps = 5;
    watch = &published->watch[ebpfMonPublishedAddWatch("REC:A")];
    watch->found = 1;
    watch->procCount = 12;
    watch->latP99 = 5.5;
    strcpy(watch->putLast, "a put to REC:A");
    ebpfMonPublishedUnlock();
}

static void testValues(void)
{
    static const double edges[] = {0, 0, 0, 7};
    static const epicsInt32 pids[] = {4711, 0};
    ebpfMonPublished *published;

    testDiag("the monitor runs: one change of state reaches all");
    fillBoard();
    change(ebpfMonGroupState);
    expect("T:STATE", "Running");
    expect("T:STATE_MSG.VAL$", "watching 2 IOCs");
    expect("T:IOC_CNT", "2");
    expect("T:PROC_CNT", "9007199254740993");
    expect("T:COST", "0.750");
    expect("T:IOC_NAMES", "soft");
    expect("T:CHAIN_LOG", "REC:A 1 ms\n  REC:B 2 ms");
    expect("T:PROC_TOP_RATES", "1.5");
    expect("T:CHAIN_TOP_P99S", "99.5");
    expect("T:LOST_REASONS", "ring full");
    expect("T:LOST_CNT", "0");
    expect("T:IOC_LEVELS", "chains");
    expect("T:CHAIN_HIST.SEVR", "NO_ALARM");
    expect("T:UNFOUND_CNT", "7");
    expect("T:UNFOUND_NAMES", "NOT:THERE");
    expect("T:UNFOUND_CNTS", "12");
    expect("T:UNFOUND_CLIENTS", "10.0.0.1:40000 CA");
    expect("T:SEARCH_RATE", "2.5");
    expect("T:SEARCH_CLIENTS", "10.0.0.2:40000 PVA");
    expect("T:SEARCH_CLIENT_UNFOUND_CNTS", "3");
    expect("T:BEACON_RESTART_CNTS", "4");
    expect("T:PACKET_STATE", "Trouble");
    expect("T:PACKET_STATE.SEVR", "MINOR");
    expect("T:PACKET_GAP_CNT", "5");
    testdbGetFieldEqual("T:STATE.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:COST.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:IOC_NAMES.NORD", DBR_LONG, 2);
    testdbGetArrFieldEqual("T:IOC_PIDS", DBR_LONG, 2, 2, pids);
    testdbGetArrFieldEqual("T:IOC_NAMES", DBR_STRING, 2, 2,
                           "soft\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                           "123456789012345678901234567890123456...\0");
    testdbGetArrFieldEqual("T:CHAIN_HIST", DBR_DOUBLE, 4, 4, edges);

    testDiag("a watched record");
    expect("T:REC:A:PROC_CNT", "12");
    expect("T:REC:A:LAT_P99", "5.5");
    expect("T:REC:A:PUT_LAST.VAL$", "a put to REC:A");
    expect("T:REC:A:LAT_MEAN.STAT", "UDF"); /* NaN: no chain yet */
    expect("T:B:PROC_CNT.SEVR", "INVALID"); /* not found */

    testDiag("losses");
    ebpfMonPublishedLock()->lostCount = 3;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupState);
    expect("T:LOST_CNT", "3");
    expect("T:LOST_CNT.SEVR", "MINOR");
    expect("T:LOST_CNTS", "3");
    testdbPutFieldOk("T:LOST_RESET", DBR_LONG, 1);
    testOk1(resets == 1 && logResets == 1);

    testDiag("OTLP");
    expect("T:OTLP_STATE", "Off");
    expect("T:OTLP_MSG.VAL$", EBPFMON_NO_OTLP);
    published = ebpfMonPublishedLock();
    published->otlpState = ebpfMonLogTrouble;
    strcpy(published->otlpMsg, "collector down");
    published->otlpSent = 12;
    published->otlpLost = 3;
    published->otlpQueue = 60;
    published->otlpRate = 2.5;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupOtlp);
    expect("T:OTLP_STATE.SEVR", "MINOR");
    expect("T:OTLP_MSG.VAL$", "collector down");
    expect("T:OTLP_SENT_CNT", "12");
    expect("T:OTLP_LOST_CNT.SEVR", "MINOR");
    expect("T:OTLP_QUEUE_LOAD.SEVR", "MINOR");
    expect("T:OTLP_RATE", "2.5");

    testDiag("logs");
    expect("T:LOG_STATE", "Off");
    published = ebpfMonPublishedLock();
    published->logState = ebpfMonLogTrouble;
    strcpy(published->logMsg, "disk full");
    published->logCount = 12;
    published->logLost = 3;
    published->logQueue = 60;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupLog);
    expect("T:LOG_STATE.SEVR", "MINOR");
    expect("T:LOG_MSG.VAL$", "disk full");
    expect("T:LOG_LINE_CNT", "12");
    expect("T:LOG_LOST_CNT.SEVR", "MINOR");
    expect("T:LOG_QUEUE_LOAD.SEVR", "MINOR");
    expect("T:PUT_LAST_CAPUTLOG.VAL$", "no put yet");
    testdbPutFieldOk("T:LOG_ROTATE", DBR_LONG, 1);
    testOk1(rotations == 1 && logResets == 1);
}

static void testPuts(void)
{
    char value[101], cut[MAX_STRING_SIZE];
    epicsTimeStamp stamp;
    DBADDR addr;
    unsigned i;

    testDiag("puts");
    expect("T:PUT_LAST.VAL$", "no put yet");
    testdbGetFieldEqual("T:PUT_LAST.SEVR", DBR_STRING, "NO_ALARM");
    expect("T:PUT_LOG", "");
    addPut(0, "REC:A", "1");
    expect("T:PUT_LAST.VAL$", "2026-11-15 07:28:03.123456 REC:A old \xe2\x86\x92 1 by alice@opi1 (CA)");
    expect("T:PUT_LAST_VALUE_S", "1");
    expect("T:PUT_CNT", "1");
    expect("T:PUT_TIMES", "2026-11-15 07:28:03.123456");
    expect("T:PUT_IOCS", "soft");
    testdbGetFieldEqual("T:PUT_LAST_VALUE_S.SEVR", DBR_STRING, "NO_ALARM");
    dbNameToAddr("T:PUT_LAST_PV", &addr);
    dbScanLock(addr.precord);
    stamp = addr.precord->time;
    dbScanUnlock(addr.precord);
    testOk(stamp.secPastEpoch == 1163575683u && stamp.nsec == 123456000, "time stamp is the put's");

    memset(value, 'x', 100);
    value[100] = 0;
    addPut(1, "REC:B", value);
    expect("T:PUT_LAST_VALUE.VAL$", value);
    memcpy(cut, value, sizeof(cut));
    strcpy(cut + 36, "...");
    expect("T:PUT_LAST_VALUE_S", cut);
    expect("T:PUT_LAST_VALUE_S.SEVR", "MINOR");
    expect("T:PUT_PVS", "REC:B");
    testdbGetFieldEqual("T:PUT_PVS.NORD", DBR_LONG, 2);

    testDiag("ten thousand puts at once");
    for (i = 2; i < 10000; i++) {
        sprintf(value, "%u", i);
        addPut(i, "REC:C", value);
    }
    expect("T:PUT_LAST_VALUE.VAL$", "9999");
    expect("T:PUT_CNT", "10000");
    expect("T:PUT_PVS.NORD", "200");
    testdbGetFieldEqual("T:PUT_VALUES", DBR_STRING, "9999");
    addPut(i, "REC:D", "last");
    expect("T:PUT_LAST_PV.VAL$", "REC:D");
}

static void testFilter(void)
{
    static const char tooLong[] = "1234567890123456789012345678901234567890123456789012345678901";
    DBADDR addr;

    testDiag("filter: once at the start, then on each change");
    testOk(generations == 1, "set %u times", generations);
    testOk1(strcmp(inForce.record, "*") == 0 && inForce.level == ebpfMonLevelChains);
    testOk(strcmp(inForce.host, "ho*") == 0 && strcmp(inForce.field, "VA*") == 0 &&
           strcmp(inForce.user, "o*") == 0, "before iocInit commands go before macros, and leave the others: "
           "%s %s %s", inForce.host, inForce.field, inForce.user);
    expect("T:FILTER_FIELD.VAL$", "VA*");
    expect("T:FILTER_HOST.VAL$", "ho*");
    testOk1(inForce.slowUs == 10000 && inForce.sample == 1 && inForce.budget == 1);
    expect("T:FILTER_STATUS.VAL$", "in force: *");
    testdbGetFieldEqual("T:FILTER.VALB", DBR_LONG, 42);
    testdbGetFieldEqual("T:FILTER.VALC", DBR_LONG, 1);

    putText("T:FILTER_RECORD", "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES");
    expect("T:FILTER_STATUS.VAL$", "in force: RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES");
    testOk(strcmp(inForce.record, "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES") == 0,
           "long pattern: %s", inForce.record);
    testdbPutFieldOk("T:FILTER_USER", DBR_STRING, "op*"); /* as caput without -S does */
    testOk1(strcmp(inForce.user, "op*") == 0);
    putText("T:FILTER_RECORD", "");
    testOk1(strcmp(inForce.record, "*") == 0);
    testdbPutFieldOk("T:FILTER_LEVEL", DBR_STRING, "trace");
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, 10);
    testdbPutFieldOk("T:FILTER_BUDGET", DBR_DOUBLE, 2.5);
    testOk1(inForce.level == ebpfMonLevelTrace && inForce.sample == 10 && inForce.budget == 2.5);
    testdbGetFieldEqual("T:FILTER.VALC", DBR_LONG, 7);

    testDiag("filter: refusals leave the old one");
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, -1);
    testdbGetFieldEqual("T:FILTER.SEVR", DBR_STRING, "MAJOR");
    testdbGetFieldEqual("T:FILTER_STATUS.SEVR", DBR_STRING, "MAJOR");
    testOk1(inForce.sample == 10);
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, 0);
    testOk1(inForce.sample == 1);
    putText("T:FILTER_RECORD", tooLong);
    expect("T:FILTER_STATUS.VAL$", "record pattern is longer than 60 characters: shorten it with *");
    putText("T:FILTER_RECORD", "A\nB");
    expect("T:FILTER_STATUS.VAL$",
           "record pattern has a control character (code 10) at position 2: type it again");
    putText("T:FILTER_RECORD", "REFUSE");
    expect("T:FILTER_STATUS.VAL$", "the monitor refuses");
    testdbGetFieldEqual("T:FILTER_STATUS.SEVR", DBR_STRING, "MAJOR");
    testOk1(strcmp(inForce.record, "*") == 0);
    testdbGetFieldEqual("T:FILTER.VALC", DBR_LONG, 8);
    putText("T:FILTER_RECORD", "A*");
    testdbGetFieldEqual("T:FILTER.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:FILTER_STATUS.SEVR", DBR_STRING, "NO_ALARM");

    testDiag("histogram");
    putText("T:CHAIN_HIST_ROOT", "REC:A");
    testOk1(strcmp(ebpfMonPublishedLock()->histSel, "REC:A") == 0);
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupChains);
    expect("T:CHAIN_HIST.SEVR", "INVALID"); /* not found */
    dbNameToAddr("T:CHAIN_HIST_ROOT.VAL$", &addr);
    testOk1(dbPutField(&addr, DBR_CHAR, tooLong, sizeof(tooLong)) != 0);
    testdbGetFieldEqual("T:CHAIN_HIST_ROOT.SEVR", DBR_STRING, "INVALID");
}

static void testShell(void)
{
    testDiag("commands");
    testOk1(iocshCmd("ebpfMonFilter \"soft*\" \"\" \"\" \"\" \"\" counts 0 \"\" 3") == 0);
    testOk1(strcmp(inForce.ioc, "soft*") == 0 && strcmp(inForce.record, "A*") == 0 &&
            strcmp(inForce.user, "op*") == 0);
    testOk1(inForce.level == ebpfMonLevelCounts && inForce.slowUs == 0 && inForce.budget == 3);
    testDiag("the command sets the PVs");
    expect("T:FILTER_IOC.VAL$", "soft*");
    testdbGetFieldEqual("T:FILTER_LEVEL", DBR_STRING, "counts");
    testdbGetFieldEqual("T:FILTER_BUDGET", DBR_DOUBLE, 3.0);
    expect("T:FILTER_STATUS.VAL$", "in force: A*");
    testdbPutFieldOk("T:FILTER_SLOW", DBR_DOUBLE, 5.0);
    testOk1(strcmp(inForce.ioc, "soft*") == 0 && inForce.slowUs == 5);

    eltc(0);
    testOk1(iocshCmd("ebpfMonFilter * * * * * nonsense") != 0);
    testOk1(iocshCmd("ebpfMonFilter * [a") != 0);
    testOk1(iocshCmd("ebpfMonFilter * * * * * \"\" x") != 0);
    testOk1(iocshCmd("ebpfMonLevel soft* nonsense") != 0);
    testOk1(iocshCmd("ebpfMonReference") != 0);
    eltc(1);
    testOk1(iocshCmd("ebpfMonLevel soft* trace") == 0 && levelSet == ebpfMonLevelTrace);
    testOk1(iocshCmd("ebpfMonLevel soft* filter") == 0 && levelSet == -1);
    testOk1(iocshCmd("ebpfMonReference soft* 1") == 0);
    testOk1(iocshCmd("ebpfMonConfigure 0 77 0 1") == 0);
    testOk1(iocshCmd("ebpfMonIocs") == 0 && iocshCmd("ebpfMonRecords") == 0);
    testOk1(iocshCmd("ebpfMonChains") == 0 && iocshCmd("ebpfMonStart") == 0);
    testOk1(iocshCmd("ebpfMonSearches") == 0);
    testOk1(iocshCmd("ebpfMonReset") == 0 && resets == 2);
    testOk1(iocshCmd("ebpfMonReport 1") == 0 && logReport == 1);
    iocshCmd("dbior drvEbpfMon 2");
}

/* An unexpected put, as the monitor records one. */
static void addBad(const char *pv, const char *rule)
{
    ebpfMonPut put;

    memset(&put, 0, sizeof(put));
    put.time.secPastEpoch = 1163575683u;
    strcpy(put.pv, pv);
    strcpy(put.val, "1");
    strcpy(put.old, "0");
    strcpy(put.who, "bob@opi1");
    strcpy(put.rule, rule);
    put.unexpected = 1;
    put.isNumber = 1;
    put.number = 1;
    put.through = ebpfMonByPva;
    eltc(0);
    ebpfMonPublishedAddBad(&put);
    eltc(1);
}

static void writeRules(const char *text)
{
    FILE *f = fopen("testRecord.json", "w");

    if (!f || fputs(text, f) < 0 || fclose(f))
        testAbort("cannot write testRecord.json");
}

/* What has reached one record has not reached all: until then it cannot be acknowledged. */
static void badShown(void)
{
    double waited;
    uint64_t shown, count;

    for (waited = 0; waited < DEADLINE; waited += 0.001) {
        const ebpfMonPublished *published = ebpfMonPublishedLock();

        shown = published->badShown[ebpfMonShownByPvs];
        count = published->badCount;
        ebpfMonPublishedUnlock();
        if (shown == count)
            break;
        epicsThreadSleep(0.001);
    }
    testOk(shown == count, "all unexpected puts are published");
}

static void testBad(void)
{
    static const char line[] = "2026-11-15 07:28:03.000000 REC:%c 0 \xe2\x86\x92 1 by bob@opi1";
    char text[2][80];

    testDiag("unexpected puts: MAJOR until acknowledged");
    sprintf(text[0], line, 'A');
    sprintf(text[1], line, 'B');
    expect("T:PUT_BAD_LAST.VAL$", "no unexpected put yet");
    testdbGetFieldEqual("T:PUT_BAD_LAST.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:PUT_BAD_CNT.SEVR", DBR_STRING, "NO_ALARM");
    addBad("REC:A", "rule \"r\": no put is allowed");
    expect("T:PUT_BAD_LAST.VAL$", text[0]);
    expect("T:PUT_BAD_LAST.SEVR", "MAJOR");
    expect("T:PUT_BAD_CNT.SEVR", "MAJOR");
    expect("T:PUT_BAD_LOG.SEVR", "MAJOR");
    expect("T:PUT_BAD_REASONS.SEVR", "MAJOR");
    expect("T:PUT_BAD_REASON.VAL$", "rule \"r\": no put is allowed");
    expect("T:PUT_BAD_LAST_S.SEVR", "MAJOR");
    addBad("REC:B", "no rule is for this PV");
    expect("T:PUT_BAD_OPEN_CNT", "2");
    expect("T:PUT_BAD_LAST.VAL$", text[1]);
    expect("T:PUT_BAD_PVS", "REC:B");
    testdbGetFieldEqual("T:PUT_BAD_PVS.NORD", DBR_LONG, 2);
    testOk1(iocshCmd("ebpfMonRulesShow") == 0);

    testDiag("for a database's own logic");
    testdbPutFieldOk("T:SUB:PUT.PROC", DBR_LONG, 1);
    testdbGetFieldEqual("T:SUB:PUT.VALA", DBR_STRING, "REC:B");
    testdbGetFieldEqual("T:SUB:PUT.VALD", DBR_DOUBLE, 1.0);
    testdbGetFieldEqual("T:SUB:PUT.VALE", DBR_STRING, "PVA");
    testdbGetFieldEqual("T:SUB:PUT.VALF", DBR_LONG, 1);
    testdbGetFieldEqual("T:SUB:PUT.VALG", DBR_STRING, "no rule is for this PV");
    testdbPutFieldOk("T:SUB:RULES.B", DBR_LONG, 3);
    testdbPutFieldOk("T:SUB:RULES.PROC", DBR_LONG, 1);
    testdbGetFieldEqual("T:SUB:RULES.SEVR", DBR_STRING, "MAJOR");
    expect("T:SUB:RULES.VALA", "B must be 0 (check), 1 (load) or 2 (acknowledge)");
    testdbGetFieldEqual("T:SUB:RULES.VALC", DBR_LONG, 2);

    testDiag("acknowledge");
    badShown();
    testdbPutFieldOk("T:PUT_BAD_ACK", DBR_LONG, 1);
    expect("T:PUT_BAD_OPEN_CNT", "0");
    expect("T:PUT_BAD_OPEN_CNT.SEVR", "NO_ALARM");
    expect("T:PUT_BAD_LAST.SEVR", "NO_ALARM");
    expect("T:PUT_BAD_CNT.SEVR", "NO_ALARM");
    expect("T:PUT_BAD_LOG", "");
    expect("T:PUT_BAD_PVS.NORD", "0");
    expect("T:PUT_BAD_CNT", "2");
    expect("T:PUT_BAD_LAST.VAL$", text[1]); /* it stays to be read */
    addBad("REC:A", "again");
    expect("T:PUT_BAD_OPEN_CNT.SEVR", "MAJOR");
    badShown();
    testdbPutFieldOk("T:SUB:RULES.B", DBR_LONG, 2);
    testdbPutFieldOk("T:SUB:RULES.PROC", DBR_LONG, 1);
    expect("T:SUB:RULES.VALA", "acknowledged, 0 unexpected puts open");
    expect("T:PUT_BAD_OPEN_CNT", "0");
    addBad("REC:A", "and again");
    expect("T:PUT_BAD_OPEN_CNT", "1");
    badShown();
    testOk1(iocshCmd("ebpfMonPutAck") == 0);
    expect("T:PUT_BAD_OPEN_CNT", "0");

    testDiag("rules");
    expect("T:RULES_MSG.VAL$", "no rules: every put is expected");
    eltc(0);
    testdbPutFieldOk("T:RULES_LOAD", DBR_LONG, 1); /* which? */
    testdbGetFieldEqual("T:RULES_LOAD.SEVR", DBR_STRING, "MINOR");
    expect("T:RULES_MSG.SEVR", "MINOR");
    writeRules("{\"rules\": [{\"name\": \"r\", \"pv\": \"A\"}]}");
    testOk1(iocshCmd("ebpfMonRules testRecord.json") == 0);
    expect("T:RULES_CNT", "1");
    expect("T:RULES_MSG.SEVR", "NO_ALARM");
    writeRules("{\"rules\": [}");
    testdbPutFieldOk("T:RULES_LOAD", DBR_LONG, 1);
    expect("T:RULES_MSG.SEVR", "MINOR");
    expect("T:RULES_CNT", "1");
    testOk1(iocshCmd("ebpfMonRules") != 0);
    testdbPutFieldOk("T:SUB:RULES.B", DBR_LONG, 1);
    testdbPutFieldOk("T:SUB:RULES.PROC", DBR_LONG, 1);
    testdbGetFieldEqual("T:SUB:RULES.SEVR", DBR_STRING, "MAJOR");
    eltc(1);
    writeRules("{\"rules\": []}");
    testdbPutFieldOk("T:SUB:RULES.A", DBR_STRING, "testRecord.json");
    testdbPutFieldOk("T:SUB:RULES.PROC", DBR_LONG, 1);
    testdbGetFieldEqual("T:SUB:RULES.SEVR", DBR_STRING, "NO_ALARM");
    expect("T:RULES_CNT", "0");
    remove("testRecord.json");
}

static void testEnd(void)
{
    testDiag("the monitor fails: every value is INVALID");
    ebpfMonPublishedLock()->state = ebpfMonFailed;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupState);
    expect("T:STATE", "Failed");
    expect("T:STATE.SEVR", "MAJOR");
    expect("T:COST.SEVR", "INVALID");
    expect("T:PUT_PVS.SEVR", "INVALID");
    expect("T:REC:A:PROC_CNT.SEVR", "INVALID");
    testOk1(started == 1 && iocshCmd("ebpfMonStart") == 0 && started == 2);
    expect("T:FILTER.VALC", "12"); /* it says anew what came of it */
}

MAIN(testRecord)
{
    testPlan(0);
    epicsEnvSet("TZ", "UTC");
    inForce = ebpfMonFilterDefault;
    testdbPrepare();
    testdbReadDatabase("testRecord.dbd", NULL, NULL);
    testRecord_registerRecordDeviceDriver(pdbbase);
    ebpfMonControlRegister(&fake); /* in place of the monitor, which has just registered */
    ebpfMonLogControlRegister(&fakeLog);
    testdbReadDatabase("ebpfMon.db", PATH, "P=T:,FILTER_HOST=ho*,FILTER_FIELD=X*");
    testdbReadDatabase("ebpfMonWatch.db", PATH, "P=T:,REC=REC:A");
    testdbReadDatabase("ebpfMonWatch.db", PATH, "P=T:,REC=REC:NOT:THERE,N=B");
    testdbReadDatabase("testRules.db", "..", "P=T:");
    testOk1(iocshCmd("ebpfMonFilter \"\" \"\" VA*") == 0);
    testOk1(iocshCmd("ebpfMonFilter \"\" \"\" \"\" \"\" o*") == 0);
    testIocInitOk();

    testBefore();
    testValues();
    testPuts();
    testFilter();
    testShell();
    testBad();
    testEnd();

    testIocShutdownOk();
    ebpfMonPublishedNotify(ebpfMonGroupPuts); /* nobody listens any more */
    testdbCleanup();
    return testDone();
}

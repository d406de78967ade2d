/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of the shipped db files, without a monitor: they show the published values with their times and
 * alarms. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dbAccess.h>
#include <dbUnitTest.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>
#include <iocsh.h>
#include <testMain.h>

#include "export/log/putLogs.h"
#include "recordTest.h"

static void testBefore(void)
{
    testDiag("before the monitor runs");
    testOk1(fakeMonitor.started == 1);
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

/* Longer than others: one line for each record, of one moment. */
static void testValues(void)
{
    static const double edges[] = {0, 0, 0, 7};
    static const epicsInt32 pids[] = {4711, 0};
    ebpfMonPublished *published;
    ebpfMonPutLogs *logs;

    testDiag("the monitor runs: one change of state reaches all");
    recordTestRun();
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
    logs = ebpfMonOpsGet()->logs;
    published = ebpfMonPublishedLock();
    published->losses.count = 3;
    published->losses.isGrowing = 1;
    strcpy(published->losses.newest, "ring");
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupState);
    expect("T:LOST_CNT", "3");
    expect("T:LOST_CNT.SEVR", "MINOR");
    expect("T:LOST_CNT.AMSG", "ring");
    expect("T:LOST_CNTS", "3");
    logs->goneLost = 5;
    testdbPutFieldOk("T:LOST_RESET", DBR_LONG, 1);
    testOk1(fakeMonitor.resets == 1 && logs->lostBase == 5);

    testDiag("logs");
    expect("T:LOG_STATE", "Off");
    published = ebpfMonPublishedLock();
    published->log.state = ebpfMonLogTrouble;
    strcpy(published->log.message, "disk full");
    published->log.written = 12;
    published->log.lost = 3;
    published->log.queue = 60;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupLog);
    expect("T:LOG_STATE.SEVR", "MINOR");
    expect("T:LOG_MSG.VAL$", "disk full");
    expect("T:LOG_LINE_CNT", "12");
    expect("T:LOG_LOST_CNT.SEVR", "MAJOR");
    expect("T:LOG_QUEUE_LOAD.SEVR", "MINOR");
    expect("T:PUT_LAST_CAPUTLOG.VAL$", "no put yet");
    logs->queue = ebpfMonRecordQueueNew(4096);
    logs->wanted[0].kind = ebpfMonPutLogFile;
    testdbPutFieldOk("T:LOG_ROTATE", DBR_LONG, 1);
    testOk1(logs->rotations == 1 && logs->lostBase == 5);
    logs->wanted[0].kind = ebpfMonPutLogNone;
}

static void testIoc(void)
{
    ebpfMonHealth *health = &ebpfMonPublishedLock()->health;

    testDiag("the PVs of one IOC");
    health->iocs = 1;
    health->ioc[0] = (ebpfMonIocHealth){ .name = "soft", .cpu = 0.5, .clients = -1, .channels = 7, .cas = NAN };
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupHealth);
    expect("T:soft:CHANNEL_CNT", "7");
    expect("T:soft:CHANNEL_CNT.SEVR", "NO_ALARM");
    expect("T:soft:CPU_LOAD", "0.5");
    expect("T:soft:CPU_LOAD.SEVR", "NO_ALARM");
    expect("T:soft:CLIENT_CNT", "-1");
    expect("T:soft:CLIENT_CNT.SEVR", "INVALID"); /* not known */
    expect("T:soft:CAS_CPU_LOAD", "nan");
    expect("T:soft:CAS_CPU_LOAD.SEVR", "INVALID");
}

static void setMeasured(int isMeasured)
{
    ebpfMonPublishedLock()->isMeasured = isMeasured;
    ebpfMonPublishedUnlock();
    for (int g = 0; g < ebpfMonGroupCount; g++)
        change((ebpfMonGroup)g);
}

static epicsTimeStamp readTime(const char *pv)
{
    epicsTimeStamp time;
    DBADDR addr;

    if (dbNameToAddr(pv, &addr))
        testAbort("no %s", pv);
    dbScanLock(addr.precord);
    time = addr.precord->time;
    dbScanUnlock(addr.precord);
    return time;
}

static void testFirstSecond(void)
{
    static const char *const measured[] = {
        "T:COST",        "T:TRAP_COST",   "T:CPU",         "T:MEM",       "T:PUT_RATE",  "T:PROC_RATE", "T:PROC_CNT",
        "T:IOC_MEM_MAX", "T:PACKET_RATE", "T:SEARCH_RATE", "T:CHAIN_P50", "T:CHAIN_P99", "T:CHAIN_MAX"};
    char pv[40];

    testDiag("the monitor runs for less than a second: what it measures is not known");
    setMeasured(0);
    for (unsigned i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        sprintf(pv, "%s.SEVR", measured[i]);
        expect(pv, "INVALID");
    }
    expect("T:IOC_CNT.SEVR", "NO_ALARM");
    expect("T:PUT_CNT.SEVR", "NO_ALARM");
    expect("T:IOC_NAMES.SEVR", "NO_ALARM");
    setMeasured(1);
    for (unsigned i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        sprintf(pv, "%s.SEVR", measured[i]);
        expect(pv, "NO_ALARM");
    }
}

/* The filter was loaded and partly set by commands, but no client has written to its records. */
static void testFilterStamps(void)
{
    static const char *const names[] = {"T:FILTER_IOC",   "T:FILTER_USER",   "T:FILTER_LEVEL",
                                        "T:FILTER_SLOW",  "T:FILTER_SAMPLE", "T:FILTER_BUDGET",
                                        "T:FILTER_TIMED", "T:FILTER_STATUS", "T:FILTER"};
    char udf[40];

    testDiag("the filter has a time from the start");
    for (unsigned i = 0; i < 9; i++) {
        testOk(readTime(names[i]).secPastEpoch > 0, "%s has a time", names[i]);
        sprintf(udf, "%s.UDF", names[i]);
        testdbGetFieldEqual(udf, DBR_LONG, 0);
    }
}

/* PUT_RATE falls when no put comes. */
static void testRateTime(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    epicsTimeStamp time;

    published->puts.rate = 0.25;
    published->puts.rateTime.secPastEpoch = 1163579999u;
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupPuts);
    expect("T:PUT_RATE", "0.25");
    time = readTime("T:PUT_RATE");
    testOk(time.secPastEpoch == 1163579999u, "the rate has its own time");
}

static void testPuts(void)
{
    char value[101], cut[MAX_STRING_SIZE];
    epicsTimeStamp stamp;
    unsigned i;

    testDiag("puts");
    expect("T:PUT_LAST.VAL$", "no put yet");
    testdbGetFieldEqual("T:PUT_LAST.SEVR", DBR_STRING, "NO_ALARM");
    expect("T:PUT_LOG", "");
    addPut(0, "REC:A", "1");
    expect("T:PUT_LAST.VAL$", "2026-11-15 07:28:03.123456 REC:A old -> 1 by alice@opi1 (CA)");
    expect("T:PUT_LAST_VALUE_S", "1");
    expect("T:PUT_CNT", "1");
    expect("T:PUT_TIMES", "2026-11-15 07:28:03.123456");
    expect("T:PUT_IOCS", "soft");
    testdbGetFieldEqual("T:PUT_LAST_VALUE_S.SEVR", DBR_STRING, "NO_ALARM");
    stamp = readTime("T:PUT_LAST_PV");
    testOk(stamp.secPastEpoch == 1163575683u && stamp.nsec == 123456000, "the time stamp is that of the put");

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
        char pv[20];

        sprintf(value, "%u", i);
        sprintf(pv, "REC:%u", i % 1000);
        addPut(i, pv, value);
    }
    expect("T:PUT_LAST_VALUE.VAL$", "9999");
    expect("T:PUT_CNT", "10000");
    expect("T:PUT_PVS.NORD", "200");
    expect("T:PUT_VALUES", "9999");
    addPut(i, "REC:D", "last");
    expect("T:PUT_LAST_PV.VAL$", "REC:D");
}

/* The puts that the lists must show, the newest first. Each has a second of its own. */
static unsigned model[EBPFMON_PUTS_MAX];

/* Adds put number n to the model, in the order of time. */
static void addToModel(unsigned n)
{
    unsigned i = 0;

    while (model[i] > n)
        i++;
    memmove(model + i + 1, model + i, (EBPFMON_PUTS_MAX - 1 - i) * sizeof(model[0]));
    model[i] = n;
}

static const void *readArray(const char *pv, short type, void *to, long max)
{
    DBADDR addr;

    if (dbNameToAddr(pv, &addr) || dbGetField(&addr, type, to, NULL, &max, NULL))
        testAbort("%s cannot be read", pv);
    return to;
}

/* Nonzero: PUT_VALUES, PUT_TIMES and PUT_LOG show the model. PUT_LOG has room for all its rows. */
static int showModel(void)
{
    static char values[EBPFMON_PUTS_MAX][MAX_STRING_SIZE], times[EBPFMON_PUTS_MAX][MAX_STRING_SIZE], log[16000];
    char all[EBPFMON_PUTS_MAX * 100], *to = all;

    readArray("T:PUT_VALUES", DBR_STRING, values, EBPFMON_PUTS_MAX);
    readArray("T:PUT_TIMES", DBR_STRING, times, EBPFMON_PUTS_MAX);
    readArray("T:PUT_LOG", DBR_CHAR, log, sizeof(log));
    for (unsigned i = 0; i < EBPFMON_PUTS_MAX; i++) {
        epicsTimeStamp time = { 1163575683u + model[i], 123456000 };
        char text[40], value[16];

        epicsTimeToStrftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S.%06f", &time);
        sprintf(value, "%u", model[i]);
        if (strcmp(values[i], value) != 0 || strcmp(times[i], text) != 0)
            return 0;
        to += sprintf(to, "%s%s REC:%u old -> %s by alice@opi1 (CA)", i ? "\n" : "", text, model[i] % 1000, value);
    }
    return strcmp(log, all) == 0;
}

/* The lists are not made anew for each put. Many puts can come between two looks, and some come late. */
static void testRows(void)
{
    unsigned n = 20000, failed = 0;
    char value[16], pv[20];

    testDiag("rows of lists");
    for (unsigned round = 0; round < 60; round++) {
        unsigned fresh = round % 3 ? 1 + round % 7 : round % 2 ? 150 : 250;
        double waited = 0;

        for (unsigned i = 0; i < fresh; i++) {
            int isLate = i % 5 == 4;
            unsigned number = isLate ? n - 3 : n;

            sprintf(value, "%u", number);
            sprintf(pv, "REC:%u", number % 1000); /* so rarely that it is no run */
            addPut(number, pv, value);
            addToModel(number);
            n += isLate ? 0 : 2;
        }
        for (; round && !failed && !showModel() && waited < DEADLINE; waited += 0.01) /* round 0 fills the lists */
            epicsThreadSleep(0.01);
        failed += waited >= DEADLINE;
    }
    testOk(!failed, "the lists show the puts");
}

/* One writer fills one PV: it has one row, the others stay, and the lists of the newest put go on. */
static void testRun(void)
{
    static char values[EBPFMON_PUTS_MAX][MAX_STRING_SIZE], results[EBPFMON_PUTS_MAX][MAX_STRING_SIZE];
    const ebpfMonPublished *published;
    epicsTimeStamp first = { 1163575683u + 40001, 123456000 };
    char value[16], result[40];

    epicsTimeToStrftime(result, sizeof(result), "x1500 since %H:%M:%S from 1", &first);
    testDiag("a run of puts");
    addPut(40000, "REC:BEFORE", "1");
    for (unsigned i = 1; i <= 1500; i++) {
        sprintf(value, "%u", i);
        addPut(40000 + i, "REC:RUN", value);
        if (i % 100 == 50)
            expect("T:PUT_VALUES", value);
    }
    expect("T:PUT_VALUES", "1500");
    expect("T:PUT_RESULTS", result);
    addPut(50000, "REC:AFTER", "2");
    expect("T:PUT_VALUES", "2");
    readArray("T:PUT_VALUES", DBR_STRING, values, EBPFMON_PUTS_MAX);
    readArray("T:PUT_RESULTS", DBR_STRING, results, EBPFMON_PUTS_MAX);
    testOk(strcmp(values[1], "1500") == 0 && strcmp(results[1], result) == 0 && strcmp(values[2], "1") == 0 &&
               !results[2][0] && !results[0][0],
           "one row, then what was before: %s %s %s", values[1], results[1], values[2]);
    published = ebpfMonPublishedLock();
    testOk(strcmp(ebpfMonPublishedGetPut(published, 1)->val, "1500") == 0 &&
               strcmp(ebpfMonPublishedGetPut(published, 150)->val, "1351") == 0, "PUT_LOG has each");
    ebpfMonPublishedUnlock();
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
    testOk1(fakeMonitor.started == 1 && iocshCmd("ebpfMonStart") == 0 && fakeMonitor.started == 2);
    expect("T:FILTER.VALC", "2"); /* it reports the result again */
}

MAIN(testRecord)
{
    testPlan(0);
    recordTestBegin();
    testBefore();
    testValues();
    testIoc();
    testFirstSecond();
    testFilterStamps();
    testPuts();
    testRateTime();
    testRows();
    testRun();
    testEnd();
    recordTestEnd();
    return testDone();
}

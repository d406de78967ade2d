/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <dbAccess.h>
#include <dbUnitTest.h>
#include <envDefs.h>
#include <epicsAtomic.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <iocsh.h>

#include "model/ops.h"
#include "recordTest.h"

#define PATH "../../../db:../../../../db"

void testRecord_registerRecordDeviceDriver(struct dbBase *);

recordTestMonitor fakeMonitor = { .levelSet = -2 };

/* Refuses all inputs that the tests do not use. */
static ebpfMonOpStatus judge(int isRight)
{
    return isRight ? fakeMonitor.status : ebpfMonOpRefused;
}

static ebpfMonOpStatus fakeConfigure(void *arg, const ebpfMonSettings *settings, char *why, size_t size)
{
    return judge(settings->maxRecords == 0 /* the default */ && settings->maxRoots == 77 && settings->watchSelf == 1);
}

static long fakeStart(void *arg)
{
    fakeMonitor.started++;
    return 0;
}

static long fakeSetFilter(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    if (strcmp(filter->record, "REFUSE") == 0) {
        snprintf(why, size, "the monitor refuses");
        return -1;
    }
    fakeMonitor.inForce = *filter;
    answer->matching = 42;
    fakeMonitor.generations += fakeMonitor.started > 0; /* before iocInit the filter is kept, but not in force */
    answer->generation = answer->number = fakeMonitor.generations;
    return 0;
}

static int fakeIsFilterApplied(void *arg, unsigned number)
{
    epicsAtomicIncrIntT(&fakeMonitor.polls);
    return number <= fakeMonitor.generations && epicsAtomicGetIntT(&fakeMonitor.busy) == 0;
}

static void fakeGetFilter(void *arg, ebpfMonFilter *filter)
{
    *filter = fakeMonitor.inForce;
}

static ebpfMonOpStatus fakeSetLevel(void *arg, const char *iocPattern, int level, char *why, size_t size)
{
    fakeMonitor.levelSet = level;
    snprintf(why, size, "the monitor knows no \"%s\"", iocPattern);
    return judge(strcmp(iocPattern, "soft*") == 0);
}

static ebpfMonOpStatus fakeSetReference(void *arg, const char *iocPattern, int on, char *why, size_t size)
{
    return judge(strcmp(iocPattern, "soft*") == 0 && on);
}

static void fakeResetLost(void *arg)
{
    fakeMonitor.resets++;
}

static void fakeAcknowledgeGone(void *arg)
{
    testPass("IOCs that are gone were acknowledged");
}

static ebpfMonOpStatus fakeAddList(void *arg, ebpfMonList of, ebpfMonTextReport *report, const char *pattern,
                                   const char *record)
{
    if (of == ebpfMonListIocs)
        ebpfMonTextReportAdd(report, "# the IOCs\n");
    return judge((of == ebpfMonListIocs || strcmp(pattern, "*") == 0) &&
                 (of != ebpfMonListRecords || strcmp(record, "*") == 0));
}

static ebpfMonOpStatus fakeTrace(void *arg, ebpfMonTextReport *report, const char *recordPattern, unsigned count,
                                 char *why, size_t size)
{
    return judge(strcmp(recordPattern, "*") == 0 && count == 0);
}

static ebpfMonOpStatus fakeAddReport(void *arg, ebpfMonTextReport *report, int level)
{
    testPass("report at level %d", level);
    return ebpfMonOpDone;
}

static const ebpfMonMonitorOps fakeOps = {
    NULL, fakeConfigure, fakeStart, fakeSetFilter, fakeIsFilterApplied, fakeGetFilter, fakeSetLevel, NULL,
    fakeSetReference, fakeResetLost, fakeAcknowledgeGone, fakeAddList, fakeTrace, fakeAddReport
};

/* Reads "pv" as text until it is "value". Returns the time that this took, in s, or -1 after the deadline. */
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

void expect(const char *pv, const char *value)
{
    char seen[2048];
    double took = reached(pv, value, seen, sizeof(seen));

    testOk(took >= 0, "%s is \"%s\" after %.1f ms", pv, seen, took * 1e3);
    if (took < 0)
        testDiag("    expected \"%s\"", value);
}

void putText(const char *pv, const char *text)
{
    char name[80];

    sprintf(name, "%s.VAL$", pv);
    testdbPutArrFieldOk(name, DBR_CHAR, (unsigned long)strlen(text) + 1, text);
}

void change(ebpfMonGroup group)
{
    epicsTimeStamp now;

    epicsTimeGetCurrent(&now);
    ebpfMonPublishedLock()->time[group] = now;
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(group);
}

void addPut(unsigned n, const char *pv, const char *val)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    static ebpfMonPut put;

    put.time.secPastEpoch = 1163575683u + n;
    put.time.nsec = 123456000;
    put.at = (1 + n) * 1000000000ull;
    strcpy(put.ioc, "soft");
    strcpy(put.pv, pv);
    strcpy(put.val, val);
    strcpy(put.old, "old");
    strcpy(put.who, "alice@opi1");
    strcpy(put.origin, "CA");
    ebpfMonPublishedKeepPut(published, &put);
    published->puts.count++;
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupClientPuts);
    change(ebpfMonGroupPuts);
}

static void fillPublished(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonWatchRow *watch;

    published->state = ebpfMonRunning;
    published->isMeasured = 1;
    strcpy(published->stateMessage, "watching 2 IOCs");
    published->iocs.count = published->iocs.rows = 2;
    strcpy(published->iocs.ioc[0].name, "soft");
    strcpy(published->iocs.ioc[1].name, "1234567890123456789012345678901234567890");
    published->iocs.ioc[0].pid = 4711;
    published->iocs.ioc[0].records = 5;
    published->iocs.ioc[0].level = ebpfMonLevelChains;
    published->iocs.ioc[0].cost = 0.25;
    published->processings.count = 9007199254740993u; /* no double has this value */
    published->processings.busiestCount = 1;
    strcpy(published->processings.busiest[0].name, "REC:A");
    published->processings.busiest[0].count = 12;
    published->processings.busiest[0].rate = 1.5;
    published->chains.slowestCount = 1;
    published->chains.slowest[0].p99 = 99.5;
    published->chains.hist[3] = 7;
    published->losses.kinds = 1;
    strcpy(published->losses.by[0].reason, "ring full");
    published->losses.by[0].count = 3;
    published->costs.iocs = 0.75;
    strcpy(published->chains.slowText, "REC:A 1 ms\n  REC:B 2 ms");
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
    published->packets.state = ebpfMonWireTrouble;
    published->packets.gaps = 5;
    watch = &published->watched.row[ebpfMonPublishedAddWatch("REC:A")];
    watch->found = 1;
    watch->procCount = 12;
    watch->latP99 = 5.5;
    strcpy(watch->putLast, "a put to REC:A");
    ebpfMonPublishedUnlock();
}

void recordTestRun(void)
{
    fillPublished();
    change(ebpfMonGroupState);
    expect("T:STATE", "Running");
}

void recordTestBegin(void)
{
    static ebpfMonOps ops;

    epicsEnvSet("TZ", "UTC");
    fakeMonitor.inForce = ebpfMonFilterDefault;
    testdbPrepare();
    testdbReadDatabase("testRecord.dbd", NULL, NULL);
    testRecord_registerRecordDeviceDriver(pdbbase);
    ops = *ebpfMonOpsGet(); /* of the monitor, which has just registered */
    ops.monitor = &fakeOps;
    ebpfMonOpsSet(&ops);
    testdbReadDatabase("ebpfMon.db", PATH, "P=T:,FILTER_HOST=ho*,FILTER_FIELD=X*");
    testdbReadDatabase("ebpfMonClients.db", PATH, "P=T:");
    testdbReadDatabase("ebpfMonWatch.db", PATH, "P=T:,REC=REC:A");
    testdbReadDatabase("ebpfMonWatch.db", PATH, "P=T:,REC=REC:NOT:THERE,N=B");
    testdbReadDatabase("ebpfMonIoc.db", PATH, "P=T:,IOC=soft");
    testdbReadDatabase("testRules.db", "..", "P=T:");
    testOk1(iocshCmd("ebpfMonFilter \"\" \"\" VA*") == 0);
    testOk1(iocshCmd("ebpfMonFilter \"\" \"\" \"\" \"\" o*") == 0);
    testIocInitOk();
}

void recordTestEnd(void)
{
    testIocShutdownOk();
    ebpfMonPublishedNotify(ebpfMonGroupPuts); /* no thread waits any more */
    testdbCleanup();
}

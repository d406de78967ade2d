/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of operators, without a monitor: the filter by records and by command, and the other commands of
 * iocsh. */
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <asDbLib.h>
#include <asLib.h>
#include <dbAccess.h>
#include <dbChannel.h>
#include <dbUnitTest.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>
#include <iocsh.h>
#include <testMain.h>

#include "clients/clients.h"
#include "common/clock.h"
#include "recordTest.h"

#define OTHERS ", fields \"VA*\", hosts \"ho*\", users \"op*\"" /* patterns of the filter that testFilter leaves */

/* A thread that waits for a filter leaves the CPUs to the threads that apply it. */
static void testWait(void)
{
    uint64_t begin = ebpfMonClockMonotonic();
    double seconds;
    int polls;

    epicsAtomicSetIntT(&fakeMonitor.polls, 0);
    epicsThreadSleep(0.3);
    polls = epicsAtomicGetIntT(&fakeMonitor.polls);
    seconds = (double)(ebpfMonClockMonotonic() - begin) / 1e9;
    testOk(polls < 1 + 100 * seconds, "polled %d times in %.3f s", polls, seconds);
}

static int beginsWith(const char *pv, const char *text)
{
    char seen[300] = "", name[80];
    long n = sizeof(seen) - 1;
    DBADDR addr;

    sprintf(name, "%s.VAL$", pv);
    for (int i = 0; i < 6000; i++) { /* 60 s */
        if (dbNameToAddr(name, &addr) || dbGetField(&addr, DBR_CHAR, seen, NULL, &n, NULL))
            testAbort("%s cannot be read", name);
        if (strncmp(seen, text, strlen(text)) == 0)
            return 1;
        epicsThreadSleep(0.01);
        n = sizeof(seen) - 1;
    }
    testDiag("    \"%s\" does not begin with \"%s\"", seen, text);
    return 0;
}

static void testLateFilter(void)
{
    testDiag("filter: what takes long is accepted, and in force later");
    epicsAtomicSetIntT(&fakeMonitor.busy, 1);
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, 3);
    testOk(beginsWith("T:FILTER_STATUS", "accepted, being applied: level "),
           "the record completes before the filter is in force");
    epicsAtomicSetIntT(&fakeMonitor.busy, 0);
    testOk(beginsWith("T:FILTER_STATUS", "in force: level "), "the status says when the filter is in force");
    testOk1(fakeMonitor.inForce.sample == 3);
    testdbGetFieldEqual("T:FILTER.PACT", DBR_LONG, 0);

    epicsAtomicSetIntT(&fakeMonitor.busy, 1);
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, 4);
    testOk1(beginsWith("T:FILTER_STATUS", "accepted, being applied: level "));
    putText("T:FILTER_RECORD", "REFUSE");
    epicsAtomicSetIntT(&fakeMonitor.busy, 0);
    epicsThreadSleep(0.5);
    expect("T:FILTER_STATUS.VAL$", "the monitor refuses"); /* the earlier filter, once in force, does not replace
                                                            * this text */
    putText("T:FILTER_RECORD", "*");
    testOk1(beginsWith("T:FILTER_STATUS", "in force: level "));
}

/* Writes as a record of this IOC does that a scan thread processes: no client, so PUTF is 0. */
static void writeByScan(const char *pv, double value)
{
    DBADDR addr;

    if (dbNameToAddr(pv, &addr))
        testAbort("no %s", pv);
    dbScanLock(addr.precord);
    if (dbPut(&addr, DBR_DOUBLE, &value, 1) || dbProcess(addr.precord))
        testFail("%s cannot be written", pv);
    dbScanUnlock(addr.precord);
}

static void testFilterByScan(void)
{
    testDiag("filter: a record of this IOC writes two of its PVs");
    epicsAtomicSetIntT(&fakeMonitor.busy, 1);
    writeByScan("T:FILTER_SLOW", 20000);
    testdbGetFieldEqual("T:FILTER.PACT", DBR_LONG, 1);
    writeByScan("T:FILTER_BUDGET", 0.5);
    epicsAtomicSetIntT(&fakeMonitor.busy, 0);
    expect("T:FILTER.I", "0.50"); /* the record has read its inputs again */
    testOk(fakeMonitor.inForce.slowUs == 20000 && fakeMonitor.inForce.budget == 0.5,
           "both are in force: slow limit %g, budget %g", fakeMonitor.inForce.slowUs, fakeMonitor.inForce.budget);
    expect("T:FILTER.PACT", "0");
}

/* A put of a server that nobody knows: the guard cannot tell whose it is. */
static void testUnknownServer(void)
{
    static char user[] = "root", host[] = "localhost";
    dbChannel *channel = dbChannelCreate("T:FILTER_BUDGET");
    double before = fakeMonitor.inForce.budget, value = before + 1;
    ASCLIENTPVT client = NULL;
    void *put;

    testDiag("access: a server that is neither rsrv nor QSRV");
    if (!channel || dbChannelOpen(channel) ||
        asAddClient(&client, asDbGetMemberPvt(channel), asDbGetAsl(channel), user, host))
        testAbort("no client of access security");
    testOk(asCheckPut(client), "access security lets everybody write values");
    put = asTrapWriteWithData(client, user, host, channel, DBR_DOUBLE, 1, &value);
    testOk(put && dbChannelPutField(channel, DBR_DOUBLE, &value, 1) == S_db_noMod, "it is refused");
    asTrapWriteAfter(put);
    testdbGetFieldEqual("T:FILTER_BUDGET", DBR_DOUBLE, before);
    testOk1(fakeMonitor.inForce.budget == before);
    put = asTrapWriteWithData(client, user, host, channel, DBR_DOUBLE, 1, &value);
    dbScanLock(dbChannelRecord(channel));
    testOk1(dbChannelPut(channel, DBR_DOUBLE, &value, 1) == 0); /* without processing */
    dbScanUnlock(dbChannelRecord(channel));
    testdbGetFieldEqual("T:FILTER_BUDGET", DBR_DOUBLE, value);
    asTrapWriteAfter(put);
    testdbGetFieldEqual("T:FILTER_BUDGET", DBR_DOUBLE, before);
    testOk(dbChannelPutField(channel, DBR_DOUBLE, &value, 1) == 0, "what comes from inside is accepted");
    testdbGetFieldEqual("T:FILTER_BUDGET", DBR_DOUBLE, value);
    asRemoveClient(&client);
    dbChannelDelete(channel);
}

/* Longer than others: each put finds the filter that the one before has left. */
static void testFilter(void)
{
    static const char tooLong[] = "1234567890123456789012345678901234567890123456789012345678901";
    DBADDR addr;

    testDiag("filter: once at the start, then on each change");
    testOk(fakeMonitor.generations == 1, "the filter was set once: %u times", fakeMonitor.generations);
    testOk1(strcmp(fakeMonitor.inForce.record, "*") == 0 && fakeMonitor.inForce.level == ebpfMonLevelChains);
    testOk(strcmp(fakeMonitor.inForce.host, "ho*") == 0 && strcmp(fakeMonitor.inForce.field, "VA*") == 0 &&
               strcmp(fakeMonitor.inForce.user, "o*") == 0,
           "before iocInit commands go before macros, and leave the others: "
           "%s %s %s",
           fakeMonitor.inForce.host, fakeMonitor.inForce.field, fakeMonitor.inForce.user);
    expect("T:FILTER_FIELD.VAL$", "VA*");
    expect("T:FILTER_HOST.VAL$", "ho*");
    testOk1(fakeMonitor.inForce.slowUs == 10000 && fakeMonitor.inForce.sample == 1 && fakeMonitor.inForce.budget == 1);
    expect("T:FILTER_STATUS.VAL$",
           "in force: level chains for IOCs \"*\", records \"*\", fields \"VA*\", hosts \"ho*\", users \"o*\"");
    testdbGetFieldEqual("T:FILTER.VALB", DBR_LONG, 42);
    testdbGetFieldEqual("T:FILTER.VALC", DBR_LONG, 1);

    putText("T:FILTER_RECORD", "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES");
    expect("T:FILTER_STATUS.VAL$", "in force: level chains for IOCs \"*\", records "
           "\"RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES\", fields \"VA*\", hosts \"ho*\", "
           "users \"o*\"");
    testOk(strcmp(fakeMonitor.inForce.record, "RING:VACUUM:SECTOR12:GAUGE3:A-RATHER-LONG-RECORD-NAME:PRES") == 0,
           "a long pattern is not cut: %s", fakeMonitor.inForce.record);
    testdbPutFieldOk("T:FILTER_USER", DBR_STRING, "op*"); /* as caput without -S does */
    testOk1(strcmp(fakeMonitor.inForce.user, "op*") == 0);
    putText("T:FILTER_RECORD", "");
    testOk1(strcmp(fakeMonitor.inForce.record, "*") == 0);
    testdbPutFieldOk("T:FILTER_LEVEL", DBR_STRING, "trace");
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, 10);
    testdbPutFieldOk("T:FILTER_BUDGET", DBR_DOUBLE, 2.5);
    testOk1(fakeMonitor.inForce.level == ebpfMonLevelTrace && fakeMonitor.inForce.sample == 10 &&
            fakeMonitor.inForce.budget == 2.5);
    testdbGetFieldEqual("T:FILTER.VALC", DBR_LONG, 7);

    testDiag("filter: refusals leave the old one");
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, -1);
    testdbGetFieldEqual("T:FILTER.SEVR", DBR_STRING, "MAJOR");
    testdbGetFieldEqual("T:FILTER_STATUS.SEVR", DBR_STRING, "MAJOR");
    testOk1(fakeMonitor.inForce.sample == 10);
    testdbPutFieldOk("T:FILTER_SAMPLE", DBR_LONG, 0);
    testOk1(fakeMonitor.inForce.sample == 1);
    putText("T:FILTER_RECORD", tooLong);
    expect("T:FILTER_STATUS.VAL$", "record pattern is longer than 60 characters: shorten it with *");
    putText("T:FILTER_RECORD", "A\nB");
    expect("T:FILTER_STATUS.VAL$",
           "record pattern has a control character (code 10) at position 2: type it again");
    putText("T:FILTER_RECORD", "REFUSE");
    expect("T:FILTER_STATUS.VAL$", "the monitor refuses");
    testdbGetFieldEqual("T:FILTER_STATUS.SEVR", DBR_STRING, "MAJOR");
    testOk1(strcmp(fakeMonitor.inForce.record, "*") == 0);
    testdbGetFieldEqual("T:FILTER.VALC", DBR_LONG, 8);
    putText("T:FILTER_RECORD", "A*");
    testdbGetFieldEqual("T:FILTER.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:FILTER_STATUS.SEVR", DBR_STRING, "NO_ALARM");

    testDiag("filter: applying it takes a while");
    epicsAtomicSetIntT(&fakeMonitor.busy, 1);
    putText("T:FILTER_RECORD", "B*");
    testdbGetFieldEqual("T:FILTER.PACT", DBR_LONG, 1);
    testWait();
    expect("T:FILTER_STATUS.VAL$", "in force: level trace for IOCs \"*\", records \"A*\"" OTHERS);
    putText("T:FILTER_RECORD", "C*"); /* the record processes again after the wait */
    epicsAtomicSetIntT(&fakeMonitor.busy, 0);
    expect("T:FILTER_STATUS.VAL$", "in force: level trace for IOCs \"*\", records \"C*\"" OTHERS);
    testdbGetFieldEqual("T:FILTER.PACT", DBR_LONG, 0);
    putText("T:FILTER_RECORD", "A*");

    testDiag("histogram");
    putText("T:CHAIN_HIST_ROOT", "REC:A");
    testOk1(strcmp(ebpfMonPublishedLock()->chains.selectedRoot, "REC:A") == 0);
    ebpfMonPublishedUnlock();
    change(ebpfMonGroupChains);
    expect("T:CHAIN_HIST.SEVR", "INVALID"); /* not found */
    dbNameToAddr("T:CHAIN_HIST_ROOT.VAL$", &addr);
    testOk1(dbPutField(&addr, DBR_CHAR, tooLong, sizeof(tooLong)) != 0);
    testdbGetFieldEqual("T:CHAIN_HIST_ROOT.SEVR", DBR_STRING, "INVALID");
}

/* Writes a text to a record that refuses it. */
static void refuseText(const char *pv, const char *text)
{
    char name[80];
    DBADDR addr;

    sprintf(name, "%s.VAL$", pv);
    dbNameToAddr(name, &addr);
    testOk(dbPutField(&addr, DBR_CHAR, text, (long)strlen(text) + 1) != 0, "%s refuses \"%s\"", pv, text);
    sprintf(name, "%s.SEVR", pv);
    testdbGetFieldEqual(name, DBR_STRING, "INVALID");
}

static int areClientsOf(const char *iocPattern, const char *pvPattern)
{
    const ebpfMonClientValues *clients = ebpfMonClientsGetValues();
    int are;

    ebpfMonModuleLock();
    are = strcmp(clients->iocPattern, iocPattern) == 0 && strcmp(clients->pvPattern, pvPattern) == 0;
    ebpfMonModuleUnlock();
    return are;
}

static void testClientPatterns(void)
{
    testDiag("patterns of clients: one that matches nothing is refused");
    putText("T:CLIENT_FILTER_IOC", "vac*");
    putText("T:CLIENT_FILTER_PV", "RING:?");
    testOk1(areClientsOf("vac*", "RING:?"));
    refuseText("T:CLIENT_FILTER_PV", "[AB]*");
    testdbGetFieldEqual("T:CLIENT_FILTER_PV.STAT", DBR_STRING, "WRITE");
    testdbGetFieldEqual("T:CLIENT_FILTER_PV.AMSG", DBR_STRING, "PV pattern \"[AB]*\": [sets] are not ...");
    refuseText("T:CLIENT_FILTER_IOC", "A\nB");
    testOk1(areClientsOf("vac*", "RING:?"));
    putText("T:CLIENT_FILTER_IOC", "");
    putText("T:CLIENT_FILTER_PV", "");
    testdbGetFieldEqual("T:CLIENT_FILTER_PV.SEVR", DBR_STRING, "NO_ALARM");
    testOk1(areClientsOf("", ""));
}

static void testShell(void)
{
    testDiag("commands");
    testOk1(iocshCmd("ebpfMonFilter \"soft*\" \"\" \"\" \"\" \"\" counts 0 \"\" 3") == 0);
    testOk1(strcmp(fakeMonitor.inForce.ioc, "soft*") == 0 && strcmp(fakeMonitor.inForce.record, "A*") == 0 &&
            strcmp(fakeMonitor.inForce.user, "op*") == 0);
    testOk1(fakeMonitor.inForce.level == ebpfMonLevelCounts && fakeMonitor.inForce.slowUs == 0 &&
            fakeMonitor.inForce.budget == 3);
    testDiag("the command sets the PVs");
    expect("T:FILTER_IOC.VAL$", "soft*");
    testdbGetFieldEqual("T:FILTER_LEVEL", DBR_STRING, "counts");
    testdbGetFieldEqual("T:FILTER_BUDGET", DBR_DOUBLE, 3.0);
    expect("T:FILTER_STATUS.VAL$", "in force: level counts for IOCs \"soft*\", records \"A*\"" OTHERS);
    testdbPutFieldOk("T:FILTER_SLOW", DBR_DOUBLE, 5.0);
    testOk1(strcmp(fakeMonitor.inForce.ioc, "soft*") == 0 && fakeMonitor.inForce.slowUs == 5);

    eltc(0);
    testOk1(iocshCmd("ebpfMonFilter * * * * * nonsense") != 0);
    testOk1(iocshCmd("ebpfMonFilter * [a") != 0);
    testOk1(iocshCmd("ebpfMonFilter * * * * * \"\" x") != 0);
    testOk1(iocshCmd("ebpfMonLevel soft* nonsense") != 0);
    testOk1(iocshCmd("ebpfMonReference") != 0);
    eltc(1);
    testOk1(iocshCmd("ebpfMonLevel soft* trace") == 0 && fakeMonitor.levelSet == ebpfMonLevelTrace);
    testOk1(iocshCmd("ebpfMonLevel soft* filter") == 0 && fakeMonitor.levelSet == -1);
    testOk1(iocshCmd("ebpfMonReference soft* 1") == 0);
    testOk1(iocshCmd("ebpfMonConfigure 0 77 0 1") == 0);
    testOk1(iocshCmd("ebpfMonIocs") == 0 && iocshCmd("ebpfMonRecords") == 0);
    testOk1(iocshCmd("ebpfMonChains") == 0 && iocshCmd("ebpfMonStart") == 0);
    testOk1(iocshCmd("ebpfMonSearches") == 0);
    testOk1(iocshCmd("ebpfMonReset") == 0 && fakeMonitor.resets == 1);
    testOk1(iocshCmd("ebpfMonReport 1") == 0);
    iocshCmd("dbior drvEbpfMon 2");
}

static char lastError[400]; /* the thread of errlog writes it; it is read after errlogFlush */

static void noteError(void *arg, const char *message)
{
    snprintf(lastError, sizeof(lastError), "%s", message);
}

/* A test that fails if the command succeeds, or prints another text. */
static void expectError(const char *command, const char *error)
{
    int status = iocshCmd(command);

    errlogFlush();
    testOk(status != 0 && strstr(lastError, error), "%s: %s", command, lastError);
}

static void testErrors(void)
{
    testDiag("the monitor returns a status; the commands print the reason");
    eltc(0);
    errlogAddListener(noteError, NULL);
    expectError("ebpfMonLevel hard* trace", "ebpfMonLevel: the monitor knows no \"hard*\"\n");
    expectError("ebpfMonClients [AB]*", "ebpfMonClients: IOC pattern \"[AB]*\": [sets] are not supported");
    expectError("ebpfMonUsers [AB]*", "ebpfMonUsers: PV pattern \"[AB]*\": [sets] are not supported");
    expectError("ebpfMonRecords [AB]*", "ebpfMonRecords: IOC pattern \"[AB]*\": [sets] are not supported");
    expectError("ebpfMonRecords * [AB]*", "ebpfMonRecords: record pattern \"[AB]*\": [sets] are not supported");
    expectError("ebpfMonChains [AB]*", "ebpfMonChains: root pattern \"[AB]*\": [sets] are not supported");
    fakeMonitor.status = ebpfMonOpNotStarted;
    expectError("ebpfMonIocs", "ebpfMonIocs: ebpfMon does not run (it starts with iocInit)\n");
    expectError("ebpfMonRecords", "ebpfMonRecords: ebpfMon does not run (it starts with iocInit)\n");
    expectError("ebpfMonTrace", "ebpfMonTrace: ebpfMon does not run");
    fakeMonitor.status = ebpfMonOpStartFailed;
    expectError("ebpfMonChains",
                "ebpfMonChains: ebpfMon does not run (see the PV STATE_MSG; ebpfMonStart tries again)\n");
    fakeMonitor.status = ebpfMonOpFull;
    expectError("ebpfMonReference soft* 1", "ebpfMonReference: there are 64 patterns already. ");
    fakeMonitor.status = ebpfMonOpAbsent;
    expectError("ebpfMonConfigure 0 77 0 1", "ebpfMonConfigure: ebpfMon is not there");
    fakeMonitor.status = ebpfMonOpDone;
    errlogRemoveListeners(noteError, NULL);
    eltc(1);
}

MAIN(testRecordCommands)
{
    testPlan(0);
    recordTestBegin();
    recordTestRun();
    testFilter();
    testClientPatterns();
    testShell();
    testErrors();
    testLateFilter();
    testFilterByScan();
    testUnknownServer();
    recordTestEnd();
    return testDone();
}

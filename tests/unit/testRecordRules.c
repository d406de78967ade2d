/* SPDX-License-Identifier: BSD-3-Clause */
/* Unexpected puts in the records, and the records and commands of the rules, without a monitor. */
#include <stdio.h>
#include <string.h>

#include <dbAccess.h>
#include <dbUnitTest.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>
#include <iocsh.h>
#include <testMain.h>

#include "recordTest.h"

/* An unexpected put, as the monitor records one. */
static void addUnexpected(const char *pv, const char *rule)
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
    ebpfMonPublishedAddUnexpected(&put);
    eltc(1);
}

static int whole;

static void onMessage(void *arg, const char *message)
{
    if (strstr(message, "unexpected put"))
        whole = strlen(message) < 256 && strstr(message, "ebpfMonPutAck\n") && strstr(message, "...") &&
                !strstr(message, "TRUNCATED");
}

/* With the longest put, value and rule. */
static void testMessage(void)
{
    char rule[96];

    memset(rule, 'r', sizeof(rule) - 1);
    rule[sizeof(rule) - 1] = 0;
    errlogAddListener(onMessage, NULL);
    addUnexpected("SECTION:07:MAGNET:QUADRUPOLE:3:CURRENT:CORRECTION:SETPOINT.HIHI", rule);
    errlogFlush();
    errlogRemoveListeners(onMessage, NULL);
    testOk(whole, "the message is not cut, and says what to do");
}

static void writeRules(const char *text)
{
    FILE *f = fopen("testRecordRules.json", "w");

    if (!f || fputs(text, f) < 0 || fclose(f))
        testAbort("cannot write testRecordRules.json");
}

/* A put that has reached one record has not reached all of them. Until then it cannot be acknowledged. */
static void expectAllShown(void)
{
    double waited;
    uint64_t shown, count;

    for (waited = 0; waited < DEADLINE; waited += 0.001) {
        const ebpfMonPublished *published = ebpfMonPublishedLock();

        shown = published->unexpected.shown[ebpfMonShownByPvs];
        count = published->unexpected.count;
        ebpfMonPublishedUnlock();
        if (shown == count)
            break;
        epicsThreadSleep(0.001);
    }
    testOk(shown == count, "all unexpected puts are published");
}

/* Longer than others: each acknowledgement finds what the ones before have left. */
static void testUnexpected(void)
{
    static const char line[] = "2026-11-15 07:28:03.000000 REC:%c 0 -> 1 by bob@opi1";
    char text[2][80];

    testDiag("unexpected puts: MAJOR until acknowledged");
    sprintf(text[0], line, 'A');
    sprintf(text[1], line, 'B');
    expect("T:PUT_BAD_LAST.VAL$", "no unexpected put yet");
    expect("T:PUT_BAD_ALARM", "no unexpected put yet");
    testdbGetFieldEqual("T:PUT_BAD_ALARM.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:PUT_BAD_LAST.SEVR", DBR_STRING, "NO_ALARM");
    testdbGetFieldEqual("T:PUT_BAD_CNT.SEVR", DBR_STRING, "NO_ALARM");
    addUnexpected("REC:A", "rule \"r\": no put is allowed");
    expect("T:PUT_BAD_LAST.VAL$", text[0]);
    expect("T:PUT_BAD_LAST.SEVR", "MAJOR");
    expect("T:PUT_BAD_CNT.SEVR", "MAJOR");
    expect("T:PUT_BAD_LOG.SEVR", "MAJOR");
    expect("T:PUT_BAD_REASONS.SEVR", "MAJOR");
    expect("T:PUT_BAD_REASON.VAL$", "rule \"r\": no put is allowed");
    expect("T:PUT_BAD_LAST_S.SEVR", "MAJOR");
    addUnexpected("REC:B", "no rule is for this PV");
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
    expectAllShown();
    testdbPutFieldOk("T:PUT_BAD_ACK", DBR_LONG, 1);
    expect("T:PUT_BAD_OPEN_CNT", "0");
    expect("T:PUT_BAD_OPEN_CNT.SEVR", "NO_ALARM");
    expect("T:PUT_BAD_LAST.SEVR", "NO_ALARM");
    expect("T:PUT_BAD_CNT.SEVR", "NO_ALARM");
    expect("T:PUT_BAD_LOG", "");
    expect("T:PUT_BAD_PVS.NORD", "0");
    expect("T:PUT_BAD_CNT", "2");
    expect("T:PUT_BAD_LAST.VAL$", text[1]); /* it stays to be read */
    testMessage();
    expect("T:PUT_BAD_OPEN_CNT.SEVR", "MAJOR");
    expectAllShown();
    testdbPutFieldOk("T:SUB:RULES.B", DBR_LONG, 2);
    testdbPutFieldOk("T:SUB:RULES.PROC", DBR_LONG, 1);
    expect("T:SUB:RULES.VALA", "acknowledged, 0 unexpected puts open");
    expect("T:PUT_BAD_OPEN_CNT", "0");
    addUnexpected("REC:A", "and again");
    expect("T:PUT_BAD_OPEN_CNT", "1");
    expectAllShown();
    testOk1(iocshCmd("ebpfMonPutAck") == 0);
    expect("T:PUT_BAD_OPEN_CNT", "0");

    testDiag("rules");
    expect("T:RULES_MSG.VAL$", "no rules: every put is expected");
    eltc(0);
    testdbPutFieldOk("T:RULES_LOAD", DBR_LONG, 1); /* which? */
    testdbGetFieldEqual("T:RULES_LOAD.SEVR", DBR_STRING, "MINOR");
    testdbGetFieldEqual("T:RULES_MSG.SEVR", DBR_STRING, "NO_ALARM");
    writeRules("{\"rules\": [{\"name\": \"r\", \"pv\": \"A\"}]}");
    testOk1(iocshCmd("ebpfMonRules testRecordRules.json") == 0);
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
    testdbPutFieldOk("T:SUB:RULES.A", DBR_STRING, "testRecordRules.json");
    testdbPutFieldOk("T:SUB:RULES.PROC", DBR_LONG, 1);
    testdbGetFieldEqual("T:SUB:RULES.SEVR", DBR_STRING, "NO_ALARM");
    expect("T:RULES_CNT", "0");
    remove("testRecordRules.json");
}

static void testPulse(void)
{
    testDiag("one alarm each");
    expect("T:PUT_BAD_ALARM.SEVR", "NO_ALARM"); /* the earlier pulses have ended */
    addUnexpected("REC:A", "rule \"r\": no put is allowed from anybody at all");
    expect("T:PUT_BAD_ALARM.SEVR", "MAJOR");
    expect("T:PUT_BAD_ALARM", "REC:A = 1 by bob@opi1: rule \"r\": no ...");
    testdbGetFieldEqual("T:PUT_BAD_ALARM.AMSG", DBR_STRING, "rule \"r\": no put is allowed from an...");
    addUnexpected("REC:B", "second");
    testdbGetFieldEqual("T:PUT_BAD_ALARM", DBR_STRING, "REC:A = 1 by bob@opi1: rule \"r\": no ...");
    expect("T:PUT_BAD_ALARM.SEVR", "NO_ALARM");
    testdbGetFieldEqual("T:PUT_BAD_ALARM", DBR_STRING, "REC:A = 1 by bob@opi1: rule \"r\": no ...");
    expect("T:PUT_BAD_ALARM.SEVR", "MAJOR");
    testdbGetFieldEqual("T:PUT_BAD_ALARM", DBR_STRING, "REC:B = 1 by bob@opi1: second");
    expect("T:PUT_BAD_OPEN_CNT.SEVR", "MAJOR");
    expect("T:PUT_BAD_ALARM.SEVR", "NO_ALARM"); /* and there was no acknowledgement */
    expect("T:PUT_BAD_OPEN_CNT", "2");
}

MAIN(testRecordRules)
{
    testPlan(0);
    recordTestBegin();
    recordTestRun();
    testUnexpected();
    testPulse();
    recordTestEnd();
    return testDone();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* publish/: the text of slow chains, the printer of ebpfMonTrace, the counts of losses, the state, and the publisher of
 * puts. */
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "model/published.h"
#include "model/audits.h"
#include "publish/publisher.h"
#include "publish/publishRoom.h"
#include "publish/slowChains.h"
#include "targetTest.h"

#define DEADLINE 5.0 /* s */

static void testSlowText(void)
{
    char buf[20] = "", many[40];

    testDiag("text of slow chains");
    ebpfMonSlowChainsPrepend(buf, sizeof(buf), "one\n", 4);
    ebpfMonSlowChainsPrepend(buf, sizeof(buf), "two\n  x\n", 8);
    testOk(strcmp(buf, "two\n  x\none\n") == 0, "the newest line comes first");
    ebpfMonSlowChainsPrepend(buf, sizeof(buf), "three\n", 6);
    testOk(strcmp(buf, "three\ntwo\n  x\none\n") == 0, "%u characters", (unsigned)strlen(buf));
    ebpfMonSlowChainsPrepend(buf, sizeof(buf), "4\n", 2);
    testOk(strcmp(buf, "4\nthree\ntwo\n  x\n") == 0, "the oldest one is removed as a whole: %s", buf);
    ebpfMonSlowChainsPrepend(buf, sizeof(buf), "five\n", 5);
    testOk(strcmp(buf, "five\n4\nthree\n") == 0, "one of two lines, too: %s", buf);
    memset(many, 'm', sizeof(many));
    ebpfMonSlowChainsPrepend(buf, sizeof(buf), many, sizeof(many));
    testOk1(strlen(buf) == sizeof(buf) - 1 && strspn(buf, "m") == sizeof(buf) - 1);
}

/* --- ebpfMonTrace ---------------------------------------------------------------------------------------------- */

static epicsEventId mayPrint;
static size_t begun, printed; /* atomic */
static char lastPrinted[100];

static void printSlowly(const char *text)
{
    epicsAtomicIncrSizeT(&begun);
    epicsEventMustWait(mayPrint);
    snprintf(lastPrinted, sizeof(lastPrinted), "%s", text);
    epicsAtomicIncrSizeT(&printed);
}

/* A result of -1 must have a reason. */
static int setPattern(ebpfMonTracePrinter *p, const char *pattern, unsigned count)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    char why[160] = "";
    int status = ebpfMonTracePrinterSetPattern(p, report, pattern, count, why, sizeof(why));

    if ((status != 0) != (why[0] != 0))
        testFail("status %d: %s", status, why);
    ebpfMonTextReportFree(report);
    return status;
}

static int reaches(const size_t *counter, size_t count)
{
    for (double waited = 0; waited < DEADLINE && epicsAtomicGetSizeT(counter) < count; waited += 0.001)
        epicsThreadSleep(0.001);
    return epicsAtomicGetSizeT(counter) == count;
}

static int isPrinted(size_t count)
{
    return reaches(&printed, count);
}

static void testPrinter(void)
{
    static const char *const names[] = { "T:A", "T:B", NULL };
    ebpfMonTargets *targets = ebpfMonTargetsNew();
    ebpfMonTracePrinter *p;

    testDiag("a terminal that is not read");
    targetTestNew(targets, "vac", 1, 0, names);
    mayPrint = epicsEventMustCreate(epicsEventEmpty);
    p = ebpfMonTracePrinterNew(targets, printSlowly);
    testOk1(!ebpfMonTracePrinterIsOn(p) && !ebpfMonTracePrinterMatches(p, "T:A"));
    testOk1(setPattern(p, "NOBODY:*", 1) == -1 && setPattern(p, "T:[A", 1) == -1);
    testOk1(setPattern(p, "T:*", 2) == 0 && ebpfMonTracePrinterIsOn(p));
    testOk1(ebpfMonTracePrinterMatches(p, "T:B") && !ebpfMonTracePrinterMatches(p, "X"));
    ebpfMonTracePrinterAdd(p, "first\n");
    ebpfMonTracePrinterAdd(p, "second\n");
    ebpfMonTracePrinterAdd(p, "third\n");
    testOk1(!ebpfMonTracePrinterIsOn(p) && epicsAtomicGetSizeT(&printed) == 0);
    epicsEventMustTrigger(mayPrint);
    testOk1(isPrinted(1) && strcmp(lastPrinted, "first\n") == 0);
    epicsEventMustTrigger(mayPrint);
    testOk(isPrinted(2) && strcmp(lastPrinted, "second\nebpfMonTrace: done\n") == 0,
           "the last line says that some are missing: %s", lastPrinted);
    setPattern(p, "T:A", 1000);
    ebpfMonTracePrinterAdd(p, "held up\n");
    testOk(reaches(&begun, 3), "the thread is at the terminal");
    for (int i = 0; i < 500; i++)
        ebpfMonTracePrinterAdd(p, "many\n"); /* does not wait */
    testOk1(ebpfMonTracePrinterIsOn(p) && epicsAtomicGetSizeT(&printed) == 2);
    for (size_t i = 3; i <= 3 + EBPFMON_TRACES_WAITING; i++) {
        epicsEventMustTrigger(mayPrint);
        if (!isPrinted(i))
            break;
    }
    testOk(isPrinted(3 + EBPFMON_TRACES_WAITING) && epicsAtomicGetSizeT(&begun) == 3 + EBPFMON_TRACES_WAITING,
           "as many lines wait as may wait: %u", (unsigned)epicsAtomicGetSizeT(&printed) - 3);
    testOk1(setPattern(p, "", 0) == 0 && !ebpfMonTracePrinterIsOn(p));

    testDiag("its end");
    setPattern(p, "T:A", 1000);
    ebpfMonTracePrinterAdd(p, "held up\n");
    reaches(&begun, 4 + EBPFMON_TRACES_WAITING);
    eltc(0);
    testOk(ebpfMonTracePrinterStop(p) == -1, "a thread that waits for the terminal is not waited for");
    eltc(1);
    epicsEventMustTrigger(mayPrint);
    testOk1(isPrinted(4 + EBPFMON_TRACES_WAITING));
    testOk1(ebpfMonTracePrinterStop(p) == 0 && ebpfMonTracePrinterStop(p) == 0);
    ebpfMonTracePrinterAdd(p, "too late\n");
    ebpfMonTracePrinterFree(p);
    ebpfMonTracePrinterFree(NULL);
}

/* --- losses and state ------------------------------------------------------------------------------------------ */

static uint64_t lost[EBPFMON_LOST_ALL];
static unsigned lossMessages;

static void readLost(void *arg, uint64_t now[EBPFMON_LOST_ALL])
{
    memcpy(now, arg, sizeof(lost));
}

static void countMessages(void *arg, const char *message)
{
    lossMessages += strstr(message, "events were lost") != NULL;
}

static void publishLosses(ebpfMonLossCounters *counters, uint64_t expected, unsigned messages)
{
    uint64_t count;

    ebpfMonLossCountersPublish(counters);
    errlogFlush();
    count = ebpfMonPublishedLock()->losses.count;
    ebpfMonPublishedUnlock();
    testOk(count == expected && lossMessages == messages, "%llu lost, %u messages", (unsigned long long)count,
           lossMessages);
}

static void testLosses(void)
{
    ebpfMonLossCounters *counters = ebpfMonLossCountersNew(readLost, lost);

    testDiag("losses");
    eltc(0);
    errlogAddListener(countMessages, NULL);
    publishLosses(counters, 0, 0);
    lost[EBPFMON_LOST_RING] = 5;
    lost[EBPFMON_LOST_KERNEL + ebpfMonLossGone] = 2;
    publishLosses(counters, 7, 1);
    testOk1(strcmp(ebpfMonPublishedLock()->losses.by[EBPFMON_LOST_RING].reason, "event ring full") == 0 &&
            ebpfMonPublishedLock()->losses.by[EBPFMON_LOST_RING].count == 5);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedUnlock();
    lost[EBPFMON_LOST_RING] = 6;
    publishLosses(counters, 8, 1);
    ebpfMonLossCountersReset(counters);
    publishLosses(counters, 0, 1);
    lost[EBPFMON_LOST_RING] = 7;
    publishLosses(counters, 1, 2);
    errlogRemoveListeners(countMessages, NULL);
    eltc(1);
    ebpfMonLossCountersFree(counters);
}

/* Unlocks. Nonzero if AUDIT begins and ends with these texts. */
static int isAudit(uint64_t count, const char *begin, const char *end)
{
    const ebpfMonAuditValues *audit = &ebpfMonPublishedLock()->audit;
    size_t length = strlen(audit->text);
    int is = audit->count == count && strncmp(audit->text, begin, strlen(begin)) == 0 && length >= strlen(end) &&
             strcmp(audit->text + length - strlen(end), end) == 0;

    testDiag("%s", audit->text);
    ebpfMonPublishedUnlock();
    return is;
}

static unsigned auditMessages;

static void countAuditMessages(void *arg, const char *message)
{
    auditMessages += strstr(message, "cross-check") != NULL;
}

static void testAudit(void)
{
    ebpfMonAudits *audits = ebpfMonAuditsNew();
    ebpfMonAuditText text = { .audits = audits };

    testDiag("cross-checks");
    eltc(0);
    errlogAddListener(countAuditMessages, NULL);
    ebpfMonAuditTextPublish(&text);
    testOk1(isAudit(0, "all cross-checks agree", ""));
    ebpfMonAuditsAdd(audits, ebpfMonAuditPutNotInside, 1, "VAC:SET");
    ebpfMonAuditsAdd(audits, ebpfMonAuditPutNumber, 2, "vac1");
    ebpfMonAuditTextPublish(&text);
    testOk1(isAudit(3, "vac1: a put of this IOC was not seen; 3 disagree, last ", ""));
    ebpfMonAuditTextPublish(&text);
    errlogFlush();
    testOk(auditMessages == 1, "one message, and not one per second");
    ebpfMonAuditsReset(audits);
    ebpfMonAuditTextPublish(&text);
    testOk1(isAudit(0, "all cross-checks agree", ""));
    errlogRemoveListeners(countAuditMessages, NULL);
    eltc(1);
    ebpfMonAuditsFree(audits);
}

static void testState(void)
{
    ebpfMonStateInput in = { .trouble = "", .firstTrouble = "vac: no symbols", .iocs = 3, .watched = 2 };
    char text[100];

    testDiag("state");
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonRunning && strcmp(text, "watching 2 of 3 IOCs") == 0);
    in.iocs = in.watched = 1;
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonRunning && strcmp(text, "watching 1 of 1 IOC") == 0);
    in.starting = 2;
    in.firstStarting = "vac";
    testOk(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonRunning &&
           strcmp(text, "watching 1 of 1 IOC; vac starts, or is paused (iocPause) (and 1 more)") == 0, "%s", text);
    in.isStartingLong = 1;
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonDegraded);
    in.starting = 0;
    in.isLooking = 1;
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonStarting &&
            strcmp(text, "looking for IOCs: watching 1 of 1 IOC so far") == 0);
    in.troubledIocs = 1;
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonDegraded && strcmp(text, "vac: no symbols") == 0);
    in.troubledIocs = 3;
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonDegraded &&
            strcmp(text, "vac: no symbols (and 2 more: ebpfMonIocs)") == 0);
    in.trouble = "no CAP_SYS_PTRACE";
    testOk1(ebpfMonStateFind(&in, text, sizeof(text)) == ebpfMonDegraded && strcmp(text, "no CAP_SYS_PTRACE") == 0);
}

/* --- puts ------------------------------------------------------------------------------------------------------ */

static ebpfMonFilter filter;
static unsigned logged, notified[ebpfMonGroupCount];

static void getFilter(void *arg, ebpfMonFilter *f)
{
    *f = filter;
}

static void judgePut(void *arg, ebpfMonPut *put)
{
    put->unexpected = 0;
}

static void logPut(void *arg, const ebpfMonPut *put)
{
    logged += put->who[0] != 0;
}

static void noteChange(ebpfMonGroup group)
{
    notified[group]++;
}

static unsigned made = 1000; /* s; when the next put was made */

static void publishPut(const ebpfMonPutCalls *p, const char *ioc, const char *pv, ebpfMonPutResult result)
{
    ebpfMonPut put = { .result = result, .through = ebpfMonByThread, .time = { made, 0 }, .at = made };

    snprintf(put.ioc, sizeof(put.ioc), "%s", ioc);
    snprintf(put.pv, sizeof(put.pv), "%s", pv);
    snprintf(put.thread, sizeof(put.thread), "seq");
    snprintf(put.who, sizeof(put.who), "thread seq");
    ebpfMonPutPublish(p, &put);
}

static void testPuts(void)
{
    const ebpfMonPutCalls calls = { .judge = judgePut, .getFilter = getFilter, .log = logPut };
    const ebpfMonPutCalls *p = &calls;
    const ebpfMonPublished *published;
    const ebpfMonWatchRow *row;
    char name[40];

    testDiag("puts");
    filter = ebpfMonFilterDefault;
    ebpfMonPublishedSetListener(noteChange);
    row = &ebpfMonPublishedLock()->watched.row[ebpfMonPublishedAddWatch("W:REC")];
    ebpfMonPublishedUnlock();
    publishPut(p, "a", "X.HOPR", ebpfMonPutOk);
    publishPut(p, "a", "W:REC.DESC", ebpfMonPutDenied);
    published = ebpfMonPublishedLock();
    testOk1(published->puts.count == 2 && published->puts.denied == 1 && published->puts.automatic == 2 &&
            published->puts.of[ebpfMonPutAutomatic].kept == 2);
    testOk1(strcmp(ebpfMonPublishedGetPut(published, 0)->pv, "W:REC.DESC") == 0 &&
            strcmp(ebpfMonPublishedGetPut(published, 0)->who, "thread seq") == 0);
    testOk1(published->puts.iocCount == 1 && published->puts.ioc[0].puts == 2 && published->puts.ioc[0].denied == 1);
    testOk1(row->putCount == 1 && row->putTime.secPastEpoch == 1000 && strstr(row->putLast, "W:REC.DESC"));
    ebpfMonPublishedUnlock();
    testOk1(logged == 2 && notified[ebpfMonGroupPuts] == 2 && notified[ebpfMonGroupAutoPuts] == 2 &&
            !notified[ebpfMonGroupClientPuts] && notified[ebpfMonGroupWatch] == 1);

    made = 900;
    publishPut(p, "a", "W:REC", ebpfMonPutUnwritten);
    made = 1000;
    published = ebpfMonPublishedLock();
    testOk(row->putCount == 2 && row->putTime.secPastEpoch == 1000 && strstr(row->putLast, "W:REC.DESC") &&
               strcmp(ebpfMonPublishedGetPut(published, 0)->pv, "W:REC.DESC") == 0 &&
               published->time[ebpfMonGroupWatch].secPastEpoch == 1000 &&
               published->time[ebpfMonGroupPuts].secPastEpoch == 1000,
           "a put that is published late is not the newest");
    ebpfMonPublishedUnlock();

    strcpy(filter.field, "VAL");
    publishPut(p, "a", "X.HOPR", ebpfMonPutOk);
    testOk1(ebpfMonPublishedLock()->puts.count == 3 && logged == 3 && notified[ebpfMonGroupPuts] == 3);
    ebpfMonPublishedUnlock();
    publishPut(p, "a", "X", ebpfMonPutOk);
    testOk(ebpfMonPublishedLock()->puts.count == 4 && logged == 4, "a name without a field means the field VAL");
    ebpfMonPublishedUnlock();

    for (unsigned i = 0; i < EBPFMON_IOCS_MAX + 10; i++) {
        snprintf(name, sizeof(name), "ioc%u", i);
        publishPut(p, name, "X", ebpfMonPutOk);
    }
    published = ebpfMonPublishedLock();
    testOk1(published->puts.of[ebpfMonPutAutomatic].kept == EBPFMON_PUTS_MAX &&
            published->puts.iocCount == EBPFMON_IOCS_MAX);
    testOk(strcmp(published->puts.ioc[EBPFMON_IOCS_MAX - 1].name, "others") == 0 &&
           published->puts.ioc[EBPFMON_IOCS_MAX - 1].puts == 12, "others: %llu",
           (unsigned long long)published->puts.ioc[EBPFMON_IOCS_MAX - 1].puts);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedSetListener(NULL);
}

MAIN(testPublish)
{
    testPlan(0);
    testSlowText();
    testPrinter();
    testLosses();
    testAudit();
    testState();
    testPuts();
    return testDone();
}

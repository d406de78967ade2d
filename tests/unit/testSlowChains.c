/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces as text in CHAIN_LOG: those that come fast are held, and only what is shown is written. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "model/published.h"
#include "publish/slowChains.h"
#include "traceIoc.h"

#define MANY 300
#define STEPS 500

static ebpfMonTargets *targets;
static ebpfMonSlowChains *slow;
static unsigned notified;

static void onChange(ebpfMonGroup group)
{
    notified += group == ebpfMonGroupSlow;
}

static void give(ebpfMonTrace *trace)
{
    ebpfMonTargetsLock(targets);
    if (!ebpfMonSlowChainsAdd(slow, sceneTarget, trace, 0))
        testAbort("the trace is not taken");
    ebpfMonTargetsUnlock(targets);
}

/* A trace of the chain of record "root", which ends at "end" ms. */
static void add(uint32_t root, uint64_t end)
{
    struct ebpfMonChain c = sceneChain("thread", 1, (end - 1) * MS, root);
    struct ebpfMonChainRec rec = { .slot = SCENE_SLOT + root, .time = sceneStamp(c.begin) };
    ebpfMonTrace *trace = ebpfMonTraceNew(sceneTarget);

    ebpfMonTraceAppend(trace, ebpfMonTraceChainNew(sceneTarget, &c, &rec, 1));
    give(trace);
}

static const ebpfMonChainValues *getValues(void)
{
    static ebpfMonChainValues copy;

    copy = ebpfMonPublishedLock()->chains;
    ebpfMonPublishedUnlock();
    return &copy;
}

/* How many traces the text has, from "newest" downwards; -1: it has something else. */
static int countWritten(const char *text, int newest)
{
    int n = 0;

    while (*text) {
        unsigned root;

        if (sscanf(text, "%*s %*s sceneIoc: R%u %*f us", &root) != 1 || root != (unsigned)(newest - n))
            return -1;
        n++;
        while ((text = strchr(text, '\n')) != NULL && *++text == ' ')
            ;
        if (!text) /* the last line is not whole */
            return -1;
    }
    return n;
}

static void testOne(void)
{
    testDiag("one trace, and one that comes soon after it");
    testOk1(ebpfMonSlowChainsGetDue(slow) == UINT64_MAX);
    add(0, 100);
    ebpfMonSlowChainsTick(slow, 1000 * MS, 0);
    testOk(getValues()->slowCount == 1 && countWritten(getValues()->slowText, 0) == 1 && notified == 1,
           "it is written at once");
    add(1, 101);
    ebpfMonSlowChainsTick(slow, 1009 * MS, 0);
    testOk(getValues()->slowCount == 1 && notified == 1 && ebpfMonSlowChainsGetDue(slow) == 1010 * MS,
           "the next one waits");
    ebpfMonSlowChainsTick(slow, 1010 * MS, 0);
    testOk(getValues()->slowCount == 2 && countWritten(getValues()->slowText, 1) == 2 && notified == 2,
           "it is written before the first one");
    testOk1(ebpfMonSlowChainsGetDue(slow) == UINT64_MAX);
}

static epicsTimeStamp readTime(void)
{
    epicsTimeStamp time = ebpfMonPublishedLock()->time[ebpfMonGroupSlow];

    ebpfMonPublishedUnlock();
    return time;
}

/* A chain may end before its source chain, and yet stands behind it. */
static void testTime(void)
{
    struct ebpfMonChain c = sceneChain("thread", 1, 102 * MS, 2), early = sceneChain("cbLow", 2, 103 * MS, 3);
    struct ebpfMonChainRec rec = { .slot = SCENE_SLOT + 2, .time = sceneStamp(c.begin) };
    ebpfMonTrace *trace = ebpfMonTraceNew(sceneTarget);
    epicsTimeStamp wanted, is;

    c.head.ktime = c.begin + 2000 * MS;
    wanted = ebpfMonClockStamp(c.head.ktime);
    ebpfMonTraceAppend(trace, ebpfMonTraceChainNew(sceneTarget, &c, &rec, 1));
    ebpfMonTraceAppend(trace, ebpfMonTraceChainNew(sceneTarget, &early, &rec, 1));
    give(trace);
    ebpfMonSlowChainsTick(slow, 1500 * MS, 0);
    is = readTime();
    testOk(epicsTimeEqual(&is, &wanted), "the time of a trace is that of its last end");
}

static void testMany(void)
{
    int written;

    testDiag("more traces than the PV has room for");
    for (unsigned i = 3; i < MANY; i++)
        add(i, 200 + i);
    ebpfMonSlowChainsTick(slow, 2000 * MS, 0);
    written = countWritten(getValues()->slowText, MANY - 1);
    testOk(getValues()->slowCount == MANY, "all are counted");
    testOk(written > 50 && strlen(getValues()->slowText) > EBPFMON_SLOW_SIZE - 500, "the PV is full: %d traces",
           written);
}

/* Half a trace would be taken for a whole one. */
static void testLong(void)
{
    static const char cut[] = "  ... no room for the rest\n";
    struct ebpfMonChain c = sceneChain("thread", 1, 3000 * MS, 5);
    struct ebpfMonChainRec rec = { .slot = SCENE_SLOT + 5, .time = sceneStamp(c.begin) };
    ebpfMonTrace *trace = ebpfMonTraceNew(sceneTarget);
    const char *text;
    size_t length;

    testDiag("a trace that is longer than the PV");
    for (unsigned i = 0; i < STEPS; i++)
        ebpfMonTraceAppend(trace, ebpfMonTraceChainNew(sceneTarget, &c, &rec, 1));
    give(trace);
    ebpfMonSlowChainsTick(slow, 4000 * MS, 0);
    text = getValues()->slowText;
    length = strlen(text);
    testOk(countWritten(text, 5) == 1 && length > EBPFMON_SLOW_SIZE - 200 && length < EBPFMON_SLOW_SIZE &&
           strcmp(text + length - (sizeof(cut) - 1), cut) == 0, "it is cut, and says so: %.60s", text + length - 60);
    add(6, 4000);
    ebpfMonSlowChainsTick(slow, 5000 * MS, 0);
    testOk(countWritten(getValues()->slowText, 6) == 1, "before the next one, there is no room for it");
}

/* A trace with an asynchronous record that does not complete is written 10 s after its end. */
static void testLate(void)
{
    epicsTimeStamp wanted = ebpfMonClockStamp(60000 * MS), is;

    testDiag("a trace that is complete long after its end");
    add(10, 60000);
    ebpfMonSlowChainsTick(slow, 6000 * MS, 0);
    add(11, 49800);
    ebpfMonSlowChainsTick(slow, 6100 * MS, 0);
    is = readTime();
    testOk(epicsTimeEqual(&is, &wanted), "it does not set the time back: %.1f s",
           epicsTimeDiffInSeconds(&is, &wanted));
    add(12, 70000);
    add(13, 59800);
    ebpfMonSlowChainsTick(slow, 6200 * MS, 0);
    wanted = ebpfMonClockStamp(70000 * MS);
    is = readTime();
    testOk(epicsTimeEqual(&is, &wanted), "nor does the last one of several: %.1f s",
           epicsTimeDiffInSeconds(&is, &wanted));
}

static void testRest(void)
{
    testDiag("the end");
    add(7, 700);
    add(8, 800);
    ebpfMonSlowChainsTick(slow, 2001 * MS, 1);
    testOk(getValues()->slowCount == MANY + 8, "what is held is written");
    add(9, 900);
    ebpfMonSlowChainsFree(slow);
    testOk(sceneTarget->cat->refs == 1, "the traces gave their catalogue back");
}

MAIN(testSlowChains)
{
    ebpfMonTraceWalk *walk = ebpfMonTraceWalkNew();
    ebpfMonTracePrinter *printer;

    testPlan(14);
    targets = ebpfMonTargetsNew();
    sceneNewIoc();
    ebpfMonTargetsAdd(targets, sceneTarget);
    printer = ebpfMonTracePrinterNew(targets, NULL);
    slow = ebpfMonSlowChainsNew(targets, printer, walk);
    ebpfMonPublishedSetListener(onChange);
    testOne();
    testTime();
    testMany();
    testLong();
    testLate();
    testRest();
    ebpfMonPublishedSetListener(NULL);
    ebpfMonTracePrinterStop(printer);
    ebpfMonTracePrinterFree(printer);
    ebpfMonTraceWalkFree(walk);
    return testDone();
}

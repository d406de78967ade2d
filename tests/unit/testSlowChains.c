/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces as text in CHAIN_LOG: those that come fast are held, and only what is shown is written. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/published.h"
#include "publish/slowChains.h"
#include "traceIoc.h"

#define MANY 300

static ebpfMonTargets *targets;
static ebpfMonSlowChains *slow;
static unsigned notified;

static void onChange(ebpfMonGroup group)
{
    notified += group == ebpfMonGroupSlow;
}

/* A trace of the chain of record "root", which ends at "end" ms. */
static void add(uint32_t root, uint64_t end)
{
    struct ebpfMonChain c = sceneChain("thread", 1, (end - 1) * MS, root);
    struct ebpfMonChainRec rec = { .slot = SCENE_SLOT + root, .time = sceneStamp(c.begin) };
    ebpfMonTrace *trace = ebpfMonTraceNew(sceneTarget);

    ebpfMonTraceAppend(trace, ebpfMonTraceChainNew(sceneTarget, &c, &rec, 1));
    ebpfMonTargetsLock(targets);
    if (!ebpfMonSlowChainsAdd(slow, sceneTarget, trace, 0))
        testAbort("the trace is not taken");
    ebpfMonTargetsUnlock(targets);
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

static void testMany(void)
{
    int written;

    testDiag("more traces than the PV has room for");
    for (unsigned i = 2; i < MANY; i++)
        add(i, 200 + i);
    ebpfMonSlowChainsTick(slow, 2000 * MS, 0);
    written = countWritten(getValues()->slowText, MANY - 1);
    testOk(getValues()->slowCount == MANY, "all are counted");
    testOk(written > 50 && strlen(getValues()->slowText) > EBPFMON_SLOW_SIZE - 500, "the PV is full: %d traces",
           written);
}

static void testRest(void)
{
    testDiag("the end");
    add(7, 700);
    add(8, 800);
    ebpfMonSlowChainsTick(slow, 2001 * MS, 1);
    testOk(getValues()->slowCount == MANY + 2, "what is held is written");
    add(9, 900);
    ebpfMonSlowChainsFree(slow);
    testOk(sceneTarget->cat->refs == 1, "the traces gave their catalogue back");
}

MAIN(testSlowChains)
{
    ebpfMonTraceWalk *walk = ebpfMonTraceWalkNew();
    ebpfMonTracePrinter *printer;

    testPlan(9);
    targets = ebpfMonTargetsNew();
    sceneNewIoc();
    ebpfMonTargetsAdd(targets, sceneTarget);
    printer = ebpfMonTracePrinterNew(targets, NULL);
    slow = ebpfMonSlowChainsNew(targets, printer, walk);
    ebpfMonPublishedSetListener(onChange);
    testOne();
    testMany();
    testRest();
    ebpfMonPublishedSetListener(NULL);
    ebpfMonTracePrinterStop(printer);
    ebpfMonTracePrinterFree(printer);
    ebpfMonTraceWalkFree(walk);
    return testDone();
}

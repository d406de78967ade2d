/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk through a trace: the records and chains that it visits, their order, and the facts that the visitor gets. */
#include <stdarg.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traceWalk.h"
#include "traceIoc.h"

static char visits[4000]; /* the visits, in a short form */
static unsigned recordsLeft; /* … until the visitor ends the walk */

static void note(const char *fmt, ...) __attribute__((format(__printf__, 1, 2)));

static void note(const char *fmt, ...)
{
    size_t at = strlen(visits);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(visits + at, sizeof(visits) - at, fmt, ap);
    va_end(ap);
}

/* "[R5+R1" completes R1, "[R5<R1" was handed over by R1, "[R5<" by the chain itself; the number is the level. */
static int enterChain(void *arg, const ebpfMonWalkChain *c)
{
    (void)arg;
    note("[R%u%s", c->chain->chain.rootSlot, !c->above ? "" : c->completes ? "+" : "<");
    if (c->above && c->nodeAbove != EBPFMON_NO_PARENT)
        note("R%u", c->above->shape->record[c->nodeAbove]);
    note(":%u ", c->level);
    return 0;
}

/* Depth, record, link; "~": it still processes, "~R": completed by a chain of that root, "*": its chain's root,
 * "=": it stands above, too. */
static int enterRecord(void *arg, const ebpfMonWalkChain *c, const ebpfMonWalkRecord *r)
{
    (void)arg;
    (void)c;
    note("%u%s%s:R%u%s", r->depth, r->isRoot ? "*" : "", r->via, r->index, r->rec ? "" : "~");
    if (r->completedBy)
        note("%u", (unsigned)r->completedBy->chain.head.tid);
    note("%s ", r->isRepeated ? "=" : "");
    return !--recordsLeft;
}

static const ebpfMonTraceVisitor visitor = { .enterChain = enterChain, .enterRecord = enterRecord };

static ebpfMonTrace *newTrace(void)
{
    ebpfMonTrace *trace = ebpfMonTraceNew(sceneTarget);

    visits[0] = 0;
    recordsLeft = 10000;
    return trace;
}

/* A chain of "root" by thread "tid", which processed these records (-1 ends the list) and left "async" processing. */
static ebpfMonTraceChain *addChain(ebpfMonTrace *trace, uint32_t tid, uint32_t root, int async, const int *records)
{
    struct ebpfMonChain c = sceneChain("thread", tid, (1000 + 10 * tid) * MS, root);
    static struct ebpfMonChainRec rec[100];
    ebpfMonTraceChain *chain;
    uint32_t n = 0;

    for (; records[n] >= 0; n++)
        rec[n] = (struct ebpfMonChainRec){ .slot = SCENE_SLOT + (uint32_t)records[n],
                                           .time = sceneStamp(c.begin + 10 * US * (n + 1)) };
    if (async >= 0)
        c.async[0] = SCENE_SLOT + (uint32_t)async + 1;
    chain = ebpfMonTraceChainNew(sceneTarget, &c, rec, n);
    ebpfMonTraceAppend(trace, chain);
    return chain;
}

#define CHAIN(trace, tid, root, async, ...) addChain(trace, tid, root, async, (const int[]){ __VA_ARGS__, -1 })

static void completes(ebpfMonTraceChain *c, const ebpfMonTraceChain *source)
{
    c->chain.causeTid = source->chain.head.tid;
    c->chain.causeBegin = source->chain.begin;
}

static void isHandedOver(ebpfMonTraceChain *c, const ebpfMonTraceChain *source)
{
    c->source = ebpfMonTraceChainGetId(source);
}

static void expect(ebpfMonTraceWalk *walk, ebpfMonTrace *trace, const char *wanted, const char *what)
{
    ebpfMonTraceWalkRun(walk, trace, &visitor, NULL);
    testOk(strcmp(visits, wanted) == 0, "%s", what);
    if (strcmp(visits, wanted) != 0)
        testDiag("is     %s\nwanted %s", visits, wanted);
    ebpfMonTraceFree(trace);
}

static void oneChain(ebpfMonTraceWalk *walk)
{
    ebpfMonTrace *trace = newTrace();

    CHAIN(trace, 1, 0, 5, 0, 1, 2, 3);
    expect(walk, trace, "[R0:0 0*:R0 1FLNK:R1 2FLNK:R2 1OUT:R3 1OUT:R5~ ",
           "records below those that made them process");
    trace = newTrace();
    CHAIN(trace, 1, 0, -1, 0, 1, 2, 30);
    recordsLeft = 2;
    expect(walk, trace, "[R0:0 0*:R0 1FLNK:R1 ", "the visitor ends the walk");
}

static void completed(ebpfMonTraceWalk *walk)
{
    ebpfMonTrace *trace = newTrace();
    ebpfMonTraceChain *a, *b, *c;

    a = CHAIN(trace, 1, 0, 5, 0, 1);
    b = CHAIN(trace, 2, 5, -1, 6);
    completes(b, a);
    b->chain.flags = EBPFMON_CHAIN_BUSY;
    c = CHAIN(trace, 3, 5, -1, 5, 6);
    completes(c, b);
    expect(walk, trace, "[R0:0 0*:R0 1FLNK:R1 1OUT:R5~2 [R5+R5:1 1*:R5~3= [R5+R5:2 2*:R5 3FLNK:R6 2FLNK:R6 ",
           "what completes an asynchronous record in two steps");
    trace = newTrace();
    a = CHAIN(trace, 1, 0, 5, 0, 1);
    b = CHAIN(trace, 2, 1, -1, 1);
    completes(b, a);
    expect(walk, trace, "[R0:0 0*:R0 1FLNK:R1 1OUT:R5~ ", "a record that is complete is not completed");
}

static void handedOver(ebpfMonTraceWalk *walk)
{
    ebpfMonTrace *trace = newTrace();
    ebpfMonTraceChain *a, *b;

    a = CHAIN(trace, 1, 0, -1, 0, 1, 2, 3);
    isHandedOver(CHAIN(trace, 2, 1, -1, 1), a);
    isHandedOver(CHAIN(trace, 3, 2, -1, 2), a);
    b = CHAIN(trace, 4, 30, -1, 30);
    isHandedOver(b, a);
    isHandedOver(CHAIN(trace, 5, 30, -1, 30), b);
    isHandedOver(CHAIN(trace, 6, 0, -1, 0), a);
    expect(walk, trace, "[R0:0 0*:R0 1FLNK:R1 2FLNK:R2 [R2<R2:1 3*:R2 [R1<R1:1 2*:R1 1OUT:R3 [R0<R0:1 1*:R0 "
           "[R30<:1 1*:R30 [R30<R30:2 2*:R30 ", "what was handed over comes after what its record made process");
    trace = newTrace();
    a = CHAIN(trace, 1, 0, -1, 0, 30, 31);
    isHandedOver(CHAIN(trace, 2, 0, -1, 0), a);
    isHandedOver(CHAIN(trace, 3, 30, -1, 30), a);
    expect(walk, trace, "[R0:0 0*:R0 1:R30 [R30<R30:1 2*:R30 1:R31 [R0<R0:1 1*:R0 ",
           "… also if it is not known what made the last records process");
}

/* The deepest trace: each chain hands over the next one. */
static void deep(ebpfMonTraceWalk *walk)
{
    ebpfMonTrace *trace = newTrace();
    ebpfMonTraceChain *c = CHAIN(trace, 1, 30, -1, 30), *next;

    for (unsigned i = 1; i < EBPFMON_TRACE_CHAINS; i++) {
        next = CHAIN(trace, 1 + i, 31, -1, 31);
        isHandedOver(next, c);
        c = next;
    }
    ebpfMonTraceWalkRun(walk, trace, &visitor, NULL);
    testOk(strstr(visits, "[R31<R31:63 63*:R31 ") != NULL, "64 chains below each other");
    ebpfMonTraceFree(trace);
}

MAIN(testTraceWalk)
{
    ebpfMonTraceWalk *walk = ebpfMonTraceWalkNew();

    testPlan(8);
    sceneNewIoc();
    sceneTarget->iocId = 1;
    sceneLink(sceneTarget->cat, 0, 1, sceneFlnk);
    sceneLink(sceneTarget->cat, 1, 2, sceneFlnk);
    sceneLink(sceneTarget->cat, 0, 3, sceneOut);
    sceneLink(sceneTarget->cat, 0, 5, sceneOut);
    sceneLink(sceneTarget->cat, 5, 6, sceneFlnk);
    oneChain(walk);
    completed(walk);
    handedOver(walk);
    deep(walk);
    testOk(sceneTarget->cat->refs == 1, "the traces gave their catalogue back");
    ebpfMonTraceWalkFree(walk);
    return testDone();
}

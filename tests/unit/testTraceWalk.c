/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traceWalk.h"
#include "traceIoc.h"

/* --- TraceWalk --- */

/* The walk through a trace: the records and chains that it visits, their order, and the facts that the visitor gets. */

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

static void runTraceWalk(void)
{
    ebpfMonTraceWalk *walk = ebpfMonTraceWalkNew();

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
}

/* --- ChainTree --- */

/* Which record made which process: known trees are found again from times and links. */

#define N 300

static uint32_t seed = 12345;

static uint32_t dice(uint32_t sides)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % sides;
}

static void knownForms(void)
{
    ebpfMonTreeNode n[4] = {{.time = 0}, {.time = 10}, {.time = 20}, {.time = 30}};
    ebpfMonTreeEdge chain[] = {{0, 1, 7, 0}, {1, 2, 8, 0}, {2, 3, 9, 0}};
    ebpfMonTreeEdge pull[] = {{2, 0, 1, 1}, {2, 1, 2, 1}, {2, 3, 3, 0}}; /* 2 is the root: it reads 0 and 1 first */
    ebpfMonTreeEdge diamond[] = {{0, 1, 1, 0}, {0, 2, 2, 0}, {1, 3, 3, 0}, {2, 3, 4, 0}};
    ebpfMonTreeEdge mutual[] = {{0, 1, 1, 0}, {1, 2, 2, 0}, {2, 1, 3, 1}, {2, 3, 4, 0}, {3, 2, 5, 1}};
    ebpfMonTreeEdge late[] = {{3, 1, 1, 0}};
    uint32_t order[4];

    testOk1(ebpfMonTreeMake(n, 4, 0, chain, 3, order) == 0);
    testOk(n[0].parent == EBPFMON_NO_PARENT && n[1].parent == 0 && n[2].parent == 1 && n[3].parent == 2,
           "a chain of four records is found");
    testOk(n[3].depth == 3 && n[3].via == 9 && order[0] == 0 && order[3] == 3,
           "depth, link and order of its records are right");
    ebpfMonTreeMake(n, 4, 2, pull, 3, order);
    testOk(n[0].parent == 2 && n[1].parent == 2 && n[3].parent == 2 && n[2].parent == EBPFMON_NO_PARENT,
           "records that the root processes by input links are below the root");
    testOk(order[0] == 2 && order[1] == 0 && order[2] == 1 && order[3] == 3,
           "... and are listed after it, in their order");
    ebpfMonTreeMake(n, 4, 0, diamond, 4, order);
    testOk(n[3].parent == 2 && n[3].via == 4, "if two links lead to a record, the later one processed it");
    ebpfMonTreeMake(n, 4, 0, mutual, 5, order);
    testOk(n[1].parent != EBPFMON_NO_PARENT && n[2].parent != EBPFMON_NO_PARENT && order[0] == 0,
           "records that link to each other do not become their own parents");
    ebpfMonTreeMake(n, 4, 0, late, 1, order);
    testOk(n[1].parent == EBPFMON_NO_PARENT && n[1].depth == 1, "a link cannot act before its record was stamped");
    ebpfMonTreeMake(n, 1, 0, NULL, 0, order);
    testOk(order[0] == 0 && n[0].depth == 0, "a root without other records");
}

/* A random tree, numbered in the order of time, with more links that made nothing process. */
static int randomTree(void)
{
    static ebpfMonTreeNode n[N];
    static ebpfMonTreeEdge e[2 * N];
    static uint32_t parent[N], order[N];
    static int seen[N];
    uint32_t edges = 0;

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < N; i++)
        n[i].time = 10 * i;
    for (uint32_t i = 1; i < N; i++) {
        parent[i] = i - 1 - dice(i < 5 ? i : 5);
        e[edges++] = (ebpfMonTreeEdge){parent[i], i, i, 0};
        if (parent[i] > 0 && dice(3) == 0) /* an earlier record with a link to it that is, for example, not PP any
                                            * more */
            e[edges++] = (ebpfMonTreeEdge){dice(parent[i]), i, 0, 0};
    }
    ebpfMonTreeMake(n, N, 0, e, edges, order);
    for (uint32_t i = 1; i < N; i++)
        if (n[i].parent != parent[i] || n[i].via != i || n[i].depth != n[n[i].parent].depth + 1)
            return 0;
    for (uint32_t i = 0; i < N; i++) {
        if (order[i] >= N || seen[order[i]] || (i && !seen[n[order[i]].parent]))
            return 0; /* each once, after its parent */
        seen[order[i]] = 1;
    }
    return 1;
}

/* Random links: the result has no circle, and each record once. */
static int anything(void)
{
    static ebpfMonTreeNode n[N];
    static ebpfMonTreeEdge e[4 * N];
    static uint32_t order[N];
    static int seen[N];

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < N; i++)
        n[i].time = dice(3) ? 10 * i : 10 * (i - i % 2);
    for (uint32_t k = 0; k < 4 * N; k++)
        e[k] = (ebpfMonTreeEdge){dice(N + 2), dice(N + 2), k, dice(3)};
    ebpfMonTreeMake(n, N, dice(N), e, 4 * N, order);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t steps = 0;

        if (order[i] >= N || seen[order[i]]++)
            return 0;
        for (uint32_t at = i; at != EBPFMON_NO_PARENT; at = n[at].parent)
            if (steps++ > N)
                return 0;
    }
    return 1;
}

static void runChainTree(void)
{
    int trees = 0, others = 0;

    knownForms();
    for (int i = 0; i < 200; i++) {
        trees += randomTree();
        others += anything();
    }
    testOk(trees == 200, "random trees found again: %d of 200", trees);
    testOk(others == 200, "random links: no circle, every record once: %d of 200", others);
}

MAIN(testTraceWalk)
{
    testPlan(8 + 11);
    runTraceWalk();
    runChainTree();
    return testDone();
}

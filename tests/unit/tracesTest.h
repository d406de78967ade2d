/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the tests of trace/traces.h: traces of an invented IOC, the trace that their sink got last, and the events
 * that they get. The test program calls tracesTestBegin first, tracesTestEnd last, and setUp before each scene.
 */
#ifndef TRACESTEST_H
#define TRACESTEST_H

#include <epicsUnitTest.h>

#include "put/threadPuts.h"
#include "trace/traces.h"
#include "traceIoc.h"

#define ASYNC_NS 10000000000ull /* an asynchronous record is waited for */

static ebpfMonTargets *targets;
static ebpfMonLinkMessages *messages;
static ebpfMonThreadPuts *threadPuts;
static ebpfMonTraces *traces;

/* The trace that was finished last, and the number of finished traces. */
static struct {
    unsigned count, chains, records;
    int isIncomplete, hasPut, isBelowSource, hasCatalogue;
    uint64_t begin;
    ebpfMonChainId cause;
} heard;
static int exports; /* the answer of isExporting */
static struct ebpfMonThread thread; /* the only one that "eachThread" knows; tgid 0: none */
static uint32_t threadId;

static inline int isExporting(void *arg)
{
    return exports;
}

static inline int onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    if (arg != &heard || t != sceneTarget)
        testAbort("the sink gets another argument");
    heard.count++;
    heard.chains = trace->chains;
    heard.records = trace->records;
    heard.isIncomplete = trace->isIncomplete;
    heard.hasPut = trace->put != NULL;
    heard.hasCatalogue = trace->cat == t->cat;
    heard.begin = trace->first->chain.begin;
    heard.isBelowSource = trace->last->source.iocId && !trace->last->chain.causeBegin;
    heard.cause = ebpfMonTraceGetCause(trace);
    trace->hasId = exports; /* as the exporter of spans does */
    trace->id[0] = (uint8_t)heard.count;
    return 0;
}

static inline unsigned countOpen(void)
{
    return ebpfMonTracesCountOpen(traces);
}

static inline void tick(uint64_t now)
{
    ebpfMonTracesTick(traces, now, 0);
}

static inline void finishAll(void)
{
    ebpfMonTracesTick(traces, 0, 1);
}

static inline void eachThread(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg)
{
    if (thread.tgid)
        each(arg, threadId, &thread);
}

/* This thread of the IOC holds the lock set of a chain from "begin" on; 0: none does. */
static inline void holds(uint32_t tid, uint64_t begin)
{
    threadId = tid;
    thread = (struct ebpfMonThread){ .tgid = begin ? (uint32_t)sceneTarget->pid : 0, .heldCount = 1 };
    thread.held[0].begin = begin;
}

static uint64_t eventsLost;

static inline uint64_t countLost(void *arg)
{
    return eventsLost;
}

/* Begins with "count" records and nothing else. */
static inline void setUp(uint32_t count)
{
    ebpfMonTracesUses uses = { .targets = targets, .threadPuts = threadPuts, .linkMessages = messages,
                               .exportsSpans = isExporting, .eachThread = eachThread,
                               .countLost = countLost };

    ebpfMonTracesFree(traces);
    traces = ebpfMonTracesNew(&uses, onTrace, &heard);
    ebpfMonCatalogueRelease(sceneTarget->cat);
    sceneTarget->cat = sceneNewCatalogue(count);
    sceneTarget->slot = SCENE_SLOT;
    exports = 0;
    holds(0, 0);
    memset(&heard, 0, sizeof(heard));
}

/* A chain of "root" from "begin", 1 ms long, that left "async" processing (UINT32_MAX: none). */
static inline struct ebpfMonChain chainOf(uint32_t tid, uint64_t begin, uint32_t root, uint32_t async)
{
    struct ebpfMonChain c = {
        .head = { .kind = EBPFMON_EV_CHAIN, .tid = tid, .iocId = sceneTarget->iocId, .ktime = begin + MS },
        .begin = begin, .rootSlot = sceneTarget->slot + root,
    };

    if (async != UINT32_MAX)
        c.async[0] = sceneTarget->slot + async + 1;
    return c;
}

static inline void addChain(struct ebpfMonChain c, uint32_t count)
{
    static struct ebpfMonChainRec rec[2048];

    for (uint32_t i = 0; i < count; i++)
        rec[i] = (struct ebpfMonChainRec){ .slot = c.rootSlot, .time = (uint64_t)(count - i) << 32 };
    c.total = count;
    ebpfMonTracesAddChain(traces, sceneTarget, &c, rec, count);
    ebpfMonTracesFinishChain(traces);
}

static inline struct ebpfMonChain second(struct ebpfMonChain first, uint32_t tid, uint64_t begin, uint32_t root)
{
    struct ebpfMonChain c = chainOf(tid, begin, root, UINT32_MAX);

    c.causeTid = first.head.tid;
    c.causeBegin = first.begin;
    return c;
}

/* "chain" handed over "next". The kernel part reports this just before "next". */
static inline void takes(struct ebpfMonChain chain, struct ebpfMonChain next)
{
    struct ebpfMonHandOverEvent ev = {.head = next.head, .what.source = {.begin = chain.begin, .tid = chain.head.tid}};

    ev.what.source.root = sceneTarget->cat->rec[chain.rootSlot - sceneTarget->slot].addr;
    ebpfMonTracesBeginHandOver(traces, &ev);
}

/* Thread "tid" has finished the hand-over of "chain", and made "chains" chains from it. */
static inline void isDoneBy(struct ebpfMonChain chain, uint32_t tid, uint32_t chains)
{
    struct ebpfMonHandOverEvent ev = { .head = { .iocId = sceneTarget->iocId, .tid = tid }, .chains = chains,
                                       .what.source = { .begin = chain.begin, .tid = chain.head.tid } };

    ebpfMonTracesEndHandOver(traces, &ev);
}

static inline void isDone(struct ebpfMonChain chain)
{
    isDoneBy(chain, 0, 0);
}

static inline struct ebpfMonPutEvent putOf(uint32_t tid, uint64_t at, uint64_t id, uint32_t record)
{
    return (struct ebpfMonPutEvent){
        .head = { .tid = tid, .iocId = sceneTarget->iocId, .ktime = at }, .id = id, .putKind = EBPFMON_PUT_VALUE,
        .precord = sceneTarget->cat->rec[record].addr, .root = sceneTarget->cat->rec[record].addr,
    };
}

static inline void tracesTestBegin(void)
{
    targets = ebpfMonTargetsNew();
    messages = ebpfMonLinkMessagesNew();
    threadPuts = ebpfMonThreadPutsNew();
    sceneNewIoc();
    ebpfMonTargetsAdd(targets, sceneTarget);
}

static inline void tracesTestEnd(void)
{
    ebpfMonTracesFree(traces);
    ebpfMonThreadPutsFree(threadPuts);
    ebpfMonLinkMessagesFree(messages);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "put/putWriter.h"
#include "trace/chainParts.h"
#include "put/putDecode.h"
#include "monitor/monitor.h"
#include "trace/handOvers.h"
#include "put/threadPuts.h"
#include "model/losses.h"
#include "put/pendingPuts.h"
#include "trace/linkMessages.h"
#include "publish/slowChains.h"
#include "trace/traceSpans.h"
#include "trace/traces.h"
#include "probe/loader.h"

/* But for changed links the kernel half does not wake us: a wake-up costs the target more than the event. So we look this often;
 * it is the delay of a put. */
#define POLL_MS     4

#define CAUSES  64
#define STOP_SECONDS 5.0

struct ebpfMonEventThread {
    ebpfMonMonitor *m;
    ebpfMonWorker  *worker;
    struct ebpfMonCauseEvent cause[CAUSES]; /* what a thread of an IOC said of the put that it makes next */
};

static void onCause(ebpfMonEventThread *e, const struct ebpfMonCauseEvent *ev, size_t size)
{
    if (size >= sizeof(*ev))
        e->cause[ev->head.tid % CAUSES] = *ev;
}

static void onCaLink(ebpfMonEventThread *e, const struct ebpfMonCauseEvent *ev, size_t size)
{
    ebpfMonLinkWrite link;
    ebpfMonTarget *t;
    int known;

    if (size < sizeof(*ev))
        return;
    ebpfMonTargetsLock(e->m->targets);
    t = ebpfMonTargetsFindById(e->m->targets, ev->head.iocId);
    known = t && ebpfMonPutWriterFindLinkWrite(t, ev, &link);
    ebpfMonTargetsUnlock(e->m->targets);
    if (!known)
        return;
    ebpfMonLinkWritesAdd(&link);
    ebpfMonLinkMessagesAdd(&link);
}

static void onPut(ebpfMonEventThread *e, const struct ebpfMonPutEvent *ev, size_t size)
{
    struct ebpfMonCauseEvent *why;
    ebpfMonPendingPut *p;
    ebpfMonTarget *t;
    int ok = 0, links = 0, wait = 0, early = 0;
    char putBy[80] = "";

    if (size < sizeof(*ev))
        return;
    why = &e->cause[ev->head.tid % CAUSES];
    if (why->head.tid != ev->head.tid || why->head.iocId != ev->head.iocId || why->put != (uint32_t)ev->id)
        why = NULL;
    p = ebpfMonPendingPutsNew();
    ebpfMonTargetsLock(e->m->targets);
    t = ebpfMonTargetsFindById(e->m->targets, ev->head.iocId);
    if (t) {
        ok = ebpfMonPutDecode(t, ev, size, why, &p->put, &links);
        wait = (ev->site == EBPFMON_SITE_PUT && (t->probesOn & EBPFMON_BIT(ebpfMonProgPutReturn))) ||
               ev->site == EBPFMON_SITE_LINK;
        early = !t->indexed && (p->put.through == ebpfMonByInit || p->put.through == ebpfMonByThread);
    }
    ebpfMonTargetsUnlock(e->m->targets);
    if (why)
        why->head.tid = 0;
    if (!ok) {
        ebpfMonLossesAdd(ebpfMonLossGone);
        ebpfMonPendingPutsDrop(p);
        return;
    }
    if (links)
        ebpfMonRequestsAddLinks(e->m->watching.requests, ev->head.iocId, ev->precord);
    ebpfMonPutWriterDescribeClient(&p->put, putBy, sizeof(putBy));
    if (p->put.through != ebpfMonByLink) /* which a chain does, and which begins none */
        ebpfMonThreadPutsAdd(ev, putBy);
    p->tid = ev->head.tid;
    p->id = ev->id;
    p->since = ev->head.ktime;
    p->iocId = ev->head.iocId;
    p->early = early ? ev->addr : 0;
    p->linkAt = ev->site == EBPFMON_SITE_LINK ? ev->pfield : 0;
    p->at = (ebpfMonPutPlace){
        .pfldDes = ev->pfldDes, .precord = ev->precord, .fieldType = ev->fieldType, .fieldSize = ev->fieldSize,
    };
    memset(&p->key, 0, sizeof(p->key));
    if (!ev->root || ev->root == ev->precord) /* else it is made in another record's chain: no client's own */
        p->key.peer = ev->who.peer;
    p->key.at = ev->head.ktime;
    p->key.seq = ev->seq;
    p->key.seqKind = ev->seqKind;
    if (wait)
        ebpfMonPendingPutsAwaitResult(p);
    else
        ebpfMonPendingPutsComplete(p);
}

static void onResult(ebpfMonEventThread *e, const struct ebpfMonResultEvent *ev, size_t size)
{
    ebpfMonPendingPut *p;
    ebpfMonTarget *t;

    if (size < sizeof(*ev) || !(p = ebpfMonPendingPutsTake(ev->head.tid, ev->id)))
        return;
    p->put.result = ev->status ? ebpfMonPutFailed : ebpfMonPutOk;
    p->put.status = (long)ev->status;
    if (!ev->status) {
        ebpfMonTargetsLock(e->m->targets);
        t = ebpfMonTargetsFindById(e->m->targets, ev->head.iocId);
        if (t)
            ebpfMonPutDecodeResult(t, &p->at, ev, &p->put);
        ebpfMonTargetsUnlock(e->m->targets);
    }
    ebpfMonPendingPutsComplete(p);
}

static void onEvent(void *arg, const struct ebpfMonHead *head, size_t size)
{
    ebpfMonEventThread *e = arg;
    ebpfMonTarget *t;

    switch (head->kind) {
    case EBPFMON_EV_PUT:
        onPut(e, (const struct ebpfMonPutEvent *)head, size);
        break;
    case EBPFMON_EV_RESULT:
        onResult(e, (const struct ebpfMonResultEvent *)head, size);
        break;
    case EBPFMON_EV_CAUSE:
        onCause(e, (const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CALINK:
        onCaLink(e, (const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CHAIN:
        ebpfMonTargetsLock(e->m->targets);
        t = ebpfMonTargetsFindById(e->m->targets, head->iocId);
        if (t)
            ebpfMonChainPartsAdd(t, (const struct ebpfMonChainEvent *)head, size);
        ebpfMonTargetsUnlock(e->m->targets);
        break;
    case EBPFMON_EV_HANDOVER_BEGIN:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonHandOversBegin((const struct ebpfMonHandOverEvent *)head);
        break;
    case EBPFMON_EV_HANDOVER_END:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesEndHandOver((const struct ebpfMonHandOverEvent *)head);
        break;
    case EBPFMON_EV_EXEC:
        ebpfMonFollowerNoteExec(e->m->watching.follower, (pid_t)head->tgid);
        break;
    case EBPFMON_EV_EXIT:
        ebpfMonFollowerNoteExit(e->m->watching.follower);
        break;
    }
}

static void onTrace(ebpfMonTarget *t, ebpfMonTrace *trace)
{
    ebpfMonSlowChainsPublish(ebpfMonTheSlowChains, t, trace);
    ebpfMonTraceSpansExport(t, trace);
}

static void runEventThread(ebpfMonWorker *worker, void *arg)
{
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t upTo = ebpfMonClockMonotonic();

        if (ebpfMonKernelReadEvents(POLL_MS, onEvent, arg) < 0)
            ebpfMonWorkerWait(worker, 0.1);
        ebpfMonLinkMessagesMatch(upTo);
        ebpfMonPendingPutsTick(ebpfMonClockMonotonic(), 0);
        ebpfMonTracesTick(ebpfMonClockMonotonic(), 0);
    }
    ebpfMonPendingPutsTick(ebpfMonClockMonotonic(), 1);
    ebpfMonTracesTick(ebpfMonClockMonotonic(), 1);
}

ebpfMonEventThread *ebpfMonEventThreadStart(ebpfMonMonitor *m)
{
    ebpfMonEventThread *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->m = m;
    ebpfMonTracesStart(onTrace);
    e->worker = ebpfMonWorkerStart("ebpfMonEvent", epicsThreadPriorityMedium, runEventThread, e);
    if (!e->worker) {
        free(e);
        return NULL;
    }
    return e;
}

int ebpfMonEventThreadStop(ebpfMonEventThread *e)
{
    if (!e)
        return 0;
    if (ebpfMonWorkerStop(&e->worker, STOP_SECONDS))
        return -1;
    free(e);
    return 0;
}

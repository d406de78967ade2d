/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <epicsEvent.h>
#include <epicsThread.h>

#include "monitor/asked.h"
#include "monitor/author.h"
#include "monitor/chains.h"
#include "monitor/decode.h"
#include "monitor/events.h"
#include "monitor/handed.h"
#include "monitor/lastPuts.h"
#include "monitor/losses.h"
#include "monitor/pending.h"
#include "monitor/sends.h"
#include "monitor/slow.h"
#include "monitor/spans.h"
#include "monitor/target.h"
#include "monitor/traces.h"
#include "monitor/targets.h"
#include "probe/loader.h"

/* But for changed links the kernel half does not wake us: a wake-up costs the target more than the event. So we look this often;
 * it is the delay of a put. */
#define POLL_MS     4

#define CAUSES  64

/* What a thread said of the put that it makes next. */
static struct ebpfMonCauseEvent cause[CAUSES];
static epicsEventId ended;
static volatile int stopping;

static uint64_t nowNs(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void onCause(const struct ebpfMonCauseEvent *ev, size_t size)
{
    if (size >= sizeof(*ev))
        cause[ev->head.tid % CAUSES] = *ev;
}

static void onCaLink(const struct ebpfMonCauseEvent *ev, size_t size)
{
    ebpfMonCaLink link;
    ebpfMonTarget *t;
    int known;

    if (size < sizeof(*ev))
        return;
    ebpfMonTargetsLock();
    t = ebpfMonTargetById(ev->head.iocId);
    known = t && ebpfMonAuthorCaLink(t, ev, &link);
    ebpfMonTargetsUnlock();
    if (!known)
        return;
    ebpfMonCaLinkSent(&link);
    ebpfMonSendsAdd(&link);
}

static void onPut(const struct ebpfMonPutEvent *ev, size_t size)
{
    struct ebpfMonCauseEvent *why;
    ebpfMonPending *p;
    ebpfMonTarget *t;
    int ok = 0, links = 0, wait = 0, early = 0;
    char putBy[80] = "";

    if (size < sizeof(*ev))
        return;
    why = &cause[ev->head.tid % CAUSES];
    if (why->head.tid != ev->head.tid || why->head.iocId != ev->head.iocId || why->put != (uint32_t)ev->id)
        why = NULL;
    p = ebpfMonPendingNew();
    ebpfMonTargetsLock();
    t = ebpfMonTargetById(ev->head.iocId);
    if (t) {
        ok = ebpfMonDecodePut(t, ev, size, why, &p->put, &links);
        wait = (ev->site == EBPFMON_SITE_PUT && (t->att.on & EBPFMON_BIT(ebpfMonProgPutReturn))) ||
               ev->site == EBPFMON_SITE_LINK;
        early = !t->indexed && (p->put.through == ebpfMonByInit || p->put.through == ebpfMonByThread);
    }
    ebpfMonTargetsUnlock();
    if (why)
        why->head.tid = 0;
    if (!ok) {
        ebpfMonLossAdd(ebpfMonLossGone);
        ebpfMonPendingDrop(p);
        return;
    }
    if (links)
        ebpfMonAskedLinks(ev->head.iocId, ev->precord);
    ebpfMonAuthorPutBy(&p->put, putBy, sizeof(putBy));
    if (p->put.through != ebpfMonByLink) /* which a chain does, and which begins none */
        ebpfMonLastPutSeen(ev, putBy);
    p->tid = ev->head.tid;
    p->id = ev->id;
    p->since = ev->head.ktime;
    p->iocId = ev->head.iocId;
    p->early = early ? ev->addr : 0;
    p->linkAt = ev->site == EBPFMON_SITE_LINK ? ev->pfield : 0;
    p->at = (ebpfMonAfter){
        .pfldDes = ev->pfldDes, .precord = ev->precord, .fieldType = ev->fieldType, .fieldSize = ev->fieldSize,
    };
    memset(&p->key, 0, sizeof(p->key));
    if (!ev->root || ev->root == ev->precord) /* else it is made in another record's chain: no client's own */
        p->key.peer = ev->who.peer;
    p->key.at = ev->head.ktime;
    p->key.seq = ev->seq;
    p->key.seqKind = ev->seqKind;
    if (wait)
        ebpfMonPendingResultAwaited(p);
    else
        ebpfMonPendingComplete(p);
}

static void onResult(const struct ebpfMonResultEvent *ev, size_t size)
{
    ebpfMonPending *p;
    ebpfMonTarget *t;

    if (size < sizeof(*ev) || !(p = ebpfMonPendingTake(ev->head.tid, ev->id)))
        return;
    p->put.result = ev->status ? ebpfMonPutFailed : ebpfMonPutOk;
    p->put.status = (long)ev->status;
    if (!ev->status) {
        ebpfMonTargetsLock();
        t = ebpfMonTargetById(ev->head.iocId);
        if (t)
            ebpfMonDecodeAfter(t, &p->at, ev, &p->put);
        ebpfMonTargetsUnlock();
    }
    ebpfMonPendingComplete(p);
}

static void onEvent(void *arg, const struct ebpfMonHead *head, size_t size)
{
    ebpfMonTarget *t;

    (void)arg;
    switch (head->kind) {
    case EBPFMON_EV_PUT:
        onPut((const struct ebpfMonPutEvent *)head, size);
        break;
    case EBPFMON_EV_RESULT:
        onResult((const struct ebpfMonResultEvent *)head, size);
        break;
    case EBPFMON_EV_CAUSE:
        onCause((const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CALINK:
        onCaLink((const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CHAIN:
        ebpfMonTargetsLock();
        t = ebpfMonTargetById(head->iocId);
        if (t)
            ebpfMonChainPart(t, (const struct ebpfMonChainEvent *)head, size);
        ebpfMonTargetsUnlock();
        break;
    case EBPFMON_EV_TAKEN:
        if (size >= sizeof(struct ebpfMonHandEvent))
            ebpfMonHandedTaken((const struct ebpfMonHandEvent *)head);
        break;
    case EBPFMON_EV_DONE:
        if (size >= sizeof(struct ebpfMonHandEvent))
            ebpfMonTracesDone((const struct ebpfMonHandEvent *)head);
        break;
    case EBPFMON_EV_EXEC:
        ebpfMonTargetsExec((pid_t)head->tgid);
        break;
    case EBPFMON_EV_EXIT:
        ebpfMonTargetsExit((pid_t)head->tgid);
        break;
    }
}

static void onTrace(ebpfMonTarget *t, ebpfMonTrace *trace)
{
    ebpfMonSlowTell(t, trace);
    ebpfMonSpansTell(t, trace);
}

static void eventThread(void *arg)
{
    (void)arg;
    while (!stopping) {
        uint64_t upTo = nowNs();

        if (ebpfMonPoll(POLL_MS, onEvent, NULL) < 0)
            epicsThreadSleep(0.1);
        ebpfMonSendsLooked(upTo);
        ebpfMonPendingTick(nowNs(), 0);
        ebpfMonTracesTick(nowNs(), 0);
    }
    ebpfMonPendingTick(nowNs(), 1);
    ebpfMonTracesTick(nowNs(), 1);
    epicsEventMustTrigger(ended);
}

void ebpfMonEventsStart(void)
{
    ended = epicsEventMustCreate(epicsEventEmpty);
    ebpfMonTracesStart(onTrace);
    epicsThreadMustCreate("ebpfMonEvent", epicsThreadPriorityMedium,
                          epicsThreadGetStackSize(epicsThreadStackBig), eventThread, NULL);
}

void ebpfMonEventsStop(void)
{
    if (!ended)
        return;
    stopping = 1;
    epicsEventWaitWithTimeout(ended, 5.0);
}

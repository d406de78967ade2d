/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>

#include "model/board.h"
#include "model/filter.h"
#include "model/rules.h"
#include "monitor/asked.h"
#include "monitor/decode.h"
#include "monitor/events.h"
#include "monitor/slow.h"
#include "monitor/target.h"
#include "monitor/targets.h"
#include "probe/loader.h"

#define PENDING     1024 /* puts whose result is awaited */
#define PATIENCE_NS 2000000000ull
#define LINK_NS     10000000ull /* dbPutFieldLink takes microseconds */
/* But for changed links the kernel half does not wake us: a wake-up costs the target more than the event. So we look this often;
 * it is the delay of a put. */
#define POLL_MS     4

typedef struct {
    uint32_t tid; /* 0: free */
    uint64_t id;
    uint64_t since;
    uint32_t iocId;
    uint64_t linkAt; /* a link field: its result is looked up, 0: it is told */
    ebpfMonPut put;
} pendingPut;

static pendingPut pending[PENDING];
static unsigned pendingCount;
static epicsEventId ended;
static volatile int stopping;
static size_t unnamed;

static uint64_t nowNs(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Counts and shows a put that is complete. */
static void publish(ebpfMonPut *put)
{
    ebpfMonFilter f;
    ebpfMonBoard *board;
    char record[sizeof(put->pv)], *dot;
    const char *field = "VAL";
    int watched = 0;

    ebpfMonRulesJudge(put); /* every put, whatever the filter shows */
    ebpfMonBoardBad(put);
    snprintf(record, sizeof(record), "%s", put->pv);
    dot = strrchr(record, '.');
    if (dot) {
        *dot = 0;
        field = dot + 1;
    }
    ebpfMonAskedFilterGet(&f);
    if (!ebpfMonFilterWantsPut(&f, record, field, put->host, put->user))
        return;
    board = ebpfMonBoardLock();
    board->putCount++;
    if (put->result == ebpfMonPutDenied)
        board->putDenied++;
    board->putHead = (board->putHead + 1) % EBPFMON_PUTS_MAX;
    if (board->putRecent < EBPFMON_PUTS_MAX)
        board->putRecent++;
    board->put[board->putHead] = *put;
    board->time[ebpfMonGroupPuts] = put->time;
    for (unsigned i = 0; i < board->watchCount; i++) {
        ebpfMonWatchRow *w = &board->watch[i];

        if (strcmp(w->record, record) != 0 && strcmp(w->real, record) != 0)
            continue;
        w->putCount++;
        ebpfMonPutLine(put, w->putLast, sizeof(w->putLast));
        w->putTime = put->time;
        board->time[ebpfMonGroupWatch] = put->time;
        watched = 1;
    }
    ebpfMonBoardUnlock();
    ebpfMonBoardChanged(ebpfMonGroupPuts);
    if (watched)
        ebpfMonBoardChanged(ebpfMonGroupWatch);
}

/* A result that does not come was lost with the ring full, or its IOC died in dbPut; that of a link is
 * looked up in the link itself. */
static void giveUp(uint64_t now, int all)
{
    for (unsigned i = 0; i < PENDING && pendingCount; i++) {
        pendingPut *p = &pending[i];
        ebpfMonTarget *t;

        if (!p->tid || (!all && now - p->since < (p->linkAt ? LINK_NS : PATIENCE_NS)))
            continue;
        if (p->linkAt) {
            ebpfMonTargetsLock();
            t = ebpfMonTargetById(p->iocId);
            if (t && !t->gone)
                ebpfMonDecodeLinkResult(t, p->linkAt, &p->put);
            ebpfMonTargetsUnlock();
        }
        publish(&p->put);
        p->tid = 0;
        pendingCount--;
    }
}

static void onPut(const struct ebpfMonPutEvent *ev, size_t size)
{
    static ebpfMonPut put;
    ebpfMonTarget *t;
    int ok = 0, links = 0, wait = 0;

    ebpfMonTargetsLock();
    t = ebpfMonTargetById(ev->head.iocId);
    if (t) {
        ok = ebpfMonDecodePut(t, ev, size, &put, &links);
        wait = (ev->site == EBPFMON_SITE_PUT && (t->att.on & EBPFMON_BIT(ebpfMonProgPutReturn))) ||
               ev->site == EBPFMON_SITE_LINK;
    }
    ebpfMonTargetsUnlock();
    if (!ok) {
        epicsAtomicIncrSizeT(&unnamed);
        return;
    }
    if (links)
        ebpfMonAskedLinks(ev->head.iocId, ev->precord);
    if (wait && pendingCount < PENDING) {
        for (unsigned k = 0; k < PENDING; k++) {
            pendingPut *p = &pending[(ev->head.tid + k) % PENDING];

            if (p->tid)
                continue;
            p->tid = ev->head.tid;
            p->id = ev->id;
            p->since = ev->head.ktime;
            p->iocId = ev->head.iocId;
            p->linkAt = ev->site == EBPFMON_SITE_LINK ? ev->pfield : 0;
            p->put = put;
            pendingCount++;
            return;
        }
    }
    publish(&put);
}

static void onResult(const struct ebpfMonResultEvent *ev, size_t size)
{
    if (size < sizeof(*ev))
        return;
    for (unsigned k = 0; k < PENDING; k++) {
        pendingPut *p = &pending[(ev->head.tid + k) % PENDING];

        if (p->tid != ev->head.tid || p->id != ev->id)
            continue;
        p->put.result = ev->status ? ebpfMonPutFailed : ebpfMonPutOk;
        p->put.status = (long)ev->status;
        publish(&p->put);
        p->tid = 0;
        pendingCount--;
        return;
    }
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
    case EBPFMON_EV_CHAIN:
        ebpfMonTargetsLock();
        t = ebpfMonTargetById(head->iocId);
        if (t)
            ebpfMonSlowPart(t, (const struct ebpfMonChainEvent *)head, size);
        ebpfMonTargetsUnlock();
        break;
    case EBPFMON_EV_EXEC:
        ebpfMonTargetsExec((pid_t)head->tgid);
        break;
    case EBPFMON_EV_EXIT:
        ebpfMonTargetsExit((pid_t)head->tgid);
        break;
    }
}

static void eventThread(void *arg)
{
    (void)arg;
    while (!stopping) {
        if (ebpfMonPoll(POLL_MS, onEvent, NULL) < 0)
            epicsThreadSleep(0.1);
        if (pendingCount)
            giveUp(nowNs(), 0);
    }
    giveUp(nowNs(), 1);
    epicsEventMustTrigger(ended);
}

void ebpfMonEventsStart(void)
{
    ended = epicsEventMustCreate(epicsEventEmpty);
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

uint64_t ebpfMonEventsUnnamed(void)
{
    return epicsAtomicGetSizeT(&unnamed);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsThread.h>

#include "access/guardedPuts.h"
#include "common/clock.h"
#include "common/pace.h"
#include "common/sharedWorker.h"
#include "monitor/monitor.h"
#include "probe/kernelEvents.h"

#define SILENCE_NS   EBPFMON_SECOND_NS /* it looks by itself that often, whatever was missed */
#define STOP_SECONDS 5.0

struct ebpfMonEventThread {
    ebpfMonMonitor     *m;
    ebpfMonSharedWorker worker;
    ebpfMonPace         pace; /* the thread's own */
};

static void onEvent(void *arg, const struct ebpfMonHead *head, size_t size)
{
    ebpfMonEventThread *e = arg;
    ebpfMonIocPuts *puts = e->m->put.iocPuts;
    ebpfMonTarget *t;

    switch (head->kind) {
    case EBPFMON_EV_PUT:
        ebpfMonIocPutsAddPut(puts, (const struct ebpfMonPutEvent *)head, size);
        break;
    case EBPFMON_EV_RESULT:
        ebpfMonIocPutsAddResult(puts, (const struct ebpfMonResultEvent *)head, size);
        break;
    case EBPFMON_EV_CAUSE:
        ebpfMonIocPutsAddCause(puts, (const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CALINK:
        ebpfMonIocPutsAddLinkWrite(puts, (const struct ebpfMonCauseEvent *)head, size);
        break;
    case EBPFMON_EV_CHAIN:
        ebpfMonTargetsLock(e->m->targets);
        t = ebpfMonTargetsFindById(e->m->targets, head->iocId);
        if (t)
            ebpfMonChainPartsAdd(e->m->trace.chainParts, t, (const struct ebpfMonChainEvent *)head, size,
                                 ebpfMonClockUnixOffset());
        ebpfMonTargetsUnlock(e->m->targets);
        break;
    case EBPFMON_EV_HANDOVER_BEGIN:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesBeginHandOver(e->m->trace.traces, (const struct ebpfMonHandOverEvent *)head);
        break;
    case EBPFMON_EV_HANDOVER_END:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesEndHandOver(e->m->trace.traces, (const struct ebpfMonHandOverEvent *)head);
        break;
    case EBPFMON_EV_EXEC:
        ebpfMonFollowerNoteExec(e->m->watch.follower, (pid_t)head->tgid);
        break;
    case EBPFMON_EV_EXIT:
        ebpfMonFollowerNoteExit(e->m->watch.follower);
        break;
    }
}

/* All that is to be done with what has come, and with what is due. Returns how many events came. */
static unsigned readEvents(ebpfMonEventThread *e)
{
    uint64_t upTo = ebpfMonClockMonotonic(), oldest;
    int isWhole;
    unsigned n = ebpfMonKernelReadEvents(onEvent, e, &isWhole);

    if (isWhole)
        ebpfMonLinkMessagesMatch(e->m->trace.linkMessages, upTo);
    ebpfMonIocPutsTick(e->m->put.iocPuts, ebpfMonClockMonotonic(), 0);
    oldest = ebpfMonIocPutsGetOldest(e->m->put.iocPuts);
    if (isWhole)
        ebpfMonPutJoinSetEventsRead(e->m->put.join, oldest < upTo ? oldest : upTo);
    ebpfMonOwnPutsPublish(e->m->put.ownPuts);
    ebpfMonTracesTick(e->m->trace.traces, ebpfMonClockMonotonic(), 0);
    return n + !isWhole; /* what keeps us from reading all will be done at once */
}

/* ns until something is due. */
static uint64_t findWait(ebpfMonEventThread *e)
{
    uint64_t now = ebpfMonClockMonotonic(), due = ebpfMonIocPutsGetDue(e->m->put.iocPuts, now);
    uint64_t traces = ebpfMonTracesGetDue(e->m->trace.traces, now), wait;

    if (traces < due)
        due = traces;
    wait = due > now ? due - now : 0;
    return wait < EBPFMON_PACE_FIRST_NS ? EBPFMON_PACE_FIRST_NS : wait < SILENCE_NS ? wait : SILENCE_NS;
}

static void runEventThread(ebpfMonWorker *worker, void *arg)
{
    ebpfMonEventThread *e = arg;
    int file = ebpfMonKernelEventsFile();

    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t next = ebpfMonPaceNext(&e->pace, readEvents(e) > 0), wait = findWait(e);

        if (next)
            ebpfMonWorkerWaitFile(worker, file, next < wait ? next : wait);
        else if (ebpfMonKernelEventsBeginSleep())
            ebpfMonWorkerWaitFile(worker, file, wait);
        if (!next)
            ebpfMonKernelEventsEndSleep();
    }
    ebpfMonIocPutsTick(e->m->put.iocPuts, ebpfMonClockMonotonic(), 1);
    ebpfMonOwnPutsPublish(e->m->put.ownPuts);
    ebpfMonTracesTick(e->m->trace.traces, ebpfMonClockMonotonic(), 1);
}

ebpfMonEventThread *ebpfMonEventThreadNew(ebpfMonMonitor *m)
{
    ebpfMonEventThread *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->m = m;
    ebpfMonSharedWorkerInit(&e->worker);
    ebpfMonGuardedPutsSetSink(ebpfMonEventThreadWake, e);
    return e;
}

void ebpfMonEventThreadFree(ebpfMonEventThread *e)
{
    if (!e)
        return;
    ebpfMonGuardedPutsSetSink(NULL, NULL);
    ebpfMonSharedWorkerDestroy(&e->worker);
    free(e);
}

int ebpfMonEventThreadStart(ebpfMonEventThread *e)
{
    return ebpfMonSharedWorkerSet(&e->worker, ebpfMonWorkerStartForFiles("ebpfMonEvent", epicsThreadPriorityMedium,
                                                                         runEventThread, e));
}

void ebpfMonEventThreadWake(void *thread)
{
    ebpfMonEventThread *e = thread;

    ebpfMonSharedWorkerWake(&e->worker);
}

int ebpfMonEventThreadStop(ebpfMonEventThread *e)
{
    return e ? ebpfMonSharedWorkerStop(&e->worker, STOP_SECONDS) : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "monitor/monitor.h"
#include "probe/kernelEvents.h"

/* The kernel part wakes this thread for changed links only: a wake-up costs the watched IOC more than the event. So the
 * thread looks this often, and a put is published so much later. */
#define POLL_MS     4

#define STOP_SECONDS 5.0

struct ebpfMonEventThread {
    ebpfMonMonitor *m;
    ebpfMonWorker  *worker;
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

static void runEventThread(ebpfMonWorker *worker, void *arg)
{
    ebpfMonEventThread *e = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t upTo = ebpfMonClockMonotonic();

        if (ebpfMonKernelReadEvents(POLL_MS, onEvent, e) < 0)
            ebpfMonWorkerWait(worker, 0.1);
        ebpfMonLinkMessagesMatch(e->m->trace.linkMessages, upTo);
        ebpfMonIocPutsTick(e->m->put.iocPuts, ebpfMonClockMonotonic(), 0);
        ebpfMonPutJoinSetEventsRead(e->m->put.join, upTo);
        ebpfMonOwnPutsPublish(e->m->put.ownPuts);
        ebpfMonTracesTick(e->m->trace.traces, ebpfMonClockMonotonic(), 0);
    }
    ebpfMonIocPutsTick(e->m->put.iocPuts, ebpfMonClockMonotonic(), 1);
    ebpfMonOwnPutsPublish(e->m->put.ownPuts);
    ebpfMonTracesTick(e->m->trace.traces, ebpfMonClockMonotonic(), 1);
}

ebpfMonEventThread *ebpfMonEventThreadStart(ebpfMonMonitor *m)
{
    ebpfMonEventThread *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->m = m;
    e->worker = ebpfMonWorkerStart("ebpfMonEvent", epicsThreadPriorityMedium, runEventThread, e);
    if (!e->worker) {
        free(e);
        return NULL;
    }
    return e;
}

int ebpfMonEventThreadStop(ebpfMonEventThread **thread)
{
    ebpfMonEventThread *e = *thread;

    if (!e)
        return 0;
    if (ebpfMonWorkerStop(&e->worker, STOP_SECONDS))
        return -1;
    free(e);
    *thread = NULL;
    return 0;
}

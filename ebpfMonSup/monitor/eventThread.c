/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "trace/chainParts.h"
#include "monitor/monitor.h"
#include "trace/handOvers.h"
#include "trace/linkMessages.h"
#include "publish/slowChains.h"
#include "trace/traceSpans.h"
#include "trace/traces.h"
#include "probe/loader.h"

/* But for changed links the kernel half does not wake us: a wake-up costs the target more than the event. So we look this often;
 * it is the delay of a put. */
#define POLL_MS     4

#define STOP_SECONDS 5.0

struct ebpfMonEventThread {
    ebpfMonMonitor *m;
    ebpfMonWorker  *worker;
};

static void onEvent(void *arg, const struct ebpfMonHead *head, size_t size)
{
    ebpfMonEventThread *e = arg;
    ebpfMonIocPuts *puts = e->m->puts.iocPuts;
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
    ebpfMonEventThread *e = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t upTo = ebpfMonClockMonotonic();

        if (ebpfMonKernelReadEvents(POLL_MS, onEvent, e) < 0)
            ebpfMonWorkerWait(worker, 0.1);
        ebpfMonLinkMessagesMatch(upTo);
        ebpfMonIocPutsTick(e->m->puts.iocPuts, ebpfMonClockMonotonic(), 0);
        ebpfMonTracesTick(ebpfMonClockMonotonic(), 0);
    }
    ebpfMonIocPutsTick(e->m->puts.iocPuts, ebpfMonClockMonotonic(), 1);
    ebpfMonTracesTick(ebpfMonClockMonotonic(), 1);
}

ebpfMonEventThread *ebpfMonEventThreadStart(ebpfMonMonitor *m)
{
    ebpfMonEventThread *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->m = m;
    ebpfMonTracesStart(m->puts.threadPuts, onTrace);
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

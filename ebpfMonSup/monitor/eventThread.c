/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/clock.h"
#include "monitor/monitor.h"
#include "probe/kernelEvents.h"

static void onEvent(void *arg, const struct ebpfMonHead *head, size_t size)
{
    ebpfMonMonitor *m = arg;

    if (ebpfMonIocPutsAddEvent(m->put.iocPuts, head, size) || ebpfMonTraceRoomAddEvent(&m->trace, head, size))
        return;
    if (head->kind == EBPFMON_EV_EXEC && size >= sizeof(struct ebpfMonExecEvent))
        ebpfMonFollowerNoteExec(m->watch.follower, (pid_t)head->tgid,
                                &((const struct ebpfMonExecEvent *)head)->program);
    else if (head->kind == EBPFMON_EV_EXIT)
        ebpfMonFollowerNoteExit(m->watch.follower);
}

/* Reads the events that have come, and does the work that is due. Returns the number of events. */
static unsigned readEvents(void *arg)
{
    ebpfMonMonitor *m = arg;
    uint64_t upTo = ebpfMonClockMonotonic(), oldest;
    int isWhole;
    unsigned n = ebpfMonKernelReadEvents(onEvent, m, &isWhole);

    if (isWhole)
        ebpfMonLinkMessagesMatch(m->trace.linkMessages, upTo);
    ebpfMonIocPutsTick(m->put.iocPuts, ebpfMonClockMonotonic(), 0);
    oldest = ebpfMonIocPutsGetOldest(m->put.iocPuts);
    if (isWhole)
        ebpfMonPutJoinSetEventsRead(m->put.join, oldest < upTo ? oldest : upTo);
    ebpfMonOwnPutsPublish(m->put.ownPuts);
    ebpfMonTracesTick(m->trace.traces, ebpfMonClockMonotonic(), 0);
    return n + !isWhole; /* a program still writes an event before the others; it will be done at once, so look again
                          * soon */
}

static uint64_t getDue(void *arg)
{
    ebpfMonMonitor *m = arg;
    uint64_t now = ebpfMonClockMonotonic(), puts = ebpfMonIocPutsGetDue(m->put.iocPuts, now);
    uint64_t traces = ebpfMonTracesGetDue(m->trace.traces, now);

    return puts < traces ? puts : traces;
}

static int getFile(void *arg)
{
    (void)arg;
    return ebpfMonKernelEventsFile();
}

static int beginSleep(void *arg)
{
    (void)arg;
    return ebpfMonKernelEventsBeginSleep();
}

static void endSleep(void *arg)
{
    (void)arg;
    ebpfMonKernelEventsEndSleep();
}

static void publishRest(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonIocPutsTick(m->put.iocPuts, ebpfMonClockMonotonic(), 1);
    ebpfMonOwnPutsPublish(m->put.ownPuts);
    ebpfMonTracesTick(m->trace.traces, ebpfMonClockMonotonic(), 1);
}

ebpfMonRingReader *ebpfMonEventThreadNew(ebpfMonMonitor *m)
{
    static const ebpfMonRingReaderCalls calls = {
        .name = "ebpfMonEvent", .read = readEvents, .getDue = getDue, .getFile = getFile,
        .beginSleep = beginSleep, .endSleep = endSleep, .finish = publishRest,
    };

    return ebpfMonRingReaderNew(&calls, m);
}

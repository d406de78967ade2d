/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/clock.h"
#include "monitor/monitor.h"
#include "probe/kernelEvents.h"

#define TELL_NS (EBPFMON_SECOND_NS / 2)

static void onEvent(void *arg, const struct ebpfMonHead *head, size_t size)
{
    ebpfMonMonitor *m = arg;

    if (ebpfMonIocPutsAddEvent(m->put.iocPuts, head, size) || ebpfMonTraceRoomAddEvent(&m->trace, head, size))
        return;
    if (head->kind == EBPFMON_EV_EXEC && size >= sizeof(struct ebpfMonExecEvent))
        ebpfMonFollowerNoteExec(m->watch.follower, (pid_t)head->tgid,
                                &((const struct ebpfMonExecEvent *)head)->program);
    else if (head->kind == EBPFMON_EV_EXIT && size >= sizeof(struct ebpfMonExitEvent)) {
        ebpfMonTargetsNoteExit(m->targets, (const struct ebpfMonExitEvent *)head);
        ebpfMonFollowerNoteExit(m->watch.follower, (pid_t)head->tgid);
    } else if (head->kind == EBPFMON_EV_LISTEN)
        ebpfMonTargetsNoteChange(m->targets); /* the packet thread must know its port */
}

/* Those who look seldom in a silence need not know of its end at once: a put is to reach its PVs first. Nonzero: a
 * silence has just ended. */
static int followSilence(ebpfMonMonitor *m, uint64_t now)
{
    int isEnd = ebpfMonKernelTakeSilenceEnd();

    if (isEnd)
        m->silenceEnd = now;
    if (!m->silenceEnd || now < m->silenceEnd + TELL_NS)
        return isEnd;
    ebpfMonFollowerEndSilence(m->watch.follower);
    ebpfMonPublisherEndSilence(m->publish.publisher, m->silenceEnd);
    m->silenceEnd = 0;
    return isEnd;
}

/* Reads the events that have come, and does the work that is due. More are expected if there was one, and if a program
 * still writes an event before the others. */
static void readEvents(void *arg, int *expects)
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
    if (ebpfMonOwnPutsPublish(m->put.ownPuts)) /* perhaps something else is to be shown now */
        ebpfMonKernelBreakSilence();
    ebpfMonTracesTick(m->trace.traces, ebpfMonClockMonotonic(), 0);
    ebpfMonSlowChainsTick(m->publish.slowChains, ebpfMonClockMonotonic(), 0);
    *expects = followSilence(m, ebpfMonClockMonotonic()) || n || !isWhole;
}

static uint64_t getDue(void *arg)
{
    ebpfMonMonitor *m = arg;
    uint64_t now = ebpfMonClockMonotonic(), puts = ebpfMonIocPutsGetDue(m->put.iocPuts, now);
    uint64_t traces = ebpfMonTracesGetDue(m->trace.traces, now), texts = ebpfMonSlowChainsGetDue(m->publish.slowChains);
    uint64_t due = puts < traces ? puts : traces, look;

    if (m->silenceEnd)
        look = m->silenceEnd + TELL_NS;
    else
        look = ebpfMonKernelIsSilent() ? ebpfMonClockNextLook(now) : now + EBPFMON_SECOND_NS;
    if (texts < due)
        due = texts;
    return due < look ? due : look;
}

static void publishRest(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonIocPutsTick(m->put.iocPuts, ebpfMonClockMonotonic(), 1);
    ebpfMonOwnPutsPublish(m->put.ownPuts);
    ebpfMonTracesTick(m->trace.traces, ebpfMonClockMonotonic(), 1);
    ebpfMonSlowChainsTick(m->publish.slowChains, ebpfMonClockMonotonic(), 1);
}

ebpfMonRingReader *ebpfMonEventThreadNew(ebpfMonMonitor *m)
{
    static const ebpfMonRingReaderCalls calls = {
        .name = "ebpfMonEvent", .read = readEvents, .getDue = getDue,
        .getFile = ebpfMonKernelEventsFile, .beginSleep = ebpfMonKernelEventsBeginSleep,
        .endSleep = ebpfMonKernelEventsEndSleep, .isAnnounced = ebpfMonKernelEventsAreAnnounced, .finish = publishRest,
    };

    return ebpfMonRingReaderNew(&calls, m);
}

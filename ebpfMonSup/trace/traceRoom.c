/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/clock.h"
#include "trace/traceRoom.h"

static void onChain(void *arg, ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                    uint32_t count)
{
    ebpfMonTraceRoom *room = arg;

    ebpfMonTracesAddChain(room->traces, t, chain, rec, count);
}

static int isDescribed(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    const ebpfMonTraceRoomUses *uses = &((ebpfMonTraceRoom *)arg)->uses;

    return uses->spans.isWanted(uses->spans.arg) || uses->isPrinted(uses->arg, t, trace);
}

static uint64_t countLost(void *arg)
{
    const ebpfMonTraceRoomUses *uses = &((ebpfMonTraceRoom *)arg)->uses;

    return uses->countLost(uses->arg);
}

static int onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    uint64_t unixOffset = ebpfMonClockUnixOffset();
    ebpfMonTraceRoom *room = arg;

    ebpfMonTraceSpansExport(room->spans, t, trace, unixOffset);
    return room->uses.finished(room->uses.arg, t, trace, unixOffset);
}

int ebpfMonTraceRoomMake(ebpfMonTraceRoom *room, const ebpfMonTraceRoomUses *from)
{
    ebpfMonTracesUses uses = {
        .targets = from->targets,
        .threadPuts = from->threadPuts,
        .exportsSpans = from->spans.isWanted,
        .exporter = from->spans.arg,
        .isDescribed = isDescribed,
        .countLost = countLost,
        .eachThread = from->eachThread,
    };
    ebpfMonTraceSpansUses spans = { .targets = from->targets, .sink = from->spans };

    memset(room, 0, sizeof(*room));
    room->uses = *from;
    ebpfMonSpanNewId((uint8_t *)&spans.salt, sizeof(spans.salt));
    room->linkMessages = uses.linkMessages = spans.linkMessages = ebpfMonLinkMessagesNew();
    room->putTraces = ebpfMonPutTracesNew(spans.salt);
    room->traces = spans.traces = ebpfMonTracesNew(&uses, onTrace, room);
    room->chainParts = ebpfMonChainPartsNew(from->losses, onChain, room);
    room->walk = spans.walk = ebpfMonTraceWalkNew();
    room->spans = ebpfMonTraceSpansNew(&spans);
    room->putSpans = (ebpfMonPutSpans){ .targets = from->targets, .sink = from->spans };
    if (room->linkMessages && room->putTraces && room->traces && room->chainParts && room->walk && room->spans)
        return 0;
    ebpfMonTraceRoomFree(room);
    return -1;
}

static void addChainEvent(ebpfMonTraceRoom *room, const struct ebpfMonChainEvent *ev, size_t size)
{
    ebpfMonTargets *targets = room->uses.targets;
    ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, ev->chain.head.iocId);
    if (t)
        ebpfMonChainPartsAdd(room->chainParts, t, ev, size, ebpfMonClockUnixOffset());
    ebpfMonTargetsUnlock(targets);
    ebpfMonTracesFinishChain(room->traces);
}

int ebpfMonTraceRoomAddEvent(ebpfMonTraceRoom *room, const struct ebpfMonHead *head, size_t size)
{
    switch (head->kind) {
    case EBPFMON_EV_CHAIN:
        addChainEvent(room, (const struct ebpfMonChainEvent *)head, size);
        return 1;
    case EBPFMON_EV_HANDOVER_BEGIN:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesBeginHandOver(room->traces, (const struct ebpfMonHandOverEvent *)head);
        return 1;
    case EBPFMON_EV_HANDOVER_END:
        if (size >= sizeof(struct ebpfMonHandOverEvent))
            ebpfMonTracesEndHandOver(room->traces, (const struct ebpfMonHandOverEvent *)head);
        return 1;
    default:
        return 0;
    }
}

void ebpfMonTraceRoomFree(ebpfMonTraceRoom *room)
{
    ebpfMonTraceSpansFree(room->spans);
    ebpfMonTraceWalkFree(room->walk);
    ebpfMonChainPartsFree(room->chainParts);
    ebpfMonTracesFree(room->traces);
    ebpfMonPutTracesFree(room->putTraces);
    ebpfMonLinkMessagesFree(room->linkMessages);
    memset(room, 0, sizeof(*room));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/clock.h"
#include "export/export.h"
#include "monitor/monitor.h"

static const ebpfMonSpanSink exportSink = { .isWanted = ebpfMonExportWantsSpans, .add = ebpfMonExportSpan };

static void onChain(void *arg, ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                    uint32_t count)
{
    ebpfMonMonitor *m = arg;

    ebpfMonTracesAddChain(m->trace.traces, t, chain, rec, count);
}

static void onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    uint64_t unixOffset = ebpfMonClockUnixOffset();
    ebpfMonMonitor *m = arg;

    ebpfMonSlowChainsPublish(m->publish.slowChains, t, trace, unixOffset);
    ebpfMonTraceSpansExport(m->trace.spans, t, trace, unixOffset);
}

int ebpfMonTraceRoomMake(ebpfMonMonitor *m)
{
    ebpfMonTracesUses uses = {
        .targets = m->targets, .threadPuts = m->put.threadPuts, .exportsSpans = ebpfMonExportWantsSpans,
    };
    ebpfMonTraceSpansUses spans = { .targets = m->targets, .sink = exportSink };
    ebpfMonTraceRoom *room = &m->trace;
    uint64_t salt;

    memset(room, 0, sizeof(*room));
    ebpfMonSpanNewId((uint8_t *)&salt, sizeof(salt));
    room->linkMessages = uses.linkMessages = spans.linkMessages = ebpfMonLinkMessagesNew();
    room->traces = spans.traces = ebpfMonTracesNew(&uses, onTrace, m);
    room->chainParts = ebpfMonChainPartsNew(onChain, m);
    room->ids = spans.ids = ebpfMonTraceIdsNew(salt, room->traces, room->linkMessages);
    room->walk = spans.walk = ebpfMonTraceWalkNew();
    room->spans = ebpfMonTraceSpansNew(&spans);
    room->putSpans = ebpfMonPutSpansNew(m->targets, &exportSink);
    if (room->linkMessages && room->traces && room->chainParts && room->ids && room->walk && room->spans &&
        room->putSpans)
        return 0;
    ebpfMonTraceRoomFree(room);
    return -1;
}

void ebpfMonTraceRoomFree(ebpfMonTraceRoom *room)
{
    ebpfMonPutSpansFree(room->putSpans);
    ebpfMonTraceSpansFree(room->spans);
    ebpfMonTraceWalkFree(room->walk);
    ebpfMonTraceIdsFree(room->ids);
    ebpfMonChainPartsFree(room->chainParts);
    ebpfMonTracesFree(room->traces);
    ebpfMonLinkMessagesFree(room->linkMessages);
    memset(room, 0, sizeof(*room));
}

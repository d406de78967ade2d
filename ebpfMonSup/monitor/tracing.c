/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "common/clock.h"
#include "export/otlp/span.h"
#include "monitor/monitor.h"
#include "monitor/tracing.h"
#include "publish/slowChains.h"

static const ebpfMonSpanSink exportSink = { .isWanted = ebpfMonExportsSpans, .add = ebpfMonExportSpan };

static void onChain(void *arg, ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                    uint32_t count)
{
    ebpfMonMonitor *m = arg;

    ebpfMonTracesAddChain(m->traces, t, chain, rec, count);
}

static void onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    ebpfMonMonitor *m = arg;
    uint64_t unixOffset = ebpfMonClockUnixOffset();

    ebpfMonSlowChainsPublish(m->traceWalk, t, trace, unixOffset);
    ebpfMonTraceSpansExport(m->traceSpans, t, trace, unixOffset);
}

int ebpfMonTracingNew(ebpfMonMonitor *m)
{
    ebpfMonTracesUses traces = {
        .targets = m->targets, .threadPuts = m->puts.threadPuts, .exportsSpans = ebpfMonExportsSpans,
    };
    ebpfMonTraceSpansUses spans = { .targets = m->targets, .sink = exportSink };
    uint64_t salt;

    ebpfMonSpanNewId((uint8_t *)&salt, sizeof(salt));
    m->linkMessages = traces.linkMessages = spans.linkMessages = ebpfMonLinkMessagesNew();
    m->traces = spans.traces = ebpfMonTracesNew(&traces, onTrace, m);
    m->chainParts = ebpfMonChainPartsNew(onChain, m);
    m->traceIds = spans.ids = ebpfMonTraceIdsNew(salt, m->traces, m->linkMessages);
    m->traceWalk = spans.walk = ebpfMonTraceWalkNew();
    m->traceSpans = ebpfMonTraceSpansNew(&spans);
    m->putSpans = ebpfMonPutSpansNew(m->targets, &exportSink);
    if (m->linkMessages && m->traces && m->chainParts && m->traceIds && m->traceWalk && m->traceSpans && m->putSpans)
        return 0;
    ebpfMonTracingFree(m);
    return -1;
}

void ebpfMonTracingFree(ebpfMonMonitor *m)
{
    ebpfMonPutSpansFree(m->putSpans);
    ebpfMonTraceSpansFree(m->traceSpans);
    ebpfMonTraceWalkFree(m->traceWalk);
    ebpfMonTraceIdsFree(m->traceIds);
    ebpfMonChainPartsFree(m->chainParts);
    ebpfMonTracesFree(m->traces);
    ebpfMonLinkMessagesFree(m->linkMessages);
    m->putSpans = NULL;
    m->traceSpans = NULL;
    m->traceWalk = NULL;
    m->traceIds = NULL;
    m->chainParts = NULL;
    m->traces = NULL;
    m->linkMessages = NULL;
}

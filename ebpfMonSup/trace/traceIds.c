/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <epicsThread.h>

#include "export/otlp/span.h"
#include "trace/spanId.h"
#include "trace/linkMessages.h"
#include "trace/traceIds.h"
#include "trace/finishedTraces.h"

#define SENDS_MAX 8 /* of one half */
#define DEPTH     8 /* IOCs that one trace goes through while it is open */

static uint64_t salt; /* else the same chain of another monitor's life had the same ids */

static void init(void *unused)
{
    (void)unused;
    ebpfMonSpanNewId((uint8_t *)&salt, sizeof(salt));
}

static uint64_t saltOf(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, init, NULL);
    return salt;
}

void ebpfMonSpanOfChain(const ebpfMonChainId *chain, uint32_t number, uint8_t span[8])
{
    ebpfMonChainSpan(saltOf(), chain, number, span);
}

void ebpfMonSpanOfMessage(const struct ebpfMonPeer *p, uint32_t seq, uint8_t span[8])
{
    ebpfMonMessageSpan(p->addr, p->port, p->saddr, p->sport, seq, span);
}

void ebpfMonTraceOfMessage(const struct ebpfMonPeer *p, uint32_t seq, uint8_t trace[16])
{
    ebpfMonMessageTrace(p->addr, p->port, p->saddr, p->sport, seq, trace);
}

int ebpfMonHasMessage(const ebpfMonTrace *trace)
{
    return trace->put && trace->put->key.seqKind == EBPFMON_SEQ_MESSAGE && trace->put->key.peer.sport;
}

/* The first message that went out to an IOC that we do not watch: the monitor there knows no more than that. */
static int firstMessage(const ebpfMonTrace *trace, uint8_t id[16])
{
    ebpfMonLinkMessage list[SENDS_MAX];

    for (const ebpfMonTraceChain *half = trace->sends ? trace->first : NULL; half; half = half->next) {
        ebpfMonChainId chain = ebpfMonTraceChainId(half);
        unsigned n = ebpfMonLinkMessagesFind(&chain, list, SENDS_MAX);

        for (unsigned i = 0; i < n; i++)
            if (list[i].seen && list[i].isMessage && !list[i].inside) {
                ebpfMonTraceOfMessage(&list[i].peer, list[i].seq, id);
                return 1;
            }
    }
    return 0;
}

/* Chooses the trace's id: its sender's, as far as that is known here; else the message's that set it going, or that it
 * sent itself. Both ends of a message come to the same one. */
static void choose(ebpfMonTrace *trace, unsigned depth)
{
    const ebpfMonPutSummary *put = trace->put;
    ebpfMonChainId chain = ebpfMonTraceSender(trace);
    ebpfMonTrace *sender = NULL;
    const uint8_t *known = NULL;

    if (trace->hasId)
        return;
    if (chain.iocId && depth < DEPTH) {
        sender = ebpfMonTracesFindByChain(&chain);
        if (sender)
            choose(sender, depth + 1);
        known = sender ? sender->id : ebpfMonFinishedTracesFind(&chain);
    }
    if (trace->hasId) /* it is its own sender's sender */
        return;
    trace->hasId = 1;
    if (!put && trace->first->chain.causeBegin) {
        chain = ebpfMonTraceChainBegunBy(trace->first);
        known = ebpfMonFinishedTracesFind(&chain);
    }
    chain = ebpfMonTraceChainId(trace->first);
    if (known)
        memcpy(trace->id, known, sizeof(trace->id));
    else if (ebpfMonHasMessage(trace) && !put->pid)
        ebpfMonTraceOfMessage(&put->key.peer, put->key.seq, trace->id);
    else if (firstMessage(trace, trace->id))
        return; /* whoever sent the put is of this host, and is told of by us */
    else if (ebpfMonHasMessage(trace))
        ebpfMonTraceOfMessage(&put->key.peer, put->key.seq, trace->id);
    else
        ebpfMonChainTrace(saltOf(), &chain, trace->id);
}

void ebpfMonTraceChoose(ebpfMonTrace *trace)
{
    choose(trace, 0);
}

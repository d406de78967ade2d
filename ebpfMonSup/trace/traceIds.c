/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "trace/spanId.h"
#include "trace/traceIds.h"

#define DEPTH    8 /* traces of which each caused the next while all are open */

struct ebpfMonTraceIds {
    uint64_t salt;
    ebpfMonTraces *traces;
    ebpfMonLinkMessages *messages;
};

ebpfMonTraceIds *ebpfMonTraceIdsNew(uint64_t salt, ebpfMonTraces *traces, ebpfMonLinkMessages *messages)
{
    ebpfMonTraceIds *ids = calloc(1, sizeof(*ids));

    if (!ids)
        return NULL;
    ids->salt = salt;
    ids->traces = traces;
    ids->messages = messages;
    return ids;
}

void ebpfMonTraceIdsFree(ebpfMonTraceIds *ids)
{
    free(ids);
}

void ebpfMonTraceIdsGetChainSpan(const ebpfMonTraceIds *ids, const ebpfMonChainId *chain, uint32_t number,
                                 uint8_t span[8])
{
    ebpfMonChainGetSpanId(ids->salt, chain, number, span);
}

/* The id of the first message that went out to an IOC that we do not watch: the monitor there knows no more than that
 * message. Nonzero: there is one. */
static int findFirstMessage(const ebpfMonTraceIds *ids, const ebpfMonTrace *trace, uint8_t id[16])
{
    ebpfMonLinkMessage list[EBPFMON_LINK_MESSAGES];

    for (const ebpfMonTraceChain *c = trace->linkWrites ? trace->first : NULL; c; c = c->next) {
        ebpfMonChainId chain = ebpfMonTraceChainGetId(c);
        unsigned n = ebpfMonLinkMessagesFind(ids->messages, &chain, list, EBPFMON_LINK_MESSAGES);

        for (unsigned i = 0; i < n; i++)
            if (list[i].seen && list[i].isMessage && !list[i].inside) {
                ebpfMonMessageGetTraceId(&list[i].peer, list[i].seq, id);
                return 1;
            }
    }
    return 0;
}

/* The id of the trace that caused this one, by its chain "chain", or of the trace of which this one is a late part.
 * NULL: none that is known. "cause": the first of these two traces, if it is open. */
static const uint8_t *findCauseId(const ebpfMonTraceIds *ids, const ebpfMonTrace *trace, const ebpfMonTrace *cause,
                                  const ebpfMonChainId *chain)
{
    if (!trace->put && trace->first->chain.causeBegin) {
        ebpfMonChainId beginner = ebpfMonTraceChainGetBeginner(trace->first);

        return ebpfMonTracesFindFinishedId(ids->traces, &beginner);
    }
    if (cause)
        return cause->id;
    return chain->iocId ? ebpfMonTracesFindFinishedId(ids->traces, chain) : NULL;
}

/* Chooses the id: of the trace that caused this one, if it is known here; else of the message that caused this
 * trace, or of a message that it sent. Both ends of a message compute the same id. */
static void chooseId(const ebpfMonTraceIds *ids, ebpfMonTrace *trace, unsigned depth)
{
    const ebpfMonPutSummary *put = trace->put;
    ebpfMonChainId chain = ebpfMonTraceGetCause(trace);
    ebpfMonTrace *cause = NULL;
    const uint8_t *known;

    if (trace->hasId)
        return;
    if (depth == DEPTH)
        chain.iocId = 0;
    if (chain.iocId)
        cause = ebpfMonTracesFindOpen(ids->traces, &chain);
    if (cause)
        chooseId(ids, cause, depth + 1);
    if (trace->hasId) /* it is among its own causes */
        return;
    trace->hasId = 1;
    known = findCauseId(ids, trace, cause, &chain);
    if (known) {
        memcpy(trace->id, known, sizeof(trace->id));
    } else if (ebpfMonTraceHasMessage(trace) && !put->pid) {
        ebpfMonMessageGetTraceId(&put->key.peer, put->key.seq, trace->id);
    } else if (findFirstMessage(ids, trace, trace->id)) {
        /* the client that made the put is on this host, so its span is ours too */
    } else if (ebpfMonTraceHasMessage(trace)) {
        ebpfMonMessageGetTraceId(&put->key.peer, put->key.seq, trace->id);
    } else {
        chain = ebpfMonTraceChainGetId(trace->first);
        ebpfMonChainGetTraceId(ids->salt, &chain, trace->id);
    }
}

void ebpfMonTraceIdsChoose(const ebpfMonTraceIds *ids, ebpfMonTrace *trace)
{
    chooseId(ids, trace, 0);
}

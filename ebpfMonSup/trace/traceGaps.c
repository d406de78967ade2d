/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/clock.h"
#include "trace/traceGaps.h"

#define MESSAGE_NS EBPFMON_SECOND_NS /* from a link write to its message, unless the link is not connected */

void ebpfMonTraceGapsAddChain(ebpfMonTraceGaps *gaps, ebpfMonTrace *trace, const ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);
    ebpfMonLinkMessage list[EBPFMON_LINK_MESSAGES];

    if (!gaps->exportsSpans(gaps->exporter))
        return;
    if (c->chain.causeBegin) { /* between the two an asynchronous record may have written, step by step */
        ebpfMonChainId beginner = ebpfMonTraceChainGetBeginner(c);

        ebpfMonLinkMessagesNoteChain(gaps->messages, &id);
        trace->linkWrites += ebpfMonLinkMessagesFind(gaps->messages, &beginner, list, EBPFMON_LINK_MESSAGES);
    }
    trace->linkWrites += ebpfMonLinkMessagesFind(gaps->messages, &id, list, EBPFMON_LINK_MESSAGES);
    trace->isIncomplete |= ebpfMonLinkMessagesHaveForgotten(gaps->messages, c->chain.begin);
}

int ebpfMonTraceGapsAwaitMessages(const ebpfMonTraceGaps *gaps, const ebpfMonTrace *trace, uint64_t now)
{
    ebpfMonLinkMessage list[EBPFMON_LINK_MESSAGES];

    if (!trace->linkWrites || now - trace->end > MESSAGE_NS || !gaps->exportsSpans(gaps->exporter))
        return 0;
    for (const ebpfMonTraceChain *c = trace->first; c; c = c->next) {
        ebpfMonChainId id = ebpfMonTraceChainGetId(c);

        for (unsigned n = ebpfMonLinkMessagesFind(gaps->messages, &id, list, EBPFMON_LINK_MESSAGES); n-- > 0;)
            if (!list[n].seen)
                return 1;
    }
    return 0;
}

int ebpfMonTraceGapsLook(ebpfMonTraceGaps *gaps)
{
    uint64_t lost = gaps->countLost ? gaps->countLost(gaps->arg) : 0, now = ebpfMonClockMonotonic();
    int isNew = lost != gaps->lost;

    if (isNew) {
        gaps->from = gaps->lookedAt;
        gaps->to = now;
    }
    gaps->lost = lost;
    gaps->lookedAt = now;
    return isNew;
}

/* The messages that carried what it wrote through CA links. A packet may have been lost, or come before packets of this
 * network namespace were read. A link that is not connected sends nothing, but nothing tells that. */
static void judgeSent(const ebpfMonTraceGaps *gaps, ebpfMonTrace *trace)
{
    ebpfMonLinkMessage list[EBPFMON_LINK_MESSAGES];

    if (!trace->linkWrites || !gaps->exportsSpans(gaps->exporter))
        return;
    for (const ebpfMonTraceChain *c = trace->first; c; c = c->next) {
        ebpfMonChainId id = ebpfMonTraceChainGetId(c);
        unsigned count = ebpfMonLinkMessagesFind(gaps->messages, &id, list, EBPFMON_LINK_MESSAGES);

        trace->isIncomplete |= count == EBPFMON_LINK_MESSAGES;
        for (unsigned i = 0; i < count; i++)
            trace->unseen += !list[i].seen || list[i].isHidden;
    }
    trace->isIncomplete |= trace->unseen || ebpfMonLinkMessagesHaveForgotten(gaps->messages, trace->first->chain.begin);
}

/* The message that caused it: what a client sends has one. */
static int lacksCause(const ebpfMonTrace *trace)
{
    return trace->put && trace->put->key.peer.addr && !ebpfMonTraceHasMessage(trace);
}

void ebpfMonTraceGapsJudge(const ebpfMonTraceGaps *gaps, ebpfMonTrace *trace)
{
    judgeSent(gaps, trace);
    trace->lacksCause = lacksCause(trace);
    trace->isIncomplete |= trace->lacksCause || (trace->first->chain.begin <= gaps->to && trace->end >= gaps->from);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <alarmString.h>

#include "export/export.h"
#include "trace/traceIds.h"
#include "trace/putSpans.h"
#include "trace/traceSpans.h"
#include "trace/finishedTraces.h"
#include "trace/traceShape.h"
#include "trace/traceText.h"
#include "ioc/syscallName.h"

#define SPANS_MAX 1000 /* of one trace */

static uint64_t offset; /* of the trace that is being told */

typedef struct {
    ebpfMonTarget *t;
    const ebpfMonTrace *trace;
    unsigned spans;      /* told so far */
    uint64_t end;        /* of the trace */
} teller;

static void describe(ebpfMonTarget *t, ebpfMonSpan *s, uint32_t index, const struct ebpfMonChainRec *r)
{
    char value[256];

    ebpfMonSpanAddText(s, "epics.record.name", ebpfMonCatalogueName(t->cat, index));
    ebpfMonSpanAddText(s, "epics.record.type", t->cat->rtype[t->cat->rec[index].rtype].name);
    if (!r)
        return;
    ebpfMonTraceValue(t, r, value, sizeof(value));
    ebpfMonSpanAddText(s, "epics.record.value", value);
    if (r->sevr && r->sevr < ALARM_NSEV && r->stat < ALARM_NSTATUS) {
        ebpfMonSpanAddText(s, "epics.alarm.severity", epicsAlarmSeverityStrings[r->sevr]);
        ebpfMonSpanAddText(s, "epics.alarm.status", epicsAlarmConditionStrings[r->stat]);
    }
}

/* From the stamps: a record began when the one before it was stamped, unless one that it made process began earlier; it
 * ends with the last of those. */
static void times(const ebpfMonTraceChain *half, const ebpfMonTraceShape *sh, uint64_t *from, uint64_t *to)
{
    uint64_t first = half->chain.begin + half->chain.wait + offset;
    uint64_t last = half->chain.head.ktime + offset, before = first;

    for (uint32_t i = 0; i < sh->nodes; i++) {
        uint64_t at = (uint64_t)sh->node[i].time + (uint64_t)POSIX_TIME_AT_EPICS_EPOCH * 1000000000u;

        if (!sh->rec[i] || at < before || at > last) /* a device's own stamp (TSE) tells nothing */
            at = sh->rec[i] && at > last ? last : before;
        from[i] = before;
        to[i] = at;
        before = at;
    }
    for (uint32_t k = sh->nodes; k-- > 0;) {
        uint32_t i = sh->order[k], p = sh->node[i].parent;

        if (p == EBPFMON_NO_PARENT)
            continue;
        if (from[i] < from[p])
            from[p] = from[i];
        if (to[i] > to[p])
            to[p] = to[i];
    }
}

static void account(ebpfMonSpan *s, const struct ebpfMonChain *c);
static void tellRecords(teller *x, const ebpfMonTraceChain *half, const uint8_t above[8], unsigned level);

/* What a half handed over, below its record of this index or, UINT32_MAX, below itself: a span for it, the records below
 * that. */
static void tellHanded(teller *x, const ebpfMonTraceChain *half, const ebpfMonTraceShape *sh, uint32_t index,
                       const uint8_t above[8], unsigned level)
{
    const ebpfMonTraceChain *next = NULL;
    static ebpfMonSpan s;
    char how[40];

    while ((next = ebpfMonTraceHanded(half, sh, index, next))) {
        ebpfMonChainId chain = ebpfMonTraceChainId(next);
        uint8_t id[8];

        if (x->spans++ >= SPANS_MAX)
            return;
        ebpfMonTraceHow(x->t, next, how, sizeof(how));
        ebpfMonSpanStart(&s, x->trace->id, ebpfMonCatalogueName(x->t->cat, next->chain.rootSlot));
        ebpfMonSpanOfIoc(&s, x->t);
        ebpfMonSpanOfChain(&chain, 0, id);
        memcpy(s.id, id, sizeof(s.id));
        memcpy(s.parent, above, sizeof(s.parent));
        s.start = next->chain.begin + offset;
        s.end = next->chain.head.ktime + offset;
        ebpfMonSpanAddText(&s, "epics.record.name", ebpfMonCatalogueName(x->t->cat, next->chain.rootSlot));
        ebpfMonSpanAddText(&s, "epics.chain.cause", how);
        ebpfMonSpanAddInteger(&s, "epics.chain.records", next->chain.total);
        if (next->delay)
            ebpfMonSpanAddDouble(&s, "epics.chain.delay", (double)next->delay / 1000);
        account(&s, &next->chain);
        ebpfMonExportSpan(&s);
        tellRecords(x, next, id, level);
    }
}

/* The records of a half below "above", what completes them, and what was handed over. */
static void tellRecords(teller *x, const ebpfMonTraceChain *half, const uint8_t above[8], unsigned level)
{
    static ebpfMonTraceShape *shapes[EBPFMON_TRACE_CHAINS];
    static uint64_t from[EBPFMON_TRACE_SHAPE_NODES], to[EBPFMON_TRACE_SHAPE_NODES];
    static ebpfMonSpan s;
    ebpfMonChainId chain = ebpfMonTraceChainId(half);
    ebpfMonTraceShape *sh;

    if (level < EBPFMON_TRACE_CHAINS && !shapes[level])
        shapes[level] = malloc(sizeof(*sh));
    sh = level < EBPFMON_TRACE_CHAINS ? shapes[level] : NULL;
    if (!sh || ebpfMonTraceShapeMake(x->t, half, sh))
        return;
    times(half, sh, from, to);
    for (uint32_t k = 0; k < sh->nodes; k++) {
        uint32_t i = sh->order[k], index = sh->record[i];
        const ebpfMonTreeNode *n = &sh->node[i];

        if (x->spans++ >= SPANS_MAX)
            return;
        ebpfMonSpanStart(&s, x->trace->id, ebpfMonCatalogueName(x->t->cat, index));
        ebpfMonSpanOfIoc(&s, x->t);
        ebpfMonSpanOfChain(&chain, i + 1, s.id);
        if (n->parent == EBPFMON_NO_PARENT)
            memcpy(s.parent, above, sizeof(s.parent));
        else
            ebpfMonSpanOfChain(&chain, n->parent + 1, s.parent);
        s.start = from[i];
        s.end = sh->rec[i] ? to[i] : x->end;
        if (n->parent != EBPFMON_NO_PARENT)
            ebpfMonSpanAddText(&s, "epics.link.field", x->t->cat->field[n->via].name);
        describe(x->t, &s, index, sh->rec[i]);
        if (!sh->rec[i]) {
            const ebpfMonTraceChain *next = NULL, *final = NULL;

            while ((next = ebpfMonTraceNext(half, index, next)))
                final = next;
            if (final && !(final->chain.flags & EBPFMON_CHAIN_BUSY))
                s.end = final->chain.head.ktime + offset;
            ebpfMonSpanAddBool(&s, "epics.record.asynchronous", 1);
        }
        ebpfMonExportSpan(&s);
    }
    for (uint32_t i = 0; i < sh->nodes; i++) {
        const ebpfMonTraceChain *next = NULL;
        uint8_t span[8];

        while (!sh->rec[i] && (next = ebpfMonTraceNext(half, sh->record[i], next))) {
            ebpfMonSpanOfChain(&chain, i + 1, span);
            tellRecords(x, next, span, level + 1);
        }
        ebpfMonSpanOfChain(&chain, i + 1, span);
        tellHanded(x, half, sh, sh->record[i], span, level + 1);
    }
    tellHanded(x, half, sh, UINT32_MAX, above, level + 1);
}

/* Where a chain's time went. */
static void account(ebpfMonSpan *s, const struct ebpfMonChain *c)
{
    uint64_t slept = c->blocked > c->wait ? c->blocked - c->wait : 0;
    char name[24];

    snprintf(name, sizeof(name), "%.*s", EBPFMON_COMM_MAX - 1, c->comm);
    ebpfMonSpanAddText(s, "thread.name", name);
    ebpfMonSpanAddInteger(s, "thread.id", c->head.tid);
    ebpfMonSpanAddDouble(s, "epics.chain.wait", (double)c->wait / 1000);
    if (c->handed)
        ebpfMonSpanAddDouble(s, "epics.chain.queue_wait", (double)c->handed / 1000);
    ebpfMonSpanAddDouble(s, "epics.chain.slept", (double)slept / 1000);
    ebpfMonSpanAddDouble(s, "epics.chain.cpu_wait", (double)c->queued / 1000);
    if (slept && c->syscall >= 0) {
        ebpfMonSyscallName(c->syscall, name, sizeof(name));
        ebpfMonSpanAddText(s, "epics.chain.syscall", name);
    }
}

void ebpfMonTraceSpansExport(ebpfMonTarget *t, ebpfMonTrace *trace)
{
    const struct ebpfMonChain *c = &trace->first->chain;
    teller x = { .t = t, .trace = trace };
    const char *root = ebpfMonCatalogueName(t->cat, c->rootSlot);
    static ebpfMonSpan s;
    ebpfMonChainId chain = ebpfMonTraceChainId(trace->first), cause = ebpfMonTraceChainBegunBy(trace->first);
    char why[512];
    uint32_t total = 0;
    const uint8_t *before;
    uint8_t above[8], id[8];

    if (!ebpfMonExportWantsSpans())
        return;
    offset = ebpfMonUnixOffset(c->begin);
    ebpfMonTraceChoose(trace);
    for (const ebpfMonTraceChain *half = trace->first; half; half = half->next)
        total += half->chain.total;
    ebpfMonSpansSender(trace, offset);
    ebpfMonSpanStart(&s, trace->id, root);
    ebpfMonSpanOfIoc(&s, t);
    if (c->total && !(c->flags & EBPFMON_CHAIN_LATE)) { /* else no histogram has it */
        snprintf(s.root, sizeof(s.root), "%s", root);
        s.latency = c->head.ktime - c->begin - c->wait;
    }
    ebpfMonSpanOfChain(&chain, 0, s.id);
    memcpy(above, s.id, sizeof(above));
    if (ebpfMonHasMessage(trace)) {
        s.kind = ebpfMonSpanServer;
        ebpfMonSpanOfMessage(&trace->put->key.peer, trace->put->key.seq, s.parent);
    } else if (trace->put && trace->put->linkChain.iocId) {
        ebpfMonSpanOfChain(&trace->put->linkChain, 0, s.parent);
    } else if (trace->source.chain.iocId) {
        ebpfMonSpanOfChain(&trace->source.chain, trace->source.place < SPANS_MAX ? trace->source.place + 1 : 0, s.parent);
    } else if (!trace->put && c->causeBegin && ebpfMonFinishedTracesFind(&cause)) {
        ebpfMonSpanOfChain(&cause, 0, s.parent);
    } else if (!trace->put && trace->first->by.iocId && (before = ebpfMonFinishedTracesFind(&trace->first->by))) {
        ebpfMonSpanOfChain(&trace->first->by, 0, id); /* that trace was full */
        ebpfMonSpanAddLink(&s, before, id);
    }
    s.start = c->begin + offset;
    s.end = x.end = trace->last->chain.head.ktime + offset;
    ebpfMonTraceCause(t, trace, why, sizeof(why));
    ebpfMonSpanAddText(&s, "epics.record.name", root);
    ebpfMonSpanAddText(&s, "epics.chain.cause", why);
    ebpfMonSpanAddInteger(&s, "epics.chain.records", total);
    if (ebpfMonHasMessage(trace))
        ebpfMonSpanEnds(&s, &trace->put->key.peer);
    ebpfMonSpanAddBool(&s, "epics.chain.incomplete", trace->cut || c->flags & EBPFMON_CHAIN_LATE);
    account(&s, c);
    ebpfMonExportSpan(&s);
    tellRecords(&x, trace->first, above, 0);
    for (const ebpfMonTraceChain *half = trace->first; half && trace->sends; half = half->next)
        ebpfMonSpansSent(t, trace, half, offset);
}

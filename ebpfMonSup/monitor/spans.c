/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <alarmString.h>
#include <epicsThread.h>

#include "export/span.h"
#include "model/spanId.h"
#include "monitor/decode.h"
#include "monitor/sends.h"
#include "monitor/spans.h"
#include "monitor/told.h"
#include "monitor/traceShape.h"
#include "monitor/traceText.h"
#include "target/syscallName.h"

#define SPANS_MAX 1000 /* of one trace */
#define SENDS_MAX 8    /* of one half */
#define DEPTH     8    /* IOCs that one trace goes through while it is open */
#define HALVES    32   /* halves below halves */
#define RATE      500  /* messages of programs, a second */

static uint64_t salt;
static uint64_t offset; /* of the trace that is being told */

static void init(void *unused)
{
    (void)unused;
    ebpfMonSpanNewId((uint8_t *)&salt, sizeof(salt));
}

static void begin(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, init, NULL);
}

/* From a monotonic time to one since 1970, UTC. Once for a trace: two readings of two clocks are never the same. */
static uint64_t offsetNow(uint64_t ktime)
{
    epicsTimeStamp ts = ebpfMonWallTime(ktime);

    return ((uint64_t)ts.secPastEpoch + POSIX_TIME_AT_EPICS_EPOCH) * 1000000000u + ts.nsec - ktime;
}

static void messageSpan(const struct ebpfMonPeer *p, uint32_t seq, uint8_t span[8])
{
    ebpfMonMessageSpan(p->addr, p->port, p->saddr, p->sport, seq, span);
}

static void messageTrace(const struct ebpfMonPeer *p, uint32_t seq, uint8_t trace[16])
{
    ebpfMonMessageTrace(p->addr, p->port, p->saddr, p->sport, seq, trace);
}

static int hasMessage(const ebpfMonTrace *trace)
{
    return trace->put && trace->put->key.seqKind == EBPFMON_SEQ_MESSAGE && trace->put->key.peer.sport;
}

/* The first message that went out to an IOC that we do not watch: the monitor there knows no more than that. */
static int firstMessage(const ebpfMonTrace *trace, uint8_t id[16])
{
    ebpfMonSend list[SENDS_MAX];

    for (const ebpfMonHalf *half = trace->sends ? trace->first : NULL; half; half = half->next) {
        ebpfMonChainId chain = ebpfMonHalfId(half);
        unsigned n = ebpfMonSendsOf(&chain, list, SENDS_MAX);

        for (unsigned i = 0; i < n; i++)
            if (list[i].seen && list[i].isMessage && !list[i].inside) {
                messageTrace(&list[i].peer, list[i].seq, id);
                return 1;
            }
    }
    return 0;
}

/* Chooses the trace's id: its sender's, as far as that is known here; else the message's that set it going, or that it
 * sent itself. Both ends of a message come to the same one. */
static void choose(ebpfMonTrace *trace, unsigned depth)
{
    const ebpfMonTracePut *put = trace->put;
    ebpfMonChainId chain = ebpfMonSentBy(trace);
    ebpfMonTrace *sender = NULL;
    const uint8_t *known = NULL;

    if (trace->hasId)
        return;
    if (chain.iocId && depth < DEPTH) {
        sender = ebpfMonTracesFind(&chain);
        if (sender)
            choose(sender, depth + 1);
        known = sender ? sender->id : ebpfMonTold(&chain);
    }
    if (trace->hasId) /* it is its own sender's sender */
        return;
    trace->hasId = 1;
    if (!put && trace->first->chain.causeBegin) {
        chain = ebpfMonBegunBy(trace->first);
        known = ebpfMonTold(&chain);
    }
    chain = ebpfMonHalfId(trace->first);
    if (known)
        memcpy(trace->id, known, sizeof(trace->id));
    else if (hasMessage(trace) && !put->pid)
        messageTrace(&put->key.peer, put->key.seq, trace->id);
    else if (firstMessage(trace, trace->id))
        return; /* whoever sent the put is of this host, and is told of by us */
    else if (hasMessage(trace))
        messageTrace(&put->key.peer, put->key.seq, trace->id);
    else
        ebpfMonChainTrace(salt, &chain, trace->id);
}

static void start(ebpfMonSpan *s, const uint8_t trace[16], const char *name)
{
    memset(s, 0, offsetof(ebpfMonSpan, attribute));
    memcpy(s->trace, trace, sizeof(s->trace));
    s->kind = ebpfMonSpanInternal;
    snprintf(s->name, sizeof(s->name), "%s", name);
}

static void ofIoc(ebpfMonSpan *s, const ebpfMonTarget *t)
{
    snprintf(s->service.name, sizeof(s->service.name), "%s", t->name);
    snprintf(s->service.version, sizeof(s->service.version), "%s", t->version);
    s->service.pid = (uint32_t)t->pid;
}

/* A program on this host; an IOC that we know by the name that it has elsewhere. */
static void ofProgram(ebpfMonSpan *s, uint32_t pid, const char *command)
{
    const ebpfMonTarget *t;

    ebpfMonTargetsLock();
    t = ebpfMonTargetByPid((pid_t)pid);
    if (t)
        ofIoc(s, t);
    ebpfMonTargetsUnlock();
    if (t)
        return;
    snprintf(s->service.name, sizeof(s->service.name), "%s", command);
    s->service.pid = pid;
}

/* Both ends of the message: with a translator in between, all that a user can find the other half by. */
static void ends(ebpfMonSpan *s, const struct ebpfMonPeer *p)
{
    char text[INET_ADDRSTRLEN] = "";

    inet_ntop(AF_INET, &p->addr, text, sizeof(text));
    ebpfMonSpanAddText(s, "client.address", text);
    ebpfMonSpanAddInteger(s, "client.port", ntohs(p->port));
    inet_ntop(AF_INET, &p->saddr, text, sizeof(text));
    ebpfMonSpanAddText(s, "server.address", text);
    ebpfMonSpanAddInteger(s, "server.port", ntohs(p->sport));
}

/* A put as its sender sees it: from when it wrote, if that is known, until the message was seen. */
static void tellClient(ebpfMonSpan *s, const struct ebpfMonPeer *peer, uint32_t seq, const char *channel,
                       uint64_t from, uint64_t to)
{
    s->kind = ebpfMonSpanClient;
    messageSpan(peer, seq, s->id);
    s->start = from;
    s->end = to > from ? to : from;
    ebpfMonSpanAddText(s, "epics.pv", channel);
    ends(s, peer);
    ebpfMonExportSpan(s);
}

/* The messages that a half sent. One whose receiver is not watched here begins a trace for the monitor there, unless the
 * whole trace has its id anyhow. */
static void tellSends(const ebpfMonTarget *t, const ebpfMonTrace *trace, const ebpfMonHalf *half)
{
    static ebpfMonSpan s;
    ebpfMonChainId chain = ebpfMonHalfId(half);
    ebpfMonSend list[SENDS_MAX];
    unsigned n = ebpfMonSendsOf(&chain, list, SENDS_MAX);

    for (unsigned i = 0; i < n; i++) {
        uint8_t id[16], parent[8];
        char name[sizeof(s.name)];

        if (!list[i].seen || !list[i].isMessage)
            continue;
        snprintf(name, sizeof(name), "put %.80s", list[i].channel);
        start(&s, trace->id, name);
        ofIoc(&s, t);
        messageTrace(&list[i].peer, list[i].seq, id);
        ebpfMonChainSpan(salt, &chain, 0, parent);
        if (list[i].inside || memcmp(id, trace->id, sizeof(id)) == 0) {
            memcpy(s.parent, parent, sizeof(parent));
        } else {
            memcpy(s.trace, id, sizeof(id));
            ebpfMonSpanAddLink(&s, trace->id, parent);
        }
        ebpfMonSpanAddText(&s, "epics.put.link", list[i].link);
        tellClient(&s, &list[i].peer, list[i].seq, list[i].channel, list[i].at + offset, list[i].seenAt + offset);
    }
}

/* Who sent the put that set the trace going, if that is a program on this host, or an IOC whose chain was not kept. */
static void tellSender(const ebpfMonTrace *trace)
{
    const ebpfMonTracePut *put = trace->put;
    static ebpfMonSpan s;
    char name[sizeof(s.name)];
    uint64_t at;

    if (!hasMessage(trace) || !put->pid ||
        (put->linkChain.iocId && (ebpfMonTracesFind(&put->linkChain) || ebpfMonTold(&put->linkChain))))
        return;
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    start(&s, trace->id, name);
    ofProgram(&s, put->pid, put->command);
    ebpfMonSpanAddText(&s, "user.name", put->user);
    /* dbPut is entered after the lock was asked for, with which the chain began */
    at = (put->key.at < trace->first->chain.begin ? put->key.at : trace->first->chain.begin) + offset;
    tellClient(&s, &put->key.peer, put->key.seq, put->pv, at, at);
}

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
static void times(const ebpfMonHalf *half, const ebpfMonShape *sh, uint64_t *from, uint64_t *to)
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
static void tellRecords(teller *x, const ebpfMonHalf *half, const uint8_t above[8], unsigned level);

/* What a half handed over, below its record of this index or, UINT32_MAX, below itself: a span for it, the records below
 * that. */
static void tellHanded(teller *x, const ebpfMonHalf *half, const ebpfMonShape *sh, uint32_t index,
                       const uint8_t above[8], unsigned level)
{
    const ebpfMonHalf *next = NULL;
    static ebpfMonSpan s;
    char how[40];

    while ((next = ebpfMonTraceHanded(half, sh, index, next))) {
        ebpfMonChainId chain = ebpfMonHalfId(next);
        uint8_t id[8];

        if (x->spans++ >= SPANS_MAX)
            return;
        ebpfMonTraceHow(x->t, next, how, sizeof(how));
        start(&s, x->trace->id, ebpfMonCatalogueName(x->t->cat, next->chain.rootSlot));
        ofIoc(&s, x->t);
        ebpfMonChainSpan(salt, &chain, 0, id);
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
static void tellRecords(teller *x, const ebpfMonHalf *half, const uint8_t above[8], unsigned level)
{
    static ebpfMonShape *shapes[HALVES];
    static uint64_t from[EBPFMON_SHAPE_NODES], to[EBPFMON_SHAPE_NODES];
    static ebpfMonSpan s;
    ebpfMonChainId chain = ebpfMonHalfId(half);
    ebpfMonShape *sh;

    if (level < HALVES && !shapes[level])
        shapes[level] = malloc(sizeof(*sh));
    sh = level < HALVES ? shapes[level] : NULL;
    if (!sh || ebpfMonShapeOf(x->t, half, sh))
        return;
    times(half, sh, from, to);
    for (uint32_t k = 0; k < sh->nodes; k++) {
        uint32_t i = sh->order[k], index = sh->record[i];
        const ebpfMonTreeNode *n = &sh->node[i];

        if (x->spans++ >= SPANS_MAX)
            return;
        start(&s, x->trace->id, ebpfMonCatalogueName(x->t->cat, index));
        ofIoc(&s, x->t);
        ebpfMonChainSpan(salt, &chain, i + 1, s.id);
        if (n->parent == EBPFMON_NO_PARENT)
            memcpy(s.parent, above, sizeof(s.parent));
        else
            ebpfMonChainSpan(salt, &chain, n->parent + 1, s.parent);
        s.start = from[i];
        s.end = sh->rec[i] ? to[i] : x->end;
        if (n->parent != EBPFMON_NO_PARENT)
            ebpfMonSpanAddText(&s, "epics.link.field", x->t->cat->field[n->via].name);
        describe(x->t, &s, index, sh->rec[i]);
        if (!sh->rec[i]) {
            const ebpfMonHalf *next = NULL, *final = NULL;

            while ((next = ebpfMonTraceNext(half, index, next)))
                final = next;
            if (final && !(final->chain.flags & EBPFMON_CHAIN_BUSY))
                s.end = final->chain.head.ktime + offset;
            ebpfMonSpanAddBool(&s, "epics.record.asynchronous", 1);
        }
        ebpfMonExportSpan(&s);
    }
    for (uint32_t i = 0; i < sh->nodes; i++) {
        const ebpfMonHalf *next = NULL;
        uint8_t span[8];

        while (!sh->rec[i] && (next = ebpfMonTraceNext(half, sh->record[i], next))) {
            ebpfMonChainSpan(salt, &chain, i + 1, span);
            tellRecords(x, next, span, level + 1);
        }
        ebpfMonChainSpan(salt, &chain, i + 1, span);
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

void ebpfMonSpansTell(ebpfMonTarget *t, ebpfMonTrace *trace)
{
    const struct ebpfMonChain *c = &trace->first->chain;
    teller x = { .t = t, .trace = trace };
    const char *root = ebpfMonCatalogueName(t->cat, c->rootSlot);
    static ebpfMonSpan s;
    ebpfMonChainId chain = ebpfMonHalfId(trace->first), cause = ebpfMonBegunBy(trace->first);
    char why[512];
    uint32_t total = 0;
    uint8_t above[8];

    if (!ebpfMonExportsSpans())
        return;
    begin();
    offset = offsetNow(c->begin);
    choose(trace, 0);
    for (const ebpfMonHalf *half = trace->first; half; half = half->next)
        total += half->chain.total;
    tellSender(trace);
    start(&s, trace->id, root);
    ofIoc(&s, t);
    if (c->total && !(c->flags & EBPFMON_CHAIN_LATE)) { /* else no histogram has it */
        snprintf(s.root, sizeof(s.root), "%s", root);
        s.latency = c->head.ktime - c->begin - c->wait;
    }
    ebpfMonChainSpan(salt, &chain, 0, s.id);
    memcpy(above, s.id, sizeof(above));
    if (hasMessage(trace)) {
        s.kind = ebpfMonSpanServer;
        messageSpan(&trace->put->key.peer, trace->put->key.seq, s.parent);
    } else if (trace->put && trace->put->linkChain.iocId) {
        ebpfMonChainSpan(salt, &trace->put->linkChain, 0, s.parent);
    } else if (trace->source.chain.iocId) {
        ebpfMonChainSpan(salt, &trace->source.chain, trace->source.place < SPANS_MAX ? trace->source.place + 1 : 0, s.parent);
    } else if (!trace->put && c->causeBegin && ebpfMonTold(&cause)) {
        ebpfMonChainSpan(salt, &cause, 0, s.parent);
    }
    s.start = c->begin + offset;
    s.end = x.end = trace->last->chain.head.ktime + offset;
    ebpfMonTraceCause(t, trace, why, sizeof(why));
    ebpfMonSpanAddText(&s, "epics.record.name", root);
    ebpfMonSpanAddText(&s, "epics.chain.cause", why);
    ebpfMonSpanAddInteger(&s, "epics.chain.records", total);
    if (hasMessage(trace))
        ends(&s, &trace->put->key.peer);
    ebpfMonSpanAddBool(&s, "epics.chain.incomplete", trace->cut || c->flags & EBPFMON_CHAIN_LATE);
    account(&s, c);
    ebpfMonExportSpan(&s);
    tellRecords(&x, trace->first, above, 0);
    for (const ebpfMonHalf *half = trace->first; half && trace->sends; half = half->next)
        tellSends(t, trace, half);
}

void ebpfMonSpansMessage(const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at)
{
    static uint64_t second;
    static unsigned count;
    static ebpfMonSpan s;
    uint8_t id[16];
    char name[sizeof(s.name)];
    uint64_t from;

    if (!ebpfMonExportsSpans())
        return;
    begin();
    if (at - second >= 1000000000u) {
        second = at;
        count = 0;
    }
    if (count++ >= RATE)
        return;
    messageTrace(peer, seq, id);
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    start(&s, id, name);
    ofProgram(&s, put->peerPid, put->command);
    ebpfMonSpanAddText(&s, "user.name", put->user);
    from = at + offsetNow(at);
    tellClient(&s, peer, seq, put->pv, from, from);
}

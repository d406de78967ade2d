/* SPDX-License-Identifier: BSD-3-Clause */
#include <alarm.h>
#include <alarmString.h>
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "host/tcpSockets.h"
#include "host/syscallName.h"
#include "trace/traceSpans.h"
#include "trace/traceText.h"

/* --- ids --- */

/* What a number is for: ids of one kind are never those of another. */
enum { traceHigh = 1, traceLow, messageSpan, chainHigh, chainLow, chainSpan };

/* splitmix64's finalizer: each bit of the input changes half of the output. */
static uint64_t mixBits(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* All 0 is no id (W3C Trace Context). */
static void storeId(uint8_t *to, uint64_t x)
{
    if (!x)
        x = 1;
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(x >> (56 - 8 * i));
}

/* Network byte order to a number, so that machines of either byte order come to the same one. */
static uint64_t readNetwork(const void *at, unsigned size)
{
    const uint8_t *b = at;
    uint64_t x = 0;

    while (size-- > 0)
        x = x << 8 | *b++;
    return x;
}

static uint64_t hashMessage(int what, const struct ebpfMonPeer *p, uint32_t seq)
{
    uint64_t h = mixBits((uint64_t)what + 0x9e3779b97f4a7c15ull);

    h = mixBits(h ^ (readNetwork(&p->addr, 4) << 32 | readNetwork(&p->saddr, 4)));
    return mixBits(h ^ (readNetwork(&p->port, 2) << 48 | readNetwork(&p->sport, 2) << 32 | seq));
}

void ebpfMonMessageGetTraceId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t trace[16])
{
    storeId(trace, hashMessage(traceHigh, peer, seq));
    storeId(trace + 8, hashMessage(traceLow, peer, seq));
}

void ebpfMonMessageGetSpanId(const struct ebpfMonPeer *peer, uint32_t seq, uint8_t span[8])
{
    storeId(span, hashMessage(messageSpan, peer, seq));
}

static uint64_t hashChain(int what, uint64_t salt, const ebpfMonChainId *c, uint32_t part)
{
    uint64_t h = mixBits(salt + (uint64_t)what * 0x9e3779b97f4a7c15ull);

    h = mixBits(h ^ ((uint64_t)c->iocId << 32 | c->tid));
    h = mixBits(h ^ c->begin);
    return mixBits(h ^ part);
}

void ebpfMonChainGetTraceId(uint64_t salt, const ebpfMonChainId *chain, uint8_t trace[16])
{
    storeId(trace, hashChain(chainHigh, salt, chain, 0));
    storeId(trace + 8, hashChain(chainLow, salt, chain, 0));
}

void ebpfMonChainGetSpanId(uint64_t salt, const ebpfMonChainId *chain, uint32_t part, uint8_t span[8])
{
    storeId(span, hashChain(chainSpan, salt, chain, part));
}

/* --- what all spans have --- */

/* Begins a span of kind internal, without parent, service and times. */
static void beginSpan(ebpfMonSpan *s, const uint8_t trace[16], const char *name)
{
    memset(s, 0, offsetof(ebpfMonSpan, attribute)); /* the attributes are large; their number says which are valid */
    memcpy(s->trace, trace, sizeof(s->trace));
    s->kind = ebpfMonSpanInternal;
    snprintf(s->name, sizeof(s->name), "%s", name);
}

/* Sets its service: the IOC. Under ebpfMonTargetsLock. */
static void setSpanIoc(ebpfMonSpan *s, const ebpfMonTarget *t)
{
    snprintf(s->service.name, sizeof(s->service.name), "%s", t->name);
    snprintf(s->service.version, sizeof(s->service.version), "%s", t->version);
    s->service.pid = (uint32_t)t->pid;
}

/* Sets its service: a program on this host; an IOC that we watch by its name. Under ebpfMonTargetsLock. */
static void setSpanProgram(ebpfMonSpan *s, ebpfMonTargets *targets, uint32_t pid, const char *command)
{
    const ebpfMonTarget *t = ebpfMonTargetsFindByPid(targets, (pid_t)pid);

    if (t) {
        setSpanIoc(s, t);
        return;
    }
    snprintf(s->service.name, sizeof(s->service.name), "%s", command);
    s->service.pid = pid;
}

/* Adds both ends of a connection: if its addresses are translated on the way, a user can find the other end only by
 * them. */
static void addSpanConnection(ebpfMonSpan *s, const struct ebpfMonPeer *peer)
{
    char text[EBPFMON_PEERTEXT_SIZE];

    ebpfMonPeerTextAddress(peer->addr, peer->addr6, text, sizeof(text));
    ebpfMonSpanAddText(s, "client.address", text);
    ebpfMonSpanAddInteger(s, "client.port", ntohs(peer->port));
    ebpfMonPeerTextAddress(peer->saddr, peer->saddr6, text, sizeof(text));
    ebpfMonSpanAddText(s, "server.address", text);
    ebpfMonSpanAddInteger(s, "server.port", ntohs(peer->sport));
}

/* Makes it the span of a put as its client sees it, with the id of its message ("seq": TCP sequence number). "from":
 * the client wrote, "to": the message was seen; ns since 1970. */
static void setSpanClient(ebpfMonSpan *s, const struct ebpfMonPeer *peer, uint32_t seq, const char *channel,
                          uint64_t from, uint64_t to)
{
    s->kind = ebpfMonSpanClient;
    ebpfMonMessageGetSpanId(peer, seq, s->id);
    s->start = from;
    s->end = to > from ? to : from;
    ebpfMonSpanAddText(s, "epics.pv", channel);
    addSpanConnection(s, peer);
}

/* --- puts to servers that are not watched --- */

#define RATE 500 /* a second */

void ebpfMonPutSpansExport(ebpfMonPutSpans *x, const ebpfMonPut *put, const struct ebpfMonPeer *peer, uint32_t seq,
                           uint64_t at, uint64_t unixOffset)
{
    char name[sizeof(x->span.name)];
    uint8_t id[16];

    if (!x->sink.isWanted(x->sink.arg))
        return;
    if (at - x->second >= EBPFMON_SECOND_NS) {
        x->second = at;
        x->count = 0;
    }
    if (x->count++ >= RATE)
        return;
    ebpfMonMessageGetTraceId(peer, seq, id);
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    beginSpan(&x->span, id, name);
    ebpfMonTargetsLock(x->targets);
    setSpanProgram(&x->span, x->targets, put->peerPid, put->command);
    ebpfMonTargetsUnlock(x->targets);
    ebpfMonSpanAddText(&x->span, "user.name", put->user);
    setSpanClient(&x->span, peer, seq, put->pv, at + unixOffset, at + unixOffset);
    x->sink.add(x->sink.arg, &x->span);
}

/* --- ids of traces --- */

#define DEPTH    8 /* traces of which each caused the next while all are open */

/* The id of the first message that went out to an IOC that we do not watch: the monitor there knows no more than that
 * message. Nonzero: there is one. */
static int findFirstMessage(const ebpfMonTraceSpansUses *uses, const ebpfMonTrace *trace, uint8_t id[16])
{
    ebpfMonLinkMessage list[EBPFMON_LINK_MESSAGES];

    for (const ebpfMonTraceChain *c = trace->linkWrites ? trace->first : NULL; c; c = c->next) {
        ebpfMonChainId chain = ebpfMonTraceChainGetId(c);
        unsigned n = ebpfMonLinkMessagesFind(uses->linkMessages, &chain, list, EBPFMON_LINK_MESSAGES);

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
static const uint8_t *findCauseId(const ebpfMonTraceSpansUses *uses, const ebpfMonTrace *trace,
                                  const ebpfMonTrace *cause, const ebpfMonChainId *chain)
{
    if (!trace->put && trace->first->chain.causeBegin) {
        ebpfMonChainId beginner = ebpfMonTraceChainGetBeginner(trace->first);

        return ebpfMonTracesFindFinishedId(uses->traces, &beginner);
    }
    if (cause)
        return cause->id;
    return chain->iocId ? ebpfMonTracesFindFinishedId(uses->traces, chain) : NULL;
}

/* Chooses the id of the trace; first, if they have none yet, the ids of the open traces that caused this one. It is the
 * id of the causing trace, if that is known here; else of the message that caused this trace, or of one that this trace
 * sent. Both ends of a message compute the same id. "depth": 0 at first. */
static void chooseId(const ebpfMonTraceSpansUses *uses, ebpfMonTrace *trace, unsigned depth)
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
        cause = ebpfMonTracesFindOpen(uses->traces, &chain);
    if (cause)
        chooseId(uses, cause, depth + 1);
    if (trace->hasId) /* it is among its own causes */
        return;
    trace->hasId = 1;
    known = findCauseId(uses, trace, cause, &chain);
    if (known) {
        memcpy(trace->id, known, sizeof(trace->id));
    } else if (ebpfMonTraceHasMessage(trace) && !put->pid) {
        ebpfMonMessageGetTraceId(&put->key.peer, put->key.seq, trace->id);
    } else if (findFirstMessage(uses, trace, trace->id)) {
        /* the client that made the put is on this host, so its span is ours too */
    } else if (ebpfMonTraceHasMessage(trace)) {
        ebpfMonMessageGetTraceId(&put->key.peer, put->key.seq, trace->id);
    } else {
        chain = ebpfMonTraceChainGetId(trace->first);
        ebpfMonChainGetTraceId(uses->salt, &chain, trace->id);
    }
}

/* --- traces --- */

#define SPANS_MAX 1000 /* of the tree of one trace */

/* When the records of a chain began and ended, by node; ns since 1970. */
typedef struct {
    uint64_t from[EBPFMON_TRACE_SHAPE_NODES], to[EBPFMON_TRACE_SHAPE_NODES];
} recordTimes;

struct ebpfMonTraceSpans {
    ebpfMonTraceSpansUses uses;
    ebpfMonSpan  span;     /* the one that is being made; large */
    recordTimes *times[EBPFMON_TRACE_CHAINS]; /* by depth of the walk; allocated at the first use */
    /* of the trace that is exported */
    ebpfMonTarget *t;
    ebpfMonTrace  *trace;
    uint64_t       offset; /* from monotonic time to time since 1970, ns */
    unsigned       spans;  /* so far */
};

ebpfMonTraceSpans *ebpfMonTraceSpansNew(const ebpfMonTraceSpansUses *uses)
{
    ebpfMonTraceSpans *x = calloc(1, sizeof(*x));

    if (x)
        x->uses = *uses;
    return x;
}

void ebpfMonTraceSpansFree(ebpfMonTraceSpans *x)
{
    if (!x)
        return;
    for (unsigned i = 0; i < EBPFMON_TRACE_CHAINS; i++)
        free(x->times[i]);
    free(x);
}

static void getRecordSpan(const ebpfMonTraceSpans *x, const ebpfMonTraceChain *c, uint32_t node, uint8_t id[8])
{
    ebpfMonChainId chain = ebpfMonTraceChainGetId(c);

    ebpfMonChainGetSpanId(x->uses.salt, &chain, node + 1, id);
}

static void getChainSpan(const ebpfMonTraceSpans *x, const ebpfMonTraceChain *c, uint8_t id[8])
{
    ebpfMonChainId chain = ebpfMonTraceChainGetId(c);

    ebpfMonChainGetSpanId(x->uses.salt, &chain, 0, id);
}

/* The parent of the records of the chain that no other record made process. A chain that completes a record has no span
 * of its own. */
static void getSpanOfRoots(const ebpfMonTraceSpans *x, const ebpfMonWalkChain *c, uint8_t id[8])
{
    if (c->completes)
        getRecordSpan(x, c->above->chain, c->nodeAbove, id);
    else
        getChainSpan(x, c->chain, id);
}

/* Where the time of a chain went. */
static void addWaits(ebpfMonSpan *s, const ebpfMonTraceChain *chain)
{
    const struct ebpfMonChain *c = &chain->chain;
    uint64_t slept = ebpfMonTraceChainGetSlept(chain);
    char name[24];

    ebpfMonTextCopyBytes(name, sizeof(name), c->comm, EBPFMON_COMM_MAX - 1);
    ebpfMonSpanAddText(s, "thread.name", name);
    ebpfMonSpanAddInteger(s, "thread.id", c->head.tid);
    ebpfMonSpanAddDouble(s, "epics.chain.wait", (double)c->wait / 1000);
    if (c->queueWait)
        ebpfMonSpanAddDouble(s, "epics.chain.queue_wait", (double)c->queueWait / 1000);
    ebpfMonSpanAddDouble(s, "epics.chain.slept", (double)slept / 1000);
    ebpfMonSpanAddDouble(s, "epics.chain.cpu_wait", (double)c->cpuWait / 1000);
    if (slept && c->syscall >= 0) {
        ebpfMonSyscallName(c->syscall, name, sizeof(name));
        ebpfMonSpanAddText(s, "epics.chain.syscall", name);
    }
}

/* --- the tree --- */

/* Times follow from time stamps. A record begins at the time stamp of the record before it, or with the first record
 * that it made process, if that is earlier. It ends with the last record that it made process. */
static void findTimes(const ebpfMonTraceSpans *x, const ebpfMonWalkChain *c, recordTimes *times)
{
    const ebpfMonTraceShape *s = c->shape;
    uint64_t first = c->chain->chain.begin + c->chain->chain.wait + x->offset;
    uint64_t last = c->chain->chain.head.ktime + x->offset, before = first;

    for (uint32_t i = 0; i < s->nodes; i++) {
        uint64_t at = (uint64_t)s->node[i].time;

        if (!s->rec[i] || at < before || at > last) /* the time stamp of a device (TSE) tells nothing */
            at = s->rec[i] && at > last ? last : before;
        times->from[i] = before;
        times->to[i] = at;
        before = at;
    }
    for (uint32_t k = s->nodes; k-- > 0;) {
        uint32_t i = s->order[k], p = s->node[i].parent;

        if (p == EBPFMON_NO_PARENT)
            continue;
        if (times->from[i] < times->from[p])
            times->from[p] = times->from[i];
        if (times->to[i] > times->to[p])
            times->to[p] = times->to[i];
    }
}

/* A chain that was handed over. */
static void exportHandedOver(ebpfMonTraceSpans *x, const ebpfMonWalkChain *c)
{
    const ebpfMonTraceChain *chain = c->chain;
    const char *root = ebpfMonCatalogueName(x->t->cat, chain->chain.rootSlot);
    ebpfMonSpan *s = &x->span;
    char how[40];

    ebpfMonTraceDescribeHandOver(x->t, chain, how, sizeof(how));
    beginSpan(s, x->trace->id, root);
    setSpanIoc(s, x->t);
    getChainSpan(x, chain, s->id);
    if (c->nodeAbove == EBPFMON_NO_PARENT)
        getSpanOfRoots(x, c->above, s->parent);
    else
        getRecordSpan(x, c->above->chain, c->nodeAbove, s->parent);
    s->start = chain->chain.begin + x->offset;
    s->end = chain->chain.head.ktime + x->offset;
    ebpfMonSpanAddText(s, "epics.record.name", root);
    ebpfMonSpanAddText(s, "epics.chain.cause", how);
    ebpfMonSpanAddInteger(s, "epics.chain.records", chain->chain.total);
    if (chain->delay)
        ebpfMonSpanAddDouble(s, "epics.chain.delay", (double)chain->delay / 1000);
    addWaits(s, chain);
    x->uses.sink.add(x->uses.sink.arg, s);
}

static int exportChain(void *arg, const ebpfMonWalkChain *c)
{
    ebpfMonTraceSpans *x = arg;

    if (c->above && !c->completes) {
        if (x->spans++ >= SPANS_MAX)
            return 1;
        exportHandedOver(x, c);
    }
    if (!x->times[c->level])
        x->times[c->level] = malloc(sizeof(*x->times[c->level]));
    if (!x->times[c->level])
        return 1;
    findTimes(x, c, x->times[c->level]);
    return 0;
}

static void describeRecord(ebpfMonTraceSpans *x, const ebpfMonWalkRecord *r)
{
    ebpfMonSpan *s = &x->span;
    char value[256];

    if (r->via[0])
        ebpfMonSpanAddText(s, "epics.link.field", r->via);
    ebpfMonSpanAddText(s, "epics.record.name", ebpfMonCatalogueName(x->t->cat, r->index));
    ebpfMonSpanAddText(s, "epics.record.type", x->t->cat->rtype[x->t->cat->rec[r->index].rtype].name);
    if (!r->rec) {
        ebpfMonSpanAddBool(s, "epics.record.asynchronous", 1);
        return;
    }
    ebpfMonTraceDescribeValue(x->t, r->rec, value, sizeof(value));
    ebpfMonSpanAddText(s, "epics.record.value", value);
    if (r->rec->sevr && r->rec->sevr < ALARM_NSEV && r->rec->stat < ALARM_NSTATUS) {
        ebpfMonSpanAddText(s, "epics.alarm.severity", epicsAlarmSeverityStrings[r->rec->sevr]);
        ebpfMonSpanAddText(s, "epics.alarm.status", epicsAlarmConditionStrings[r->rec->stat]);
    }
}

static int exportRecord(void *arg, const ebpfMonWalkChain *c, const ebpfMonWalkRecord *r)
{
    ebpfMonTraceSpans *x = arg;
    const recordTimes *times = x->times[c->level];
    ebpfMonSpan *s = &x->span;

    if (x->spans++ >= SPANS_MAX)
        return 1;
    beginSpan(s, x->trace->id, ebpfMonCatalogueName(x->t->cat, r->index));
    setSpanIoc(s, x->t);
    getRecordSpan(x, c->chain, r->node, s->id);
    if (r->parent == EBPFMON_NO_PARENT)
        getSpanOfRoots(x, c, s->parent);
    else
        getRecordSpan(x, c->chain, r->parent, s->parent);
    s->start = times->from[r->node];
    if (r->rec)
        s->end = times->to[r->node];
    else if (r->completedBy && !(r->completedBy->chain.flags & EBPFMON_CHAIN_BUSY))
        s->end = r->completedBy->chain.head.ktime + x->offset;
    else
        s->end = x->trace->end + x->offset;
    describeRecord(x, r);
    x->uses.sink.add(x->uses.sink.arg, s);
    return 0;
}

/* --- the first chain --- */

/* The span that stands for a chain of any trace. */
static void getSpanOfCause(const ebpfMonTraceSpans *x, const ebpfMonChainId *chain, uint8_t id[8])
{
    ebpfMonChainId owner = ebpfMonTracesFindSpanOwner(x->uses.traces, chain);

    ebpfMonChainGetSpanId(x->uses.salt, &owner, 0, id);
}

/* The span of what caused the trace; else a link to the trace from which it came, if that was full. */
static void setParent(ebpfMonTraceSpans *x, ebpfMonSpan *s)
{
    const ebpfMonTrace *trace = x->trace;
    const ebpfMonTraceChain *first = trace->first;
    ebpfMonChainId beginner = ebpfMonTraceChainGetBeginner(first);
    const uint8_t *before;
    uint8_t id[8];

    if (ebpfMonTraceHasMessage(trace)) {
        s->kind = ebpfMonSpanServer;
        ebpfMonMessageGetSpanId(&trace->put->key.peer, trace->put->key.seq, s->parent);
    } else if (trace->put && trace->put->linkChain.iocId) {
        getSpanOfCause(x, &trace->put->linkChain, s->parent);
    } else if (trace->source.chain.iocId && trace->source.place < SPANS_MAX) {
        ebpfMonChainGetSpanId(x->uses.salt, &trace->source.chain, trace->source.place + 1, s->parent);
    } else if (trace->source.chain.iocId) {
        getSpanOfCause(x, &trace->source.chain, s->parent);
    } else if (!trace->put && beginner.begin && ebpfMonTracesFindFinishedId(x->uses.traces, &beginner)) {
        getSpanOfCause(x, &beginner, s->parent);
    } else if (!trace->put && first->source.iocId &&
               (before = ebpfMonTracesFindFinishedId(x->uses.traces, &first->source))) {
        getSpanOfCause(x, &first->source, id);
        ebpfMonSpanAddLink(s, before, id);
    }
}

/* Nonzero: perhaps not all its spans are sent, because there are too many, or there is no room for them. */
static int isCutShort(const ebpfMonTraceSpans *x)
{
    const ebpfMonTrace *trace = x->trace;
    unsigned spans = trace->records + trace->chains;

    return spans > SPANS_MAX ||
           (x->uses.sink.hasRoom &&
            !x->uses.sink.hasRoom(x->uses.sink.arg, spans + trace->linkWrites + EBPFMON_TRACE_ASYNC));
}

static void exportFirstChain(ebpfMonTraceSpans *x)
{
    const ebpfMonTrace *trace = x->trace;
    const struct ebpfMonChain *c = &trace->first->chain;
    const char *root = ebpfMonCatalogueName(x->t->cat, c->rootSlot);
    ebpfMonSpan *s = &x->span;
    char cause[512];

    beginSpan(s, trace->id, root);
    setSpanIoc(s, x->t);
    if (c->total && !(c->flags & EBPFMON_CHAIN_LATE)) { /* else no histogram has it */
        snprintf(s->root, sizeof(s->root), "%s", root);
        s->latency = c->head.ktime - c->begin - c->wait;
    }
    getChainSpan(x, trace->first, s->id);
    setParent(x, s);
    s->start = c->begin + x->offset;
    s->end = trace->end + x->offset;
    ebpfMonTraceDescribeCause(x->t, trace, cause, sizeof(cause));
    ebpfMonSpanAddText(s, "epics.record.name", root);
    ebpfMonSpanAddText(s, "epics.chain.cause", cause);
    ebpfMonSpanAddInteger(s, "epics.chain.records", ebpfMonTraceCountRecords(trace));
    if (ebpfMonTraceHasMessage(trace))
        addSpanConnection(s, &trace->put->key.peer);
    ebpfMonSpanAddBool(s, "epics.chain.incomplete",
                       trace->isIncomplete || c->flags & EBPFMON_CHAIN_LATE || isCutShort(x));
    addWaits(s, trace->first);
    x->uses.sink.add(x->uses.sink.arg, s);
}

/* --- messages --- */

/* The put that caused the trace, if its client is a program on this host, or an IOC whose chain was not kept. */
static void exportSender(ebpfMonTraceSpans *x)
{
    const ebpfMonTrace *trace = x->trace;
    const ebpfMonPutSummary *put = trace->put;
    uint64_t begin = trace->first->chain.begin, at;
    ebpfMonSpan *s = &x->span;
    char name[sizeof(s->name)];

    if (!ebpfMonTraceHasMessage(trace) || !put->pid ||
        (put->linkChain.iocId && (ebpfMonTracesFindOpen(x->uses.traces, &put->linkChain) ||
                                  ebpfMonTracesFindFinishedId(x->uses.traces, &put->linkChain))))
        return;
    snprintf(name, sizeof(name), "put %.80s", put->pv);
    beginSpan(s, trace->id, name);
    setSpanProgram(s, x->uses.targets, put->pid, put->command);
    ebpfMonSpanAddText(s, "user.name", put->user);
    /* the chain begins when the thread asks for the lock, and it enters dbPut after that */
    at = (put->key.at < begin ? put->key.at : begin) + x->offset;
    setSpanClient(s, &put->key.peer, put->key.seq, put->pv, at, at);
    x->uses.sink.add(x->uses.sink.arg, s);
}

/* A message that a chain sent. If its receiver is not watched here it begins a trace for the monitor there, unless the
 * whole trace has the id of the message. */
static void exportMessage(ebpfMonTraceSpans *x, const ebpfMonTraceChain *c, const ebpfMonLinkMessage *m)
{
    ebpfMonSpan *s = &x->span;
    uint8_t id[16], parent[8];
    char name[sizeof(s->name)];

    snprintf(name, sizeof(name), "put %.80s", m->channel);
    beginSpan(s, x->trace->id, name);
    setSpanIoc(s, x->t);
    ebpfMonMessageGetTraceId(&m->peer, m->seq, id);
    getChainSpan(x, ebpfMonTraceFindSpanOwner(x->trace, c), parent);
    if (m->inside || memcmp(id, x->trace->id, sizeof(id)) == 0) {
        memcpy(s->parent, parent, sizeof(parent));
    } else {
        memcpy(s->trace, id, sizeof(id));
        ebpfMonSpanAddLink(s, x->trace->id, parent);
    }
    ebpfMonSpanAddText(s, "epics.put.link", m->link);
    setSpanClient(s, &m->peer, m->seq, m->channel, m->at + x->offset, m->seenAt + x->offset);
    x->uses.sink.add(x->uses.sink.arg, s);
}

static void exportMessages(ebpfMonTraceSpans *x, const ebpfMonTraceChain *c)
{
    ebpfMonChainId chain = ebpfMonTraceChainGetId(c);
    ebpfMonLinkMessage list[EBPFMON_LINK_MESSAGES];
    unsigned n = ebpfMonLinkMessagesFind(x->uses.linkMessages, &chain, list, EBPFMON_LINK_MESSAGES);

    for (unsigned i = 0; i < n; i++)
        if (list[i].seen && list[i].isMessage)
            exportMessage(x, c, &list[i]);
}

void ebpfMonTraceSpansExport(ebpfMonTraceSpans *x, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset)
{
    static const ebpfMonTraceVisitor visitor = { .enterChain = exportChain, .enterRecord = exportRecord };

    if (!x->uses.sink.isWanted(x->uses.sink.arg))
        return;
    x->t = t;
    x->trace = trace;
    x->offset = unixOffset;
    x->spans = 0;
    chooseId(&x->uses, trace, 0);
    exportSender(x);
    exportFirstChain(x);
    ebpfMonTraceWalkRun(x->uses.walk, trace, &visitor, x);
    for (const ebpfMonTraceChain *c = trace->first; c && trace->linkWrites; c = c->next)
        exportMessages(x, c);
}

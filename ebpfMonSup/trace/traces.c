/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "trace/handOvers.h"
#include "put/threadPuts.h"
#include "trace/linkMessages.h"
#include "trace/finishedTraces.h"
#include "trace/traces.h"

#define OPEN_MAX    256
#define RECORDS_MAX 65536         /* of all open traces */
#define BUSY_NS     10000000000ull /* a motor moves for longer: then it is told that it still does */
#define GONE_NS     1000000000ull /* of an IOC that ended nothing more comes, and soon its names are gone */
#define PUT_NS      1000000000ull
#define SEND_NS     1000000000ull /* … or its link is not connected */
#define SENDER_NS   100000000ull
#define SENDERS     8             /* IOCs that a trace came through while it is open */
#define SENDS_MAX   8             /* of one half */

static ebpfMonTraceFn teller;
static ebpfMonTrace *first, *last; /* the oldest first */
static unsigned open;
static uint32_t records;
static unsigned wanted;            /* puts */
static unsigned early;

static void release(ebpfMonTrace *trace)
{
    while (trace->first) {
        ebpfMonTraceChain *half = trace->first;

        trace->first = half->next;
        ebpfMonTraceChainForget(half);
        free(half);
    }
    wanted -= (unsigned)!!trace->wantsPut;
    early -= (unsigned)!!trace->early;
    records -= trace->records;
    ebpfMonCatalogueRelease(trace->cat);
    free(trace->put);
    free(trace->caLink);
    free(trace);
}

void ebpfMonTracesStart(ebpfMonTraceFn tell)
{
    teller = tell;
}

static void tell(ebpfMonTrace *trace, ebpfMonTrace *before)
{
    ebpfMonTarget *t;

    *(before ? &before->next : &first) = trace->next;
    if (last == trace)
        last = before;
    open--;
    for (unsigned i = 0; i < EBPFMON_TRACE_BUSY; i++)
        trace->cut |= trace->busy[i] != 0;
    trace->cut |= trace->handed != 0 || trace->early;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    t = ebpfMonTargetsFindById(ebpfMonTheTargets, trace->iocId);
    if (t && t->cat == trace->cat) /* else its records were read anew since, and the indexes are of other ones */
        teller(t, trace);
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    if (trace->hasId)
        ebpfMonFinishedTracesAdd(trace);
    release(trace);
}

ebpfMonChainId ebpfMonTraceSender(const ebpfMonTrace *trace)
{
    return trace->put ? trace->put->linkChain : trace->source.chain;
}

/* What it wrote through CA links goes out a little later: without its message nobody knows its trace elsewhere. */
static int sends(const ebpfMonTrace *trace, uint64_t now)
{
    ebpfMonLinkMessage list[SENDS_MAX];

    if (!trace->sends || now - trace->since > SEND_NS || !ebpfMonExportWantsSpans())
        return 0;
    for (const ebpfMonTraceChain *half = trace->first; half; half = half->next) {
        ebpfMonChainId id = ebpfMonTraceChainId(half);

        for (unsigned n = ebpfMonLinkMessagesFind(&id, list, SENDS_MAX); n-- > 0;)
            if (!list[n].seen)
                return 1;
    }
    return 0;
}

static int isYoung(const ebpfMonTrace *trace, uint64_t now)
{
    return now < trace->since + SENDER_NS;
}

/* Whose trace it will be depends on those further up: on puts that may be known later than its own, and on chains that
 * may end later than what they set going. */
static int undecided(const ebpfMonTrace *trace, uint64_t now)
{
    for (unsigned i = 0; trace && !trace->hasId && i < SENDERS; i++) {
        ebpfMonChainId chain = ebpfMonTraceSender(trace);
        const ebpfMonTrace *above = chain.iocId ? ebpfMonTracesFindByChain(&chain) : NULL;

        if (trace->wantsPut || (trace->caLink && isYoung(trace, now)))
            return 1;
        if (chain.iocId && !above)
            return isYoung(trace, now) && !ebpfMonFinishedTracesFind(&chain);
        trace = above;
    }
    return 0;
}

static int sender(const ebpfMonTrace *trace, uint64_t now)
{
    return (trace->caLink && isYoung(trace, now)) || (ebpfMonExportWantsSpans() && undecided(trace, now));
}

/* "now" may be a little before the trace's end, by another clock reading. */
static int isComplete(const ebpfMonTrace *trace, uint64_t now)
{
    for (unsigned i = 0; i < EBPFMON_TRACE_BUSY; i++)
        if (trace->busy[i])
            return 0;
    if (now < trace->since)
        now = trace->since;
    return !trace->wantsPut && !trace->handed && !trace->early && !sends(trace, now) && !sender(trace, now);
}

static void busy(ebpfMonTrace *trace, uint32_t number)
{
    unsigned i = 0;

    if (!number)
        return;
    while (i < EBPFMON_TRACE_BUSY && trace->busy[i] && trace->busy[i] != number)
        i++;
    if (i < EBPFMON_TRACE_BUSY)
        trace->busy[i] = number;
    else
        trace->cut = 1;
}

/* The open trace that has the half which left this chain's root processing. */
static ebpfMonTrace *traceOf(uint32_t iocId, const struct ebpfMonChain *chain)
{
    ebpfMonChainId id = { .iocId = iocId, .tid = chain->causeTid, .begin = chain->causeBegin };

    return chain->causeBegin ? ebpfMonTracesFindByChain(&id) : NULL;
}

ebpfMonTrace *ebpfMonTracesFindByChain(const ebpfMonChainId *chain)
{
    const ebpfMonTraceChain *half = ebpfMonTraceChainFind(chain);

    return half ? half->trace : NULL;
}

static void keepPut(ebpfMonTrace *trace, const ebpfMonPutSummary *put)
{
    trace->put = malloc(sizeof(*put));
    if (trace->put)
        *trace->put = *put;
}

static void lookForPut(ebpfMonTrace *trace, const ebpfMonThreadPut *p)
{
    if (!p)
        return;
    trace->putId = p->id;
    if (p->done) {
        keepPut(trace, &p->put);
        return;
    }
    trace->wantsPut = 1;
    wanted++;
}

static void append(ebpfMonTrace *trace, ebpfMonTraceChain *half)
{
    *(trace->last ? &trace->last->next : &trace->first) = half;
    trace->last = half;
    half->trace = trace;
    trace->chains++;
    trace->records += half->count;
    if (half->chain.head.ktime > trace->since)
        trace->since = half->chain.head.ktime;
}

static ebpfMonTrace *beforeOf(const ebpfMonTrace *trace)
{
    ebpfMonTrace *before = NULL;

    for (ebpfMonTrace *p = first; p != trace; p = p->next)
        before = p;
    return before;
}

static void drop(ebpfMonTrace *trace)
{
    ebpfMonTrace *before = beforeOf(trace);

    *(before ? &before->next : &first) = trace->next;
    if (last == trace)
        last = before;
    open--;
    release(trace);
}

/* Who began its root is not in the trace, so its place is below the chain that handed it over. */
static void below(ebpfMonTraceChain *half)
{
    half->chain.causeBegin = half->chain.causeTid = 0;
}

/* What was handed over can be done before the chain that did it is: such a trace has waited for its beginning. */
static void adopt(ebpfMonTrace *trace, const ebpfMonChainId *id)
{
    ebpfMonTrace *next;

    for (ebpfMonTrace *child = early ? first : NULL; child; child = next) {
        const ebpfMonChainId *by = &child->first->by;

        next = child->next;
        if (!child->early || by->begin != id->begin || by->tid != id->tid || by->iocId != id->iocId ||
            child->cat != trace->cat || trace->chains + child->chains > EBPFMON_TRACE_CHAINS)
            continue;
        below(child->first);
        while (child->first) {
            ebpfMonTraceChain *half = child->first;

            child->first = half->next;
            half->next = NULL;
            append(trace, half);
        }
        for (unsigned i = 0; i < EBPFMON_TRACE_BUSY; i++)
            busy(trace, child->busy[i]);
        trace->handed += child->handed;
        trace->sends += child->sends;
        trace->cut |= child->cut;
        child->records = 0; /* they are the other one's now */
        drop(child);
    }
}

/* The trace that a chain is of which another one handed over. A client's own put that went on in a callback's thread,
 * because the record was busy (dbNotify.c), is not of what the record was busy with. */
static ebpfMonTrace *handedTo(uint32_t iocId, const struct ebpfMonHandOver *from, const ebpfMonThreadPut *put)
{
    ebpfMonChainId id = { .iocId = iocId };
    ebpfMonTrace *trace;

    if (!from || !from->by.begin || (put && put->byClient))
        return NULL;
    id.tid = from->by.tid;
    id.begin = from->by.begin;
    trace = ebpfMonTracesFindByChain(&id);
    if (trace && trace->chains == EBPFMON_TRACE_CHAINS) { /* what keeps itself going begins anew */
        trace->cut = 1;
        return NULL;
    }
    return trace;
}

/* Called while the targets' lock is held. */
static void lookForSource(ebpfMonTarget *t, ebpfMonTrace *trace)
{
    if (ebpfMonCpLinkSourcesFind(t, trace->first->chain.rootSlot, trace->caLink, &trace->source))
        return;
    free(trace->caLink);
    trace->caLink = NULL;
}

static ebpfMonTrace *newTrace(ebpfMonTarget *t)
{
    ebpfMonTrace *trace = calloc(1, sizeof(*trace));

    if (!trace)
        return NULL;
    trace->iocId = t->iocId;
    trace->cat = ebpfMonCatalogueHold(t->cat);
    *(last ? &last->next : &first) = trace;
    last = trace;
    open++;
    return trace;
}

/* The first half of a trace says what set it going. */
static void begins(ebpfMonTarget *t, ebpfMonTrace *trace, const struct ebpfMonHandOver *from, const ebpfMonThreadPut *put)
{
    lookForPut(trace, put);
    if (trace->first->by.iocId && trace->first->chain.flags & EBPFMON_CHAIN_EARLY) {
        trace->early = 1;
        early++;
    }
    if (!put && from && from->isLink && (trace->caLink = malloc(sizeof(from->link)))) {
        memcpy(trace->caLink, from->link, sizeof(from->link));
        lookForSource(t, trace);
    }
}

void ebpfMonTracesAddChain(ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                        uint32_t count)
{
    const struct ebpfMonHandOver *from = chain->outer ? NULL : ebpfMonHandOversFind(chain);
    uint32_t root = chain->rootSlot - t->slot, handOvers = chain->handOvers;
    const ebpfMonThreadPut *put = ebpfMonThreadPutsFindForChain(chain, t->cat->rec[root].addr);
    ebpfMonTrace *trace = traceOf(t->iocId, chain);
    ebpfMonLinkMessage list[SENDS_MAX];
    ebpfMonChainId id;
    ebpfMonTraceChain *half;
    int completes = trace != NULL;

    if (!trace)
        trace = handedTo(t->iocId, from, put);
    if (trace && trace->cat != t->cat)
        trace = NULL;
    while (first && (records + count > RECORDS_MAX || (!trace && open >= OPEN_MAX))) {
        if (first == trace)
            trace = NULL;
        tell(first, NULL);
    }
    if (trace && trace->chains == EBPFMON_TRACE_CHAINS) {
        trace->cut = 1;
        return;
    }
    half = ebpfMonTraceChainNew(t, chain, rec, count);
    if (half && !trace)
        trace = newTrace(t);
    if (!half || !trace) {
        free(half);
        return;
    }
    if (from && from->by.begin && !(put && put->byClient))
        ebpfMonTraceChainSetSource(t, half, from);
    if (!completes && trace->chains)
        below(half);
    append(trace, half);
    ebpfMonTraceChainRemember(half);
    records += half->count;
    ebpfMonTraceChainNoteStamps(half);
    if (trace->chains == 1)
        begins(t, trace, from, put);
    for (unsigned i = 0; i < EBPFMON_TRACE_BUSY && !(chain->flags & EBPFMON_CHAIN_BUSY); i++)
        if (trace->busy[i] == half->chain.rootSlot + 1)
            trace->busy[i] = 0;
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
        busy(trace, half->chain.async[i]);
    id = ebpfMonTraceChainId(half);
    if (handOvers) {
        uint32_t done = ebpfMonHandOversTakeEnded(&id);

        trace->handed += handOvers > done ? handOvers - done : 0;
        adopt(trace, &id);
    }
    if (ebpfMonExportWantsSpans())
        trace->sends += ebpfMonLinkMessagesFind(&id, list, SENDS_MAX);
    trace->cut |= !!(chain->flags & EBPFMON_CHAIN_MORE) || half->count < chain->total;
    if (!trace->sends && isComplete(trace, trace->since))
        tell(trace, beforeOf(trace));
}

void ebpfMonTracesEndHandOver(const struct ebpfMonHandOverEvent *ev)
{
    ebpfMonChainId id = { .iocId = ev->head.iocId, .tid = ev->what.by.tid, .begin = ev->what.by.begin };
    ebpfMonTrace *trace = ebpfMonTracesFindByChain(&id);

    if (!trace) {
        ebpfMonHandOversEndEarly(&id);
        return;
    }
    if (trace->handed)
        trace->handed--;
    if (!trace->sends && isComplete(trace, trace->since))
        tell(trace, beforeOf(trace));
}

static void copy(ebpfMonPutSummary *to, const ebpfMonPut *put, const ebpfMonMessageKey *key)
{
    memcpy(to->pv, put->pv, sizeof(to->pv));
    memcpy(to->who, put->who, sizeof(to->who));
    memcpy(to->origin, put->origin, sizeof(to->origin));
    memcpy(to->user, put->user, sizeof(to->user));
    memcpy(to->peer, put->peer, sizeof(to->peer));
    memcpy(to->server, put->server, sizeof(to->server));
    memcpy(to->command, put->command, sizeof(to->command));
    to->pid = put->peerPid;
    memcpy(to->linkIoc, put->linkIoc, sizeof(to->linkIoc));
    to->linkChain = put->linkChain;
    to->through = put->through;
    to->key = *key;
}

void ebpfMonTracesAddPut(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonPut *put, const ebpfMonMessageKey *key)
{
    ebpfMonPutSummary mine;

    copy(&mine, put, key);
    ebpfMonThreadPutsComplete(iocId, tid, id, &mine);
    for (ebpfMonTrace *trace = wanted ? first : NULL, *before = NULL; trace; before = trace, trace = trace->next) {
        if (!trace->wantsPut || trace->iocId != iocId || trace->putId != id || trace->first->chain.head.tid != tid)
            continue;
        trace->wantsPut = 0;
        wanted--;
        keepPut(trace, &mine);
        if (!trace->sends && isComplete(trace, trace->since))
            tell(trace, before);
        return;
    }
}

static int isGone(const ebpfMonTrace *trace)
{
    ebpfMonTarget *t = ebpfMonTargetsFindById(ebpfMonTheTargets, trace->iocId);

    return !t || t->gone;
}

/* A CP link's source may have ended later than what it set going. */
static void lookAgain(ebpfMonTrace *trace)
{
    ebpfMonTarget *t = ebpfMonTargetsFindById(ebpfMonTheTargets, trace->iocId);

    if (t && t->cat == trace->cat)
        lookForSource(t, trace);
}

void ebpfMonTracesTick(uint64_t now, int all)
{
    ebpfMonTrace *before = NULL, *next;

    for (ebpfMonTrace *trace = first; trace; trace = next) {
        uint64_t age = now > trace->since ? now - trace->since : 0;
        int gone = 0;

        next = trace->next;
        if (trace->wantsPut && age > PUT_NS) { /* it was lost */
            trace->wantsPut = 0;
            wanted--;
        }
        if (age >= GONE_NS || trace->caLink) {
            ebpfMonTargetsLock(ebpfMonTheTargets);
            gone = age >= GONE_NS && isGone(trace);
            if (trace->caLink)
                lookAgain(trace);
            ebpfMonTargetsUnlock(ebpfMonTheTargets);
        }
        if (!all && !isComplete(trace, now) && age < BUSY_NS && !gone)
            before = trace;
        else
            tell(trace, before);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "export/span.h"
#include "monitor/sends.h"
#include "monitor/traces.h"

#define OPEN_MAX    256
#define RECORDS_MAX 65536         /* of all open traces */
#define HALVES_MAX  64            /* of one */
#define BUSY_NS     10000000000ull /* a motor moves for longer: then it is told that it still does */
#define GONE_NS     1000000000ull /* of an IOC that ended nothing more comes, and soon its names are gone */
#define PUT_NS      1000000000ull
#define SEND_NS     1000000000ull /* … or its link is not connected */
#define SENDER_NS   100000000ull
#define SENDS_MAX   8             /* of one half */
#define TOLD        1024          /* chains whose trace is remembered */
#define THREADS     256           /* whose last put is remembered, by tid */

typedef struct {
    uint32_t iocId, tid;
    uint64_t at, id, precord;
    int      done;                /* "put" is valid */
    ebpfMonTracePut put;
} lastPut;

/* For those that it sent something to, and for what it left processing. */
typedef struct {
    ebpfMonChainId chain;
    uint8_t id[16];
} toldTrace;

static ebpfMonTraceFn teller;
static toldTrace told[TOLD];
static unsigned nextTold;
static ebpfMonTrace *first, *last; /* the oldest first */
static unsigned open;
static uint32_t records;
static unsigned wanted;            /* puts */
static lastPut puts[THREADS];

static int byTime(const void *a, const void *b)
{
    const struct ebpfMonChainRec *x = a, *y = b;
    int64_t tx = ebpfMonStampNs(x->time), ty = ebpfMonStampNs(y->time);

    return tx < ty ? -1 : tx > ty;
}

static void release(ebpfMonTrace *trace)
{
    while (trace->first) {
        ebpfMonHalf *half = trace->first;

        trace->first = half->next;
        free(half);
    }
    wanted -= (unsigned)!!trace->wantsPut;
    records -= trace->records;
    ebpfMonCatalogueRelease(trace->cat);
    free(trace->put);
    free(trace);
}

void ebpfMonTracesStart(ebpfMonTraceFn tell)
{
    teller = tell;
}

ebpfMonChainId ebpfMonHalfId(const ebpfMonHalf *half)
{
    return (ebpfMonChainId){
        .iocId = half->chain.head.iocId, .tid = half->chain.head.tid, .begin = half->chain.begin,
    };
}

static void remember(const ebpfMonTrace *trace)
{
    for (const ebpfMonHalf *half = trace->first; half; half = half->next) {
        toldTrace *x = &told[nextTold++ % TOLD];

        x->chain = ebpfMonHalfId(half);
        memcpy(x->id, trace->id, sizeof(x->id));
    }
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
    ebpfMonTargetsLock();
    t = ebpfMonTargetById(trace->iocId);
    if (t && t->cat == trace->cat) /* else its records were read anew since, and the indexes are of other ones */
        teller(t, trace);
    ebpfMonTargetsUnlock();
    if (trace->hasId && (trace->sends || trace->cut))
        remember(trace);
    release(trace);
}

static ebpfMonChainId begunBy(uint32_t iocId, const struct ebpfMonChain *chain)
{
    return (ebpfMonChainId){ .iocId = iocId, .tid = chain->causeTid, .begin = chain->causeBegin };
}

ebpfMonChainId ebpfMonBegunBy(const ebpfMonHalf *half)
{
    return begunBy(half->chain.head.iocId, &half->chain);
}

/* What it wrote through CA links goes out a little later: without its message nobody knows its trace elsewhere. */
static int sends(const ebpfMonTrace *trace, uint64_t now)
{
    ebpfMonSend list[SENDS_MAX];

    if (!trace->sends || now - trace->since > SEND_NS || !ebpfMonExportsSpans())
        return 0;
    for (const ebpfMonHalf *half = trace->first; half; half = half->next) {
        ebpfMonChainId id = ebpfMonHalfId(half);

        for (unsigned n = ebpfMonSendsOf(&id, list, SENDS_MAX); n-- > 0;)
            if (!list[n].seen)
                return 1;
    }
    return 0;
}

const uint8_t *ebpfMonTracesTold(const ebpfMonChainId *chain)
{
    for (unsigned i = 0; i < TOLD; i++)
        if (told[i].chain.iocId == chain->iocId && told[i].chain.tid == chain->tid &&
            told[i].chain.begin == chain->begin)
            return told[i].id;
    return NULL;
}

/* The chain that sent the put may end after the one that the put set going. */
static int sender(const ebpfMonTrace *trace, uint64_t now)
{
    const ebpfMonChainId *chain = trace->put ? &trace->put->linkChain : NULL;

    return chain && chain->iocId && now - trace->since < SENDER_NS && ebpfMonExportsSpans() &&
           !ebpfMonTracesFind(chain) && !ebpfMonTracesTold(chain);
}

/* "now" may be a little before the trace's end, by another clock reading. */
static int isComplete(const ebpfMonTrace *trace, uint64_t now)
{
    for (unsigned i = 0; i < EBPFMON_TRACE_BUSY; i++)
        if (trace->busy[i])
            return 0;
    if (now < trace->since)
        now = trace->since;
    return !trace->wantsPut && !sends(trace, now) && !sender(trace, now);
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
    ebpfMonChainId id = begunBy(iocId, chain);

    return chain->causeBegin ? ebpfMonTracesFind(&id) : NULL;
}

ebpfMonTrace *ebpfMonTracesFind(const ebpfMonChainId *chain)
{
    for (ebpfMonTrace *trace = first; trace; trace = trace->next)
        for (ebpfMonHalf *half = trace->iocId == chain->iocId ? trace->first : NULL; half; half = half->next)
            if (half->chain.begin == chain->begin && half->chain.head.tid == chain->tid)
                return trace;
    return NULL;
}

static void keepPut(ebpfMonTrace *trace, const ebpfMonTracePut *put)
{
    trace->put = malloc(sizeof(*put));
    if (trace->put)
        *trace->put = *put;
}

/* Whether the put that this thread made last began the chain. */
static void lookForPut(ebpfMonTrace *trace, uint64_t root)
{
    const struct ebpfMonChain *c = &trace->first->chain;
    const lastPut *p = &puts[c->head.tid % THREADS];

    if (p->tid != c->head.tid || p->iocId != trace->iocId || p->precord != root || p->at < c->begin ||
        p->at > c->head.ktime)
        return;
    trace->putId = p->id;
    if (p->done) {
        keepPut(trace, &p->put);
        return;
    }
    trace->wantsPut = 1;
    wanted++;
}

static ebpfMonHalf *halfOf(const ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                           uint32_t count)
{
    ebpfMonHalf *half = malloc(sizeof(*half) + count * sizeof(*rec));
    uint32_t n = 0;

    if (!half)
        return NULL;
    half->next = NULL;
    half->chain = *chain;
    half->chain.rootSlot -= t->slot;
    half->chain.outer = chain->outer && chain->outer - 1 - t->slot < t->cat->count ? chain->outer - t->slot : 0;
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++) {
        uint32_t index = chain->async[i] - 1 - t->slot;

        half->chain.async[i] = chain->async[i] && index < t->cat->count ? index + 1 : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        if (rec[i].slot - t->slot < t->cat->count) {
            half->rec[n] = rec[i];
            half->rec[n++].slot -= t->slot;
        }
    half->count = n;
    qsort(half->rec, n, sizeof(half->rec[0]), byTime);
    return half;
}

void ebpfMonTracesChain(ebpfMonTarget *t, const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec,
                        uint32_t count)
{
    ebpfMonTrace *trace = traceOf(t->iocId, chain), *before = NULL;
    ebpfMonSend list[SENDS_MAX];
    ebpfMonChainId id;
    ebpfMonHalf *half;

    if (trace && trace->cat != t->cat)
        trace = NULL;
    while (first && (records + count > RECORDS_MAX || (!trace && open >= OPEN_MAX))) {
        if (first == trace)
            trace = NULL;
        tell(first, NULL);
    }
    if (trace && trace->halves == HALVES_MAX) {
        trace->cut = 1;
        return;
    }
    half = halfOf(t, chain, rec, count);
    if (half && !trace && (trace = calloc(1, sizeof(*trace)))) {
        trace->iocId = t->iocId;
        trace->cat = ebpfMonCatalogueHold(t->cat);
        *(last ? &last->next : &first) = trace;
        last = trace;
        open++;
    }
    if (!half || !trace) {
        free(half);
        return;
    }
    *(trace->last ? &trace->last->next : &trace->first) = half;
    trace->last = half;
    trace->since = chain->head.ktime;
    trace->records += half->count;
    records += half->count;
    if (trace->halves++ == 0)
        lookForPut(trace, t->cat->rec[half->chain.rootSlot].addr);
    for (unsigned i = 0; i < EBPFMON_TRACE_BUSY && !(chain->flags & EBPFMON_CHAIN_BUSY); i++)
        if (trace->busy[i] == half->chain.rootSlot + 1)
            trace->busy[i] = 0;
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
        busy(trace, half->chain.async[i]);
    id = ebpfMonHalfId(half);
    if (ebpfMonExportsSpans())
        trace->sends += ebpfMonSendsOf(&id, list, SENDS_MAX);
    trace->cut |= !!(chain->flags & EBPFMON_CHAIN_MORE) || half->count < chain->total;
    if (trace->sends || !isComplete(trace, trace->since))
        return;
    for (ebpfMonTrace *p = first; p != trace; p = p->next)
        before = p;
    tell(trace, before);
}

void ebpfMonTracesPutSeen(const struct ebpfMonPutEvent *ev)
{
    lastPut *p = &puts[ev->head.tid % THREADS];

    if (ev->site != EBPFMON_SITE_PUT || (ev->root && ev->root != ev->precord))
        return;
    p->iocId = ev->head.iocId;
    p->tid = ev->head.tid;
    p->at = ev->head.ktime;
    p->id = ev->id;
    p->precord = ev->precord;
    p->done = 0;
}

static void copy(ebpfMonTracePut *to, const ebpfMonPut *put, const ebpfMonJoinKey *key)
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

void ebpfMonTracesPutDone(uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonPut *put, const ebpfMonJoinKey *key)
{
    lastPut *p = &puts[tid % THREADS];
    ebpfMonTracePut mine;

    if (p->tid == tid && p->iocId == iocId && p->id == id) {
        copy(&p->put, put, key);
        p->done = 1;
    }
    for (ebpfMonTrace *trace = wanted ? first : NULL, *before = NULL; trace; before = trace, trace = trace->next) {
        if (!trace->wantsPut || trace->iocId != iocId || trace->putId != id || trace->first->chain.head.tid != tid)
            continue;
        trace->wantsPut = 0;
        wanted--;
        copy(&mine, put, key);
        keepPut(trace, &mine);
        if (!trace->sends && isComplete(trace, trace->since))
            tell(trace, before);
        return;
    }
}

static int isGone(const ebpfMonTrace *trace)
{
    ebpfMonTarget *t;
    int gone;

    ebpfMonTargetsLock();
    t = ebpfMonTargetById(trace->iocId);
    gone = !t || t->gone;
    ebpfMonTargetsUnlock();
    return gone;
}

void ebpfMonTracesTick(uint64_t now, int all)
{
    ebpfMonTrace *before = NULL, *next;

    for (ebpfMonTrace *trace = first; trace; trace = next) {
        uint64_t age = now > trace->since ? now - trace->since : 0;

        next = trace->next;
        if (trace->wantsPut && age > PUT_NS) { /* it was lost */
            trace->wantsPut = 0;
            wanted--;
        }
        if (!all && !isComplete(trace, now) && age < BUSY_NS && (age < GONE_NS || !isGone(trace)))
            before = trace;
        else
            tell(trace, before);
    }
}

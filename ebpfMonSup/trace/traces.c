/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "trace/traces.h"
#include "trace/traceText.h"

/* --- chains that hand over --- */

#define THREADS    4096  /* a power of two: threads that work on something that was handed over */
#define NEAR       8     /* places in which a thread is looked for */
#define EARLY_ENDS 16384 /* a power of two; also for source chains that sampling leaves out, which never come */

/* What a thread is working on. */
typedef struct {
    struct ebpfMonHandOverEvent begin; /* ktime 0: the place is free */
    uint32_t chains;                   /* that came of it and arrived */
} workingThread;

typedef struct {
    ebpfMonChainId source;
    uint32_t count;
    int      isPartial;
} earlyEnd;

struct ebpfMonHandOvers {
    workingThread thread[THREADS]; /* by thread id; if there are too many, one that has said nothing for long is
                                    * forgotten */
    earlyEnd early[EARLY_ENDS];    /* by hash; the newest source chain of each hash */
};

ebpfMonHandOvers *ebpfMonHandOversNew(void)
{
    return calloc(1, sizeof(ebpfMonHandOvers));
}

void ebpfMonHandOversFree(ebpfMonHandOvers *handOvers)
{
    free(handOvers);
}

/* NULL: it is not known. */
static workingThread *findThread(const ebpfMonHandOvers *handOvers, const struct ebpfMonHead *head)
{
    for (unsigned i = 0; i < NEAR; i++) {
        const workingThread *thread = &handOvers->thread[(head->tid + i) % THREADS];

        if (thread->begin.head.tid == head->tid && thread->begin.head.iocId == head->iocId)
            return (workingThread *)thread;
    }
    return NULL;
}

/* The place of the thread; if it has none, the place of the thread whose last event is the oldest. */
static workingThread *getThread(ebpfMonHandOvers *handOvers, const struct ebpfMonHead *head)
{
    workingThread *thread = findThread(handOvers, head), *oldest = &handOvers->thread[head->tid % THREADS];

    if (thread)
        return thread;
    for (unsigned i = 1; i < NEAR; i++) {
        thread = &handOvers->thread[(head->tid + i) % THREADS];
        if (thread->begin.head.ktime < oldest->begin.head.ktime)
            oldest = thread;
    }
    return oldest;
}

static int isSameSource(const struct ebpfMonHandOverEvent *a, const struct ebpfMonHandOverEvent *b)
{
    return a->head.iocId == b->head.iocId && a->head.tid == b->head.tid &&
           a->what.source.begin == b->what.source.begin && a->what.source.tid == b->what.source.tid;
}

void ebpfMonHandOversNoteBegin(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev)
{
    workingThread *thread = getThread(handOvers, &ev->head);

    if (!isSameSource(&thread->begin, ev))
        thread->chains = 0;
    thread->begin = *ev;
}

const struct ebpfMonHandOver *ebpfMonHandOversFind(const ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain)
{
    const workingThread *thread = findThread(handOvers, &chain->head);

    return thread && thread->begin.head.ktime == chain->head.ktime ? &thread->begin.what : NULL;
}

void ebpfMonHandOversCountChain(ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain)
{
    workingThread *thread = findThread(handOvers, &chain->head);

    if (thread)
        thread->chains++;
}

int ebpfMonHandOversNoteEnd(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev)
{
    workingThread *thread = findThread(handOvers, &ev->head);
    uint32_t arrived = 0;

    if (thread && isSameSource(&thread->begin, ev)) {
        arrived = thread->chains;
        thread->chains = 0;
    }
    return ev->isPartial || arrived < ev->chains;
}

void ebpfMonHandOversNoteEarlyEnd(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int isPartial)
{
    earlyEnd *e = &handOvers->early[ebpfMonChainIdHash(source) % EARLY_ENDS];

    if (!ebpfMonChainIdIsSame(&e->source, source))
        e->count = e->isPartial = 0;
    e->source = *source;
    e->count++;
    e->isPartial |= isPartial;
}

uint32_t ebpfMonHandOversTakeEarlyEnds(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int *isPartial)
{
    earlyEnd *e = &handOvers->early[ebpfMonChainIdHash(source) % EARLY_ENDS];
    uint32_t count;

    *isPartial = 0;
    if (!ebpfMonChainIdIsSame(&e->source, source))
        return 0;
    count = e->count;
    *isPartial = e->isPartial;
    e->count = e->isPartial = 0;
    return count;
}

/* --- traces that ended a moment ago --- */

#define CHAINS 16384 /* a power of two */

struct ebpfMonFinishedTraces {
    ebpfMonFinishedChain chain[CHAINS]; /* by hash; the newest chain of each hash */
};

ebpfMonFinishedTraces *ebpfMonFinishedTracesNew(void)
{
    return calloc(1, sizeof(ebpfMonFinishedTraces));
}

void ebpfMonFinishedTracesFree(ebpfMonFinishedTraces *finished)
{
    free(finished);
}

void ebpfMonFinishedTracesAdd(ebpfMonFinishedTraces *finished, const ebpfMonFinishedChain *chain)
{
    finished->chain[ebpfMonChainIdHash(&chain->chain) % CHAINS] = *chain;
}

const ebpfMonFinishedChain *ebpfMonFinishedTracesFind(const ebpfMonFinishedTraces *finished,
                                                      const ebpfMonChainId *chain)
{
    const ebpfMonFinishedChain *place = &finished->chain[ebpfMonChainIdHash(chain) % CHAINS];

    return ebpfMonChainIdIsSame(&place->chain, chain) ? place : NULL;
}

/* --- chains of open traces --- */

/*
 * Finds a chain of the open traces by its identity. Each new chain needs its source chain, and so does each hand-over
 * that was completed. Event thread only.
 */
#define BUCKETS 4096 /* a power of two */

typedef struct {
    ebpfMonTraceChain *bucket[BUCKETS];
} knownChains;

/* The chain stays the caller's, who removes it before its memory is freed. */
static void addKnown(knownChains *known, ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);
    ebpfMonTraceChain **p = &known->bucket[ebpfMonChainIdHash(&id) % BUCKETS];

    while (*p)
        p = &(*p)->nextOfHash;
    *p = c;
}

static void removeKnown(knownChains *known, const ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);
    ebpfMonTraceChain **p = &known->bucket[ebpfMonChainIdHash(&id) % BUCKETS];

    while (*p && *p != c)
        p = &(*p)->nextOfHash;
    if (*p)
        *p = c->nextOfHash;
}

/* NULL: none. */
static ebpfMonTraceChain *findKnown(const knownChains *known, const ebpfMonChainId *chain)
{
    ebpfMonTraceChain *c = known->bucket[ebpfMonChainIdHash(chain) % BUCKETS];

    while (c) {
        ebpfMonChainId id = ebpfMonTraceChainGetId(c);

        if (ebpfMonChainIdIsSame(&id, chain))
            break;
        c = c->nextOfHash;
    }
    return c;
}

/* --- what a trace may lack --- */

/*
 * What a trace may lack although no chain says so: messages that it sent, the message that caused it, and lost events.
 * Event thread only.
 */

typedef struct {
    ebpfMonLinkMessages *messages;                        /* the caller's */
    int      (*exportsSpans)(void *exporter);             /* else nobody needs messages */
    void      *exporter;
    uint64_t (*countLost)(void *arg);                     /* the events that were lost so far; NULL: nobody counts */
    void      *arg;
    uint64_t   lost, lookedAt;                            /* at the last look: how many; monotonic ns */
    uint64_t   from, to;                                  /* between these two times events were lost */
    uint64_t   read;                                      /* the latest end of a trace that was judged */
} ebpfMonTraceGaps;

#define MESSAGE_NS EBPFMON_SECOND_NS /* from a link write to its message, unless the link is not connected */

/* A chain of the trace has come: counts the values that it wrote through CA links (trace->linkWrites). */
static void addTraceGapsChain(ebpfMonTraceGaps *gaps, ebpfMonTrace *trace, const ebpfMonTraceChain *c)
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

/* Nonzero: the message of such a value has not been seen, and may still come. "now": monotonic ns. */
static int awaitTraceGapsMessages(const ebpfMonTraceGaps *gaps, const ebpfMonTrace *trace, uint64_t now)
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

/* Nonzero: events were lost since the last look. Then all traces that are open may lack something. */
static int lookTraceGaps(ebpfMonTraceGaps *gaps)
{
    uint64_t lost = gaps->countLost ? gaps->countLost(gaps->arg) : 0, now = ebpfMonClockMonotonic();
    int isNew = lost != gaps->lost;

    if (isNew) {
        if (gaps->read >= gaps->to) /* else events that are older than that are still in the ring */
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

/* Marks the trace, which is finished now, if it may lack something. */
static void judgeTraceGaps(ebpfMonTraceGaps *gaps, ebpfMonTrace *trace)
{
    judgeSent(gaps, trace);
    if (gaps->read < trace->end)
        gaps->read = trace->end;
    trace->lacksCause = lacksCause(trace);
    trace->isIncomplete |= trace->lacksCause || trace->lacksCpSource ||
                           (trace->first->chain.begin <= gaps->to && trace->end >= gaps->from);
}

/* --- the chain that caused a trace --- */

/*
 * The chain of another trace that caused a trace: it wrote through a CA link, or a CP link watches one of its records.
 * It may end long after its effect, and only then its event comes: a record behind the link may wait for a device. So a
 * trace waits for it while a thread still holds the lock set of that chain. Event thread only.
 */
typedef struct {
    ebpfMonTargets              *targets;       /* these are the caller's */
    const knownChains    *known;
    const ebpfMonFinishedTraces *finished;
    ebpfMonCpLinkSources        *cpLinkSources;
    ebpfMonEachThreadFn          eachThread;    /* NULL: which chains are under way is not known */
    int      (*exportsSpans)(void *exporter);   /* else the ids of traces do not matter */
    void      *exporter;
    uint64_t   lookedAt;                        /* when the threads were looked at last; monotonic ns */
} ebpfMonTraceCauses;

#define CAUSE_NS 100000000ull /* from the end of a chain to its event, at most */
#define LOOK_NS  50000000ull  /* between two looks at the threads: less, so the event has time after the last look that
                               * found the chain under way */
#define CAUSES   8            /* traces of which each caused the next while all are open */

/* Nonzero: its trace is not there (any more). */
static int isMissing(const ebpfMonTraceCauses *causes, const ebpfMonChainId *chain)
{
    return chain->iocId && !findKnown(causes->known, chain) &&
           !ebpfMonFinishedTracesFind(causes->finished, chain);
}

/* Nonzero: something in another trace caused it, and it is not known what. */
static int lacksCausingChain(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace)
{
    ebpfMonChainId cause = ebpfMonTraceGetCause(trace);

    return trace->cpLink || (causes->exportsSpans(causes->exporter) && isMissing(causes, &cause));
}

static int isYoung(const ebpfMonTrace *trace, uint64_t now)
{
    return !trace->causeSeen || now < trace->causeSeen + CAUSE_NS;
}

/* The id of a trace is that of the trace that caused it, and so on. Their puts may be known later than its own, and
 * their chains may end later than what they caused. */
static int awaitTraceCauses(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace, uint64_t now)
{
    if (trace->cpLink && isYoung(trace, now))
        return 1;
    if (!causes->exportsSpans(causes->exporter))
        return 0;
    for (unsigned i = 0; trace && !trace->hasId && i < CAUSES; i++) {
        ebpfMonChainId cause = ebpfMonTraceGetCause(trace);
        const ebpfMonTraceChain *above = cause.iocId ? findKnown(causes->known, &cause) : NULL;

        if (trace->awaitsPut)
            return 1;
        if (lacksCausingChain(causes, trace))
            return isYoung(trace, now);
        trace = above ? above->trace : NULL;
    }
    return 0;
}

/* Nonzero: the trace, which is finished now, lacks its cause, which was under way when it was looked for last. */
static int areTraceCausesLate(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace)
{
    return trace->causeSeen >= causes->lookedAt && lacksCausingChain(causes, trace);
}

/* --- CP links --- */

/* Under ebpfMonTargetsLock. */
static void findCpLinkSource(const ebpfMonTraceCauses *causes, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    ebpfMonCpLinkResult r = ebpfMonCpLinkSourcesFind(causes->cpLinkSources, t, trace->first->chain.rootSlot,
                                                     trace->cpLink, &trace->source);

    if (r == ebpfMonCpLinkAwaited)
        return;
    free(trace->cpLink);
    trace->cpLink = NULL;
}

/* The source chain may end after the chain that it caused: so it is looked for again and again, in tables only. */
static void lookForCpLinkSource(const ebpfMonTraceCauses *causes, ebpfMonTrace *trace)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(causes->targets);
    ebpfMonTarget *t;

    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(causes->targets);
        t = ebpfMonTraceFindTarget(causes->targets, trace);
        if (t && trace->cpLink)
            findCpLinkSource(causes, t, trace);
        ebpfMonTargetsUnlock(causes->targets);
    } while (ebpfMonLateReadsMake(reads));
}

/* --- which chains are under way --- */

typedef struct {
    const ebpfMonTraceCauses *causes;
    ebpfMonTrace *first;
    uint64_t now;
} threadLook;

/* Nonzero: this chain, which is under way, caused the trace, or may have: of a CP link only the IOC of its source is
 * known, and that the source began before. */
static int mayCause(const ebpfMonTrace *trace, uint32_t tgid, uint32_t tid, uint64_t begin)
{
    ebpfMonChainId cause = ebpfMonTraceGetCause(trace);

    if (trace->cpLink)
        return trace->cpLink->sourcePid == tgid && begin < trace->first->chain.begin;
    return cause.tid == tid && cause.begin == begin;
}

static void lookAtThread(void *arg, uint32_t tid, const struct ebpfMonThread *seen)
{
    const threadLook *look = arg;

    for (uint32_t i = 0; i < seen->heldCount && i < EBPFMON_NESTED; i++)
        for (ebpfMonTrace *trace = look->first; trace; trace = trace->next)
            if (trace->causeSeen != look->now && lacksCausingChain(look->causes, trace) &&
                mayCause(trace, seen->tgid, tid, seen->held[i].begin))
                trace->causeSeen = look->now;
}

/* Looks for the chains behind the CP links of the open traces, from "first" on, and whether the chains that they lack
 * are under way. "now": monotonic ns. No lock is held. Called before …Await is asked for a new time. */
static void lookTraceCauses(ebpfMonTraceCauses *causes, ebpfMonTrace *first, uint64_t now)
{
    threadLook look = { .causes = causes, .first = first, .now = now };
    int isDue = 0;

    for (ebpfMonTrace *trace = first; trace; trace = trace->next) {
        if (trace->cpLink)
            lookForCpLinkSource(causes, trace);
        if (!lacksCausingChain(causes, trace))
            continue;
        if (!trace->causeSeen)
            trace->causeSeen = now > trace->end ? now : trace->end;
        isDue |= trace->causeSeen >= causes->lookedAt && now >= trace->causeSeen + LOOK_NS;
    }
    if (!isDue)
        return;
    if (causes->eachThread)
        causes->eachThread(lookAtThread, &look);
    causes->lookedAt = now;
}

/* When to look next for the sake of this trace (monotonic ns); UINT64_MAX: never. */
static uint64_t getTraceCausesDue(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace, uint64_t now)
{
    uint64_t look = trace->causeSeen + LOOK_NS, over = trace->causeSeen + CAUSE_NS;

    if (!trace->causeSeen)
        return UINT64_MAX;
    return look > now && trace->causeSeen >= causes->lookedAt ? look : over > now ? over : UINT64_MAX;
}

/* --- traces --- */

#define OPEN_MAX    256
#define RECORDS_MAX 65536         /* of all open traces */
#define ASYNC_NS    10000000000ull /* for an asynchronous record; a motor moves for longer. Then the trace says that it
                                    * still processes */
#define GONE_NS     1000000000ull /* after an IOC has ended: nothing more comes from it, and its names are soon gone */
#define PUT_NS      1000000000ull

struct ebpfMonTraces {
    ebpfMonTracesUses uses;
    ebpfMonTraceFn    onTrace;
    void             *arg;
    knownChains            known;
    ebpfMonHandOvers      *handOvers;
    ebpfMonFinishedTraces *finished;
    ebpfMonCpLinkSources  *cpLinkSources;
    ebpfMonTrace *first, *last;   /* open; the oldest first */
    unsigned open;
    uint32_t records;             /* of all open traces */
    unsigned awaitPut, awaitSource; /* open traces that do */
    ebpfMonTraceGaps   gaps;
    ebpfMonTraceCauses causes;
    ebpfMonTrace *changed;        /* the open trace that got the last chain, until it was looked at; NULL: none */
};

/* --- the list of open traces --- */

ebpfMonTraces *ebpfMonTracesNew(const ebpfMonTracesUses *uses, ebpfMonTraceFn onTrace, void *arg)
{
    ebpfMonTraces *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->uses = *uses;
    x->onTrace = onTrace;
    x->arg = arg;
    x->gaps = (ebpfMonTraceGaps){ .messages = uses->linkMessages, .exportsSpans = uses->exportsSpans,
                                  .exporter = uses->exporter, .countLost = uses->countLost, .arg = arg };
    x->handOvers = ebpfMonHandOversNew();
    x->finished = ebpfMonFinishedTracesNew();
    x->cpLinkSources = ebpfMonCpLinkSourcesNew(uses->targets);
    x->causes = (ebpfMonTraceCauses){ .targets = uses->targets, .known = &x->known, .finished = x->finished,
                                      .cpLinkSources = x->cpLinkSources, .eachThread = uses->eachThread,
                                      .exportsSpans = uses->exportsSpans, .exporter = uses->exporter };
    if (x->handOvers && x->finished && x->cpLinkSources)
        return x;
    ebpfMonTracesFree(x);
    return NULL;
}

static ebpfMonTrace *startTrace(ebpfMonTraces *x, const ebpfMonTarget *t)
{
    ebpfMonTrace *trace = ebpfMonTraceNew(t);

    if (!trace)
        return NULL;
    trace->before = x->last;
    *(x->last ? &x->last->next : &x->first) = trace;
    x->last = trace;
    x->open++;
    return trace;
}

/* Takes it out of the list. */
static void removeTrace(ebpfMonTraces *x, ebpfMonTrace *trace)
{
    *(trace->before ? &trace->before->next : &x->first) = trace->next;
    *(trace->next ? &trace->next->before : &x->last) = trace->before;
    if (x->changed == trace)
        x->changed = NULL;
    x->open--;
    x->records -= trace->records;
    x->awaitPut -= (unsigned)!!trace->awaitsPut;
    x->awaitSource -= (unsigned)!!trace->awaitsSource;
    for (const ebpfMonTraceChain *c = trace->first; c; c = c->next)
        removeKnown(&x->known, c);
}

void ebpfMonTracesFree(ebpfMonTraces *x)
{
    if (!x)
        return;
    while (x->first) {
        ebpfMonTrace *trace = x->first;

        removeTrace(x, trace);
        ebpfMonTraceFree(trace);
    }
    ebpfMonHandOversFree(x->handOvers);
    ebpfMonFinishedTracesFree(x->finished);
    ebpfMonCpLinkSourcesFree(x->cpLinkSources);
    free(x);
}

/* If events were lost, each open trace may wait for one of them. */
static void lookForLosses(ebpfMonTraces *x)
{
    if (lookTraceGaps(&x->gaps))
        for (ebpfMonTrace *trace = x->first; trace; trace = trace->next)
            trace->isIncomplete = 1;
}

static void finishTrace(ebpfMonTraces *x, ebpfMonTrace *trace)
{
    ebpfMonTarget *t;
    int isTaken;

    lookForLosses(x);
    judgeTraceGaps(&x->gaps, trace);
    trace->isIncomplete |= ebpfMonTraceHasAsync(trace) || trace->handOvers || trace->awaitsSource ||
                           areTraceCausesLate(&x->causes, trace);
    if (x->uses.isDescribed)
        ebpfMonTraceReadWords(x->uses.targets, trace, x->uses.isDescribed, x->arg);
    ebpfMonTargetsLock(x->uses.targets);
    t = ebpfMonTraceFindTarget(x->uses.targets, trace);
    isTaken = t && x->onTrace(x->arg, t, trace);
    ebpfMonTargetsUnlock(x->uses.targets);
    for (const ebpfMonTraceChain *c = trace->hasId ? trace->first : NULL; c; c = c->next) {
        ebpfMonFinishedChain finished = { .chain = ebpfMonTraceChainGetId(c),
                                          .owner = ebpfMonTraceChainGetId(ebpfMonTraceFindSpanOwner(trace, c)) };

        memcpy(finished.traceId, trace->id, sizeof(finished.traceId));
        ebpfMonFinishedTracesAdd(x->finished, &finished);
    }
    removeTrace(x, trace);
    if (!isTaken)
        ebpfMonTraceFree(trace);
}

ebpfMonTrace *ebpfMonTracesFindOpen(const ebpfMonTraces *x, const ebpfMonChainId *chain)
{
    const ebpfMonTraceChain *c = findKnown(&x->known, chain);

    return c ? c->trace : NULL;
}

const uint8_t *ebpfMonTracesFindFinishedId(const ebpfMonTraces *x, const ebpfMonChainId *chain)
{
    const ebpfMonFinishedChain *finished = ebpfMonFinishedTracesFind(x->finished, chain);

    return finished ? finished->traceId : NULL;
}

ebpfMonChainId ebpfMonTracesFindSpanOwner(const ebpfMonTraces *x, const ebpfMonChainId *chain)
{
    const ebpfMonTraceChain *c = findKnown(&x->known, chain);
    const ebpfMonFinishedChain *finished = c ? NULL : ebpfMonFinishedTracesFind(x->finished, chain);

    return c ? ebpfMonTraceChainGetId(ebpfMonTraceFindSpanOwner(c->trace, c)) : finished ? finished->owner : *chain;
}

unsigned ebpfMonTracesCountOpen(const ebpfMonTraces *x)
{
    return x->open;
}

uint32_t ebpfMonTracesCountRecords(const ebpfMonTraces *x)
{
    return x->records;
}

/* --- what a trace waits for --- */

static int isComplete(const ebpfMonTraces *x, const ebpfMonTrace *trace, uint64_t now)
{
    if (trace->awaitsPut || trace->handOvers || trace->awaitsSource || ebpfMonTraceHasAsync(trace))
        return 0;
    if (now < trace->end) /* two clock readings */
        now = trace->end;
    return !awaitTraceGapsMessages(&x->gaps, trace, now) && !awaitTraceCauses(&x->causes, trace, now);
}

/* Called when something came for which the trace waited. Messages are handled in the tick, because they come one by
 * one. */
static void finishIfComplete(ebpfMonTraces *x, ebpfMonTrace *trace)
{
    if (!trace->linkWrites && isComplete(x, trace, trace->end))
        finishTrace(x, trace);
}

/* --- a new chain --- */

/* The open trace to which the chain belongs. NULL: to none, it begins one. "from": what led to it, or NULL. */
static ebpfMonTrace *findTraceOf(const ebpfMonTraces *x, const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                                 const struct ebpfMonHandOver *from, int *completes)
{
    ebpfMonChainId beginner = { .iocId = t->iocId, .tid = chain->causeTid, .begin = chain->causeBegin };
    ebpfMonTrace *trace = chain->causeBegin ? ebpfMonTracesFindOpen(x, &beginner) : NULL;

    *completes = trace != NULL;
    if (!trace && from && from->source.begin) {
        ebpfMonChainId source = { .iocId = t->iocId, .tid = from->source.tid, .begin = from->source.begin };

        trace = ebpfMonTracesFindOpen(x, &source);
        if (trace && trace->chains == EBPFMON_TRACE_CHAINS) {
            /* a record hands over to itself again and again: the next step begins a new trace */
            trace->isIncomplete = 1;
            trace = NULL;
        }
    }
    return trace && ebpfMonCatalogueGoesOn(t->cat, trace->cat) ? trace : NULL;
}

static void keepPut(ebpfMonTrace *trace, const ebpfMonPutSummary *put)
{
    trace->put = malloc(sizeof(*put));
    if (trace->put)
        *trace->put = *put;
}

static void setPut(ebpfMonTraces *x, ebpfMonTrace *trace, const ebpfMonThreadPut *put)
{
    trace->putId = put->id;
    if (put->isFinished) {
        keepPut(trace, &put->put);
        return;
    }
    trace->awaitsPut = 1;
    x->awaitPut++;
}

/* The first chain of a trace tells what caused the trace. */
static void setCause(ebpfMonTraces *x, ebpfMonTrace *trace, const struct ebpfMonHandOver *from,
                     const ebpfMonThreadPut *put)
{
    if (put)
        setPut(x, trace, put);
    if (trace->first->source.iocId && trace->first->chain.flags & EBPFMON_CHAIN_EARLY) {
        trace->awaitsSource = 1;
        x->awaitSource++;
    }
    trace->lacksCpSource = !put && strcmp(trace->first->chain.comm, "dbCaLink") == 0 && !trace->first->chain.causeBegin;
    if (!put && from && from->cpLink && (trace->cpLink = calloc(1, sizeof(*trace->cpLink)))) {
        trace->cpLink->at = from->cpLink;
        memcpy(trace->cpLink->start, from->caLink, sizeof(from->caLink)); /* the next tick looks for its source */
    }
}

/* "c" completes its root, and the chain that began the root is not in the trace. So "c" goes below its source chain. */
static void placeBelowSource(ebpfMonTraceChain *c)
{
    c->chain.causeBegin = c->chain.causeTid = 0;
}

/* Moves all of a trace that waited for a chain of "trace" into that one. */
static void adoptTrace(ebpfMonTraces *x, ebpfMonTrace *trace, ebpfMonTrace *child)
{
    placeBelowSource(child->first);
    while (child->first) {
        ebpfMonTraceChain *c = child->first;

        child->first = c->next;
        ebpfMonTraceAppend(trace, c);
    }
    for (unsigned i = 0; i < EBPFMON_TRACE_ASYNC; i++)
        ebpfMonTraceAddAsync(trace, child->async[i]);
    trace->handOvers += child->handOvers;
    trace->linkWrites += child->linkWrites;
    trace->isIncomplete |= child->isIncomplete;
    child->records = 0; /* they are the other one's now */
    removeTrace(x, child);
    ebpfMonTraceFree(child);
}

/* A hand-over can be completed before its source chain ends. Its trace has waited for the source chain. */
static void adoptEarlyTraces(ebpfMonTraces *x, ebpfMonTrace *trace, const ebpfMonChainId *source)
{
    ebpfMonTrace *next;

    for (ebpfMonTrace *child = x->awaitSource ? x->first : NULL; child; child = next) {
        next = child->next;
        if (child->awaitsSource && ebpfMonChainIdIsSame(&child->first->source, source) &&
            ebpfMonCatalogueGoesOn(child->cat, trace->cat) && trace->chains + child->chains <= EBPFMON_TRACE_CHAINS)
            adoptTrace(x, trace, child);
    }
}

/* Notes the open work of the chain: asynchronous records, hand-overs, link writes. */
static void noteOpenWork(ebpfMonTraces *x, ebpfMonTrace *trace, const ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);

    if (!(c->chain.flags & EBPFMON_CHAIN_BUSY))
        ebpfMonTraceRemoveAsync(trace, c->chain.rootSlot + 1);
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
        ebpfMonTraceAddAsync(trace, c->chain.async[i]);
    if (c->chain.handOvers) {
        int isPartial;
        uint32_t done = ebpfMonHandOversTakeEarlyEnds(x->handOvers, &id, &isPartial);

        trace->isIncomplete |= isPartial;
        trace->handOvers += c->chain.handOvers > done ? c->chain.handOvers - done : 0;
        adoptEarlyTraces(x, trace, &id);
    }
    addTraceGapsChain(&x->gaps, trace, c);
}

/* For the CP links that watch its records. */
static void noteStamps(ebpfMonTraces *x, const ebpfMonTraceChain *c)
{
    ebpfMonChainId id = ebpfMonTraceChainGetId(c);

    for (uint32_t i = 0; i < c->count; i++)
        ebpfMonCpLinkSourcesAdd(x->cpLinkSources, &id, c->chain.rootSlot, i, c->rec[i].slot, c->rec[i].time);
}

void ebpfMonTracesAddChain(ebpfMonTraces *x, ebpfMonTarget *t, const struct ebpfMonChain *chain,
                           const struct ebpfMonChainRec *rec, uint32_t count)
{
    const struct ebpfMonHandOver *from = chain->outer ? NULL : ebpfMonHandOversFind(x->handOvers, chain);
    uint64_t root = t->cat->rec[chain->rootSlot - t->slot].addr;
    const ebpfMonThreadPut *put = ebpfMonThreadPutsFindForChain(x->uses.threadPuts, chain, root);
    ebpfMonTraceChain *c;
    ebpfMonTrace *trace;
    int completes;

    if (from)
        ebpfMonHandOversCountChain(x->handOvers, chain);
    /* The put of a client that found its record busy goes on in the thread of a callback (dbNotify.c); it does not
     * belong to what the record was busy with. */
    if (put && put->byClient)
        from = NULL;
    trace = findTraceOf(x, t, chain, from, &completes);
    if (trace && trace->chains == EBPFMON_TRACE_CHAINS) {
        trace->isIncomplete = 1;
        return;
    }
    c = ebpfMonTraceChainNew(t, chain, rec, count);
    if (c && !trace)
        trace = startTrace(x, t);
    if (!c || !trace) {
        free(c);
        return;
    }
    if (from && from->source.begin)
        ebpfMonTraceChainSetSource(t, c, from);
    if (!completes && trace->chains)
        placeBelowSource(c);
    ebpfMonTraceAppend(trace, c);
    addKnown(&x->known, c);
    x->records += c->count;
    noteStamps(x, c);
    if (trace->chains == 1)
        setCause(x, trace, from, put);
    noteOpenWork(x, trace, c);
    trace->isIncomplete |= (chain->flags & EBPFMON_CHAIN_MORE) || c->count < chain->total;
    x->changed = trace;
}

void ebpfMonTracesFinishChain(ebpfMonTraces *x)
{
    ebpfMonTrace *trace = x->changed;

    x->changed = NULL;
    if (trace)
        finishIfComplete(x, trace);
    while (x->records > RECORDS_MAX || x->open > OPEN_MAX)
        finishTrace(x, x->first);
}

/* --- other events --- */

void ebpfMonTracesBeginHandOver(ebpfMonTraces *x, const struct ebpfMonHandOverEvent *ev)
{
    ebpfMonHandOversNoteBegin(x->handOvers, ev);
}

void ebpfMonTracesEndHandOver(ebpfMonTraces *x, const struct ebpfMonHandOverEvent *ev)
{
    ebpfMonChainId source = { .iocId = ev->head.iocId, .tid = ev->what.source.tid, .begin = ev->what.source.begin };
    ebpfMonTrace *trace = ebpfMonTracesFindOpen(x, &source);
    int isPartial = ebpfMonHandOversNoteEnd(x->handOvers, ev);

    if (!trace) {
        ebpfMonHandOversNoteEarlyEnd(x->handOvers, &source, isPartial);
        return;
    }
    trace->isIncomplete |= isPartial;
    if (trace->handOvers)
        trace->handOvers--;
    finishIfComplete(x, trace);
}

void ebpfMonTracesAddPut(ebpfMonTraces *x, uint32_t iocId, uint32_t tid, uint64_t id, const ebpfMonPutSummary *put)
{
    for (ebpfMonTrace *trace = x->awaitPut ? x->first : NULL; trace; trace = trace->next) {
        if (!trace->awaitsPut || trace->iocId != iocId || trace->putId != id || trace->first->chain.head.tid != tid)
            continue;
        trace->awaitsPut = 0;
        x->awaitPut--;
        keepPut(trace, put);
        finishIfComplete(x, trace);
        return;
    }
}

static int isIocGone(const ebpfMonTraces *x, const ebpfMonTrace *trace)
{
    const ebpfMonTarget *t;
    int isGone;

    ebpfMonTargetsLock(x->uses.targets);
    t = ebpfMonTargetsFindById(x->uses.targets, trace->iocId);
    isGone = !t || t->gone;
    ebpfMonTargetsUnlock(x->uses.targets);
    return isGone;
}

/* The next time at which one of the waits of this trace is over; what it waits for may come before. */
static uint64_t findDue(const ebpfMonTraces *x, const ebpfMonTrace *trace, uint64_t now)
{
    static const uint64_t waits[] = { PUT_NS, MESSAGE_NS, GONE_NS, ASYNC_NS };
    uint64_t due = getTraceCausesDue(&x->causes, trace, now);

    for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        uint64_t over = trace->end + waits[i] + 1; /* some waits are over when more than that has passed */

        if (over > now && over < due)
            due = over;
    }
    return due;
}

uint64_t ebpfMonTracesGetDue(const ebpfMonTraces *x, uint64_t now)
{
    uint64_t due = UINT64_MAX;

    for (const ebpfMonTrace *trace = x->first; trace; trace = trace->next) {
        uint64_t traceDue = findDue(x, trace, now);

        if (traceDue < due)
            due = traceDue;
    }
    return due;
}

void ebpfMonTracesTick(ebpfMonTraces *x, uint64_t now, int all)
{
    ebpfMonTrace *next;

    lookForLosses(x);
    lookTraceCauses(&x->causes, x->first, now);
    for (ebpfMonTrace *trace = x->first; trace; trace = next) {
        uint64_t age = now > trace->end ? now - trace->end : 0;

        next = trace->next;
        if (trace->awaitsPut && age > PUT_NS) { /* it was lost */
            trace->awaitsPut = 0;
            trace->isIncomplete = 1;
            x->awaitPut--;
        }
        if (all || age >= ASYNC_NS || (age >= GONE_NS && isIocGone(x, trace)) || isComplete(x, trace, now))
            finishTrace(x, trace);
    }
}

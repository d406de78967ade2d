/* SPDX-License-Identifier: BSD-3-Clause */
#define USE_TYPED_RSET
#include <dbStaticLib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "host/procStat.h"
#include "put/iocPuts.h"
#include "put/threadPuts.h"
#include "put/putDecode.h"
#include "put/putWriter.h"
#include "put/valueText.h"

/* --- puts that wait for their result or their packet --- */

#define PENDING_MAX 4096
#define BUCKETS     256 /* of puts that wait for their result, by thread: each thread has few */
#define RESULT_NS   2000000000ull  /* a put that takes longer is published without its result; its time does not count
                                      while its thread stands still */
#define LINK_NS     10000000ull    /* dbPutFieldLink (dbAccess.c) takes microseconds, if it has not to wait for its
                                    * lock */
#define RUNNING_NS  1000000000ull  /* the links of a running IOC are read within this, or there is no room for them */
#define STARTING_NS 60000000000ull
#define PACKETS_LATE_NS 500000000ull /* the packet thread may have no CPU meanwhile */
#define CAUSED_NS   1000000000ull  /* a put is shown so late if the one that caused it is not finished; it may hang */
#define CAUSED_MAX  256            /* … so many wait for that, and it is looked for among so many */

typedef struct {
    ebpfMonPendingPut *first, *last;
} putQueue;

struct ebpfMonPendingPuts {
    ebpfMonTargets    *targets;  /* these four are the caller's */
    ebpfMonPutJoin    *join;
    ebpfMonPutClients *clients;
    ebpfMonLinkWrites *linkWrites;
    int              (*missedReceive)(void);
    ebpfMonPutSink     sink;
    void              *arg;
    ebpfMonPendingPut *freed;    /* places that were used before */
    unsigned           fresh;    /* place[fresh …] never were: their memory is not touched before it is needed */
    unsigned           results;  /* puts that wait for their result */
    putQueue           result[BUCKETS]; /* … oldest first */
    putQueue           packet;   /* complete; they wait for their packet, oldest first */
    putQueue           links;    /* complete; they wait for the links of their IOC, which starts */
    putQueue           caused;   /* complete; they wait for the put that caused them */
    unsigned           causedPuts; /* in it */
    ebpfMonPutAuthors *authors;
    ebpfMonPendingPut  place[PENDING_MAX];
};

ebpfMonPendingPuts *ebpfMonPendingPutsNew(ebpfMonTargets *targets, ebpfMonPutJoin *join, ebpfMonPutClients *clients,
                                          ebpfMonLinkWrites *linkWrites, int (*missedReceive)(void),
                                          ebpfMonPutSink sink, void *arg)
{
    ebpfMonPendingPuts *pending = calloc(1, sizeof(*pending));

    if (!pending)
        return NULL;
    pending->authors = ebpfMonPutAuthorsNew();
    if (!pending->authors) {
        free(pending);
        return NULL;
    }
    pending->targets = targets;
    pending->join = join;
    pending->clients = clients;
    pending->linkWrites = linkWrites;
    pending->missedReceive = missedReceive;
    pending->sink = sink;
    pending->arg = arg;
    return pending;
}

void ebpfMonPendingPutsFree(ebpfMonPendingPuts *pending)
{
    if (pending)
        ebpfMonPutAuthorsFree(pending->authors);
    free(pending);
}

static void appendPut(putQueue *queue, ebpfMonPendingPut *p)
{
    p->next = NULL;
    p->before = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = p;
    queue->last = p;
}

static void removePut(putQueue *queue, ebpfMonPendingPut *p)
{
    *(p->before ? &p->before->next : &queue->first) = p->next;
    *(p->next ? &p->next->before : &queue->last) = p->before;
}

void ebpfMonPendingPutsDiscard(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    p->next = pending->freed;
    pending->freed = p;
}

/* The packet showed that another client made it; with "isClaimed" also what the client claims. */
static void findClient(ebpfMonPendingPuts *pending, const ebpfMonPendingPut *p, int isClaimed, ebpfMonPutClient *client)
{
    const char *user = isClaimed ? p->put.user : "", *host = isClaimed ? p->put.host : "";

    if (p->key.outer.port)
        ebpfMonPutClientsFindOuter(pending->clients, &p->key.peer, &p->key.outer, &p->key.first, user, host, client);
    else
        ebpfMonPutClientsFind(pending->clients, &p->key.peer, &p->key.first, user, host, client);
}

static void correctClient(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    int isUnsure = p->put.isUnsure;
    ebpfMonPutClient client;

    findClient(pending, p, 1, &client);
    ebpfMonPutClientSet(&client, &p->put);
    p->put.isUnsure = isUnsure;
}

/* Nonzero: the thread may have served another client than the one from which it received last, as far as we saw. */
static int mayBeAnotherClient(const ebpfMonPendingPuts *pending, const ebpfMonPendingPut *p)
{
    return p->key.seqKind == EBPFMON_SEQ_SHARED ||
           (p->key.seqKind == EBPFMON_SEQ_RECEIVED && pending->missedReceive && pending->missedReceive());
}

/* Nonzero: there is no need to wait for its packet (any longer). */
static int joinPacket(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p, int last)
{
    ebpfMonPutJoinResult r = ebpfMonPutJoinMatchIoc(pending->join, &p->key, &p->put, last);

    p->isPublished = r == ebpfMonPutJoinPublished;
    if (r == ebpfMonPutJoinFound && (p->key.moved || p->key.outer.port))
        correctClient(pending, p);
    if (p->key.sentAt)
        ebpfMonLinkWritesCorrect(pending->linkWrites, &p->put, p->key.sentAt);
    if (r != ebpfMonPutJoinFound && p->put.through == ebpfMonByPva && mayBeAnotherClient(pending, p))
        p->put.isUnsure = 1; /* only its packet could tell */
    p->awaitsReply = r == ebpfMonPutJoinReply;
    return r != ebpfMonPutJoinWait && !p->awaitsReply;
}

static void publishPut(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    ebpfMonFinishedPut finished = { .iocId = p->iocId, .tid = p->tid, .id = p->id, .put = &p->put, .key = &p->key,
                                    .isPublished = p->isPublished };

    if (p->author)
        ebpfMonPutAuthorsSet(pending->authors, p->iocId, p->author, &p->put);
    ebpfMonWriterTextComplete(&p->put);
    pending->sink(pending->arg, &finished);
    ebpfMonPendingPutsDiscard(pending, p);
}

static void noteAuthor(ebpfMonPendingPuts *pending, const ebpfMonPendingPut *p, uint64_t number)
{
    ebpfMonPutClient other;

    if (p->key.moved) /* without the claims, as any link's put */
        findClient(pending, p, 0, &other);
    ebpfMonPutAuthorsAdd(pending->authors, p->iocId, number, &p->put, p->key.moved ? &other : NULL);
}

static void appendCaused(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    appendPut(&pending->caused, p);
    pending->causedPuts++;
}

static void removeCaused(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    removePut(&pending->caused, p);
    pending->causedPuts--;
}

/* The chain that made it. */
static const ebpfMonChainId *getSource(const ebpfMonPut *put)
{
    return put->through == ebpfMonByCaLink ? &put->linkChain : &put->source;
}

/* Nonzero: the put that began this chain is one of the newest in the queue. In a flood of puts the queue is long. */
static int hasChain(const putQueue *queue, const ebpfMonChainId *chain)
{
    const ebpfMonPendingPut *p = queue->last;

    for (unsigned n = 0; p && n < CAUSED_MAX; n++, p = p->before)
        if (ebpfMonChainIdIsSame(&p->put.chain, chain))
            return 1;
    return 0;
}

/* Nonzero: the put that began its chain is not finished. It comes first, and with its trace (trace/putTraces.h). */
static int waitsForCause(const ebpfMonPendingPuts *pending, const ebpfMonPendingPut *p)
{
    const ebpfMonChainId *source = getSource(&p->put);

    return source->iocId && pending->causedPuts < CAUSED_MAX &&
           (hasChain(&pending->result[source->tid % BUCKETS], source) || hasChain(&pending->packet, source) ||
            hasChain(&pending->caused, source));
}

/* Also those that it caused, and that wait for it. */
static void publishWithCaused(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    uint64_t number = EBPFMON_PUT_NUMBER(p->tid, p->id);
    ebpfMonChainId chain = p->put.chain;
    uint32_t iocId = p->iocId;

    publishPut(pending, p);
    for (p = pending->caused.first; p;) {
        if ((p->author != number || p->iocId != iocId) &&
            !(chain.iocId && ebpfMonChainIdIsSame(getSource(&p->put), &chain))) {
            p = p->next;
            continue;
        }
        removeCaused(pending, p);
        publishWithCaused(pending, p);
        p = pending->caused.first; /* others may have gone with it */
    }
}

static void finishPut(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    if (p->isAuthor)
        noteAuthor(pending, p, EBPFMON_PUT_NUMBER(p->tid, p->id));
    if (waitsForCause(pending, p))
        appendCaused(pending, p);
    else
        publishWithCaused(pending, p);
}

static int hasPut(const putQueue *queue, uint32_t iocId, uint64_t number)
{
    const ebpfMonPendingPut *p = queue->last;

    while (p && (p->iocId != iocId || EBPFMON_PUT_NUMBER(p->tid, p->id) != number))
        p = p->before;
    return p != NULL;
}

/* Nonzero: the put that caused it waits itself. */
static int waitsForAuthor(const ebpfMonPendingPuts *pending, const ebpfMonPendingPut *p)
{
    return p->author && (hasPut(&pending->result[(uint32_t)(p->author >> 32) % BUCKETS], p->iocId, p->author) ||
                         hasPut(&pending->packet, p->iocId, p->author));
}

static void finishWithoutPacket(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    joinPacket(pending, p, 1);
    finishPut(pending, p);
}

/* Nonzero: the links of its IOC are not read yet, but will be. */
static int waitsForLinks(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p, uint64_t now)
{
    ebpfMonTarget *t;
    int waits = 0;

    ebpfMonTargetsLock(pending->targets);
    t = ebpfMonTargetsFindById(pending->targets, p->iocId);
    if (t && t->indexed)
        ebpfMonPutWritersFindLateLink(t, p->lateAddr, &p->put);
    else if (t && !t->gone)
        waits = now - p->since < (t->running ? RUNNING_NS : STARTING_NS);
    ebpfMonTargetsUnlock(pending->targets);
    return waits;
}

/* No event tells the result of a put to a link field: that is read from the field. */
static void readLinkResult(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(pending->targets);
    ebpfMonTarget *t;

    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(pending->targets);
        t = ebpfMonTargetsFindById(pending->targets, p->iocId);
        if (t && !t->gone)
            ebpfMonPutDecodeLinkResult(t, p->linkAt, &p->put);
        ebpfMonTargetsUnlock(pending->targets);
    } while (ebpfMonLateReadsMake(reads));
    if (p->isShared && p->put.result == ebpfMonPutFailed) {
        p->put.result = ebpfMonPutUnknown;
        p->put.status = 0;
    }
}

/* Its result did not come: the event was lost with the ring full, the IOC ended in dbPut, or the put takes long. */
static void finishWithoutResult(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    if (p->linkAt && p->put.result == ebpfMonPutUnknown)
        readLinkResult(pending, p);
    finishWithoutPacket(pending, p);
}

/* Nonzero: the field tells its result. While it has another text, the put may wait for the lock set of its record. */
static int isLinkMade(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p, uint64_t now)
{
    int isShared = p->isShared;

    p->isShared = 0;
    readLinkResult(pending, p);
    p->isShared = isShared;
    if (p->put.result != ebpfMonPutFailed)
        return 1;
    p->put.result = ebpfMonPutUnknown;
    p->put.status = 0;
    p->lookAt = now + (now - p->since);
    return 0;
}

/* The earlier put of the same thread is over. One of another thread may not be made yet. Nonzero: its result is
 * known. */
static int judgeLink(ebpfMonPendingPut *p, uint32_t tid, const char *link)
{
    if (link && ebpfMonPutDecodeIsLink(p->put.val, link)) {
        p->put.result = ebpfMonPutOk;
        return 1;
    }
    if (p->tid != tid) {
        p->isShared = 1;
        return 0;
    }
    if (link && link[0] && !p->isShared) { /* "": it could not be read, or there was no link */
        p->put.result = ebpfMonPutFailed;
        p->put.status = S_dbLib_badLink;
    }
    return 1;
}

void ebpfMonPendingPutsNoteLink(ebpfMonPendingPuts *pending, const struct ebpfMonPutEvent *ev, const char *link)
{
    for (unsigned b = 0; b < BUCKETS && pending->results; b++) {
        ebpfMonPendingPut *next;

        for (ebpfMonPendingPut *p = pending->result[b].first; p; p = next) {
            next = p->next;
            if (p->linkAt != ev->pfield || p->iocId != ev->head.iocId || !judgeLink(p, ev->head.tid, link))
                continue;
            removePut(&pending->result[b], p);
            pending->results--;
            ebpfMonPendingPutsComplete(pending, p);
        }
    }
}

/* The oldest of those that wait for their result. */
static void finishOldestResult(ebpfMonPendingPuts *pending)
{
    putQueue *oldest = NULL;
    ebpfMonPendingPut *p;

    for (unsigned b = 0; b < BUCKETS; b++)
        if (pending->result[b].first && (!oldest || pending->result[b].first->since < oldest->first->since))
            oldest = &pending->result[b];
    if (!oldest)
        return;
    p = oldest->first;
    removePut(oldest, p);
    pending->results--;
    finishWithoutResult(pending, p);
}

ebpfMonPendingPut *ebpfMonPendingPutsReserve(ebpfMonPendingPuts *pending)
{
    ebpfMonPendingPut *p;

    if (!pending->freed && pending->fresh < PENDING_MAX)
        return &pending->place[pending->fresh++];
    if (!pending->freed) {
        putQueue *queue = pending->packet.first ? &pending->packet : &pending->links;

        p = queue->first;
        if (p) {
            removePut(queue, p);
            finishWithoutPacket(pending, p);
        } else {
            finishOldestResult(pending);
        }
    }
    p = pending->freed;
    pending->freed = p->next;
    return p;
}

void ebpfMonPendingPutsAwaitResult(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    p->lookAt = p->linkAt ? p->since + LINK_NS : 0;
    p->isShared = 0;
    appendPut(&pending->result[p->tid % BUCKETS], p);
    pending->results++;
}

ebpfMonPendingPut *ebpfMonPendingPutsTake(ebpfMonPendingPuts *pending, uint32_t tid, uint64_t id)
{
    putQueue *queue = &pending->result[tid % BUCKETS];

    /* The puts of a thread are in the order of their ids, and the last one that has no result yet gets it first. If the
     * ring was full, thousands wait for a result that was lost, and results come of which the put was lost. */
    for (ebpfMonPendingPut *p = queue->last; p; p = p->before)
        if (p->tid == tid && p->id <= id) {
            if (p->id < id)
                return NULL;
            removePut(queue, p);
            pending->results--;
            return p;
        }
    return NULL;
}

void ebpfMonPendingPutsComplete(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    p->stillAt = 0;
    if (p->lateAddr)
        appendPut(&pending->links, p);
    else if (waitsForAuthor(pending, p))
        appendCaused(pending, p);
    /* behind one that waits it waits too: puts stay in order */
    else if (!pending->packet.first && joinPacket(pending, p, 0))
        finishPut(pending, p);
    else
        appendPut(&pending->packet, p);
}

static void tickPackets(ebpfMonPendingPuts *pending, uint64_t now, int all)
{
    ebpfMonPendingPut *p;

    while ((p = pending->packet.first)) {
        if (joinPacket(pending, p, 0)) {
            removePut(&pending->packet, p);
            finishPut(pending, p);
            continue;
        }
        /* its packet came before the IOC could make the put */
        if (!all && (p->awaitsReply || !ebpfMonPutJoinAwaitPackets(pending->join, p->since)) &&
            now - p->since < PACKETS_LATE_NS)
            break; /* those behind it are younger */
        removePut(&pending->packet, p);
        finishWithoutPacket(pending, p);
    }
}

static void tickLinks(ebpfMonPendingPuts *pending, uint64_t now, int all)
{
    ebpfMonPendingPut *next;

    for (ebpfMonPendingPut *p = pending->links.first; p; p = next) {
        next = p->next;
        if (!all && waitsForLinks(pending, p, now))
            continue;
        removePut(&pending->links, p);
        finishWithoutPacket(pending, p);
    }
}

/* When its result does not come any more. */
static uint64_t findResultEnd(const ebpfMonPendingPut *p)
{
    return (p->stillAt ? p->stillAt : p->since) + RESULT_NS;
}

/* When to do something about it. */
static uint64_t findResultDue(const ebpfMonPendingPut *p)
{
    uint64_t end = findResultEnd(p);

    return p->lookAt && p->lookAt < end ? p->lookAt : end;
}

/* SIGSTOP or a debugger holds its thread in the middle of dbPut: the put is made when it goes on. */
static int standsStill(ebpfMonPendingPuts *pending, const ebpfMonPendingPut *p)
{
    ebpfMonTarget *t;
    pid_t pid;

    ebpfMonTargetsLock(pending->targets);
    t = ebpfMonTargetsFindById(pending->targets, p->iocId);
    pid = t && !t->gone ? t->pid : 0;
    ebpfMonTargetsUnlock(pending->targets);
    return pid && ebpfMonProcStandsStill(pid, (pid_t)p->tid);
}

static void tickResults(ebpfMonPendingPuts *pending, uint64_t now, int all)
{
    for (unsigned b = 0; b < BUCKETS && pending->results; b++) {
        ebpfMonPendingPut *next;

        for (ebpfMonPendingPut *p = pending->result[b].first; p; p = next) {
            next = p->next;
            if (!all && now >= findResultEnd(p) && standsStill(pending, p))
                p->stillAt = now;
            if (!all && now < findResultEnd(p) && (now < findResultDue(p) || !isLinkMade(pending, p, now)))
                continue;
            removePut(&pending->result[b], p);
            pending->results--;
            finishWithoutResult(pending, p);
        }
    }
}

/* Not those that wait for their author. */
static void tickCaused(ebpfMonPendingPuts *pending, uint64_t now, int all)
{
    for (ebpfMonPendingPut *p = pending->caused.first; p;) {
        if (!all && (p->author || now - p->since < CAUSED_NS)) {
            p = p->next;
            continue;
        }
        removeCaused(pending, p);
        publishWithCaused(pending, p);
        p = pending->caused.first;
    }
}

void ebpfMonPendingPutsTick(ebpfMonPendingPuts *pending, uint64_t now, int all)
{
    tickPackets(pending, now, all);
    tickLinks(pending, now, all);
    tickResults(pending, now, all);
    tickCaused(pending, now, all);
}

static uint64_t findEarlier(uint64_t due, uint64_t other)
{
    return other < due ? other : due;
}

uint64_t ebpfMonPendingPutsGetDue(const ebpfMonPendingPuts *pending, uint64_t now)
{
    uint64_t due = UINT64_MAX;

    if (pending->packet.first)
        due = pending->packet.first->since + PACKETS_LATE_NS;
    for (const ebpfMonPendingPut *p = pending->caused.first; p; p = p->next)
        due = p->author ? due : findEarlier(due, p->since + CAUSED_NS);
    for (const ebpfMonPendingPut *p = pending->links.first; p; p = p->next)
        due = findEarlier(due, p->since + (now < p->since + RUNNING_NS ? RUNNING_NS : STARTING_NS));
    for (unsigned b = 0; b < BUCKETS && pending->results; b++)
        for (const ebpfMonPendingPut *p = pending->result[b].first; p; p = p->next)
            due = findEarlier(due, findResultDue(p));
    return due;
}

static uint64_t getFirst(const putQueue *queue, uint64_t oldest)
{
    const ebpfMonPendingPut *p = queue->first;

    while (p && p->stillAt)
        p = p->next;
    return p && p->since < oldest ? p->since : oldest;
}

/* The time (monotonic ns) of the oldest put that waits; UINT64_MAX: none does. Those whose threads stand still do not
 * count: nobody can wait for them. */
static uint64_t getOldest(const ebpfMonPendingPuts *pending)
{
    uint64_t oldest = getFirst(&pending->links, getFirst(&pending->packet, UINT64_MAX));

    for (unsigned b = 0; b < BUCKETS && pending->results; b++)
        oldest = getFirst(&pending->result[b], oldest);
    return oldest;
}

/* --- numbers of puts --- */

#define THREADS 1024 /* another thread with the same hash takes the place of one, which then begins anew */

typedef struct {
    uint32_t iocId, tid;
    uint64_t number, at; /* of its last put; monotonic ns */
} lastPut;

struct ebpfMonPutNumbers {
    uint64_t (*countLost)(void *arg);
    void    *arg;
    uint64_t lost;   /* when it was counted last */
    uint64_t lostAt; /* monotonic ns: when there were more than before. Those were lost until then, and some behind the
                      * event that was being read: it had waited in the ring */
    lastPut  last[THREADS];
};

ebpfMonPutNumbers *ebpfMonPutNumbersNew(uint64_t (*countLost)(void *arg), void *arg)
{
    ebpfMonPutNumbers *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->countLost = countLost;
    n->arg = arg;
    return n;
}

void ebpfMonPutNumbersFree(ebpfMonPutNumbers *n)
{
    free(n);
}

/* A lost event is counted before its thread sends the next one. Nonzero: events may have been lost after "since". */
static int hasLost(ebpfMonPutNumbers *n, uint64_t since)
{
    uint64_t now = ebpfMonClockMonotonic(), lost = n->countLost(n->arg);

    if (lost != n->lost)
        n->lostAt = now;
    n->lost = lost;
    return since <= n->lostAt;
}

uint64_t ebpfMonPutNumbersAdd(ebpfMonPutNumbers *n, uint32_t iocId, uint32_t tid, uint64_t number, uint64_t at)
{
    lastPut *last = &n->last[(tid ^ iocId * 2654435761u) % THREADS], before = *last;

    *last = (lastPut){ iocId, tid, number, at };
    /* a smaller one: another thread got this id */
    if (before.iocId != iocId || before.tid != tid || number <= before.number + 1 || hasLost(n, before.at))
        return 0;
    return number - before.number - 1;
}

/* --- events --- */

#define CAUSES 64

struct ebpfMonIocPuts {
    ebpfMonTargets     *targets;    /* these five are the caller's */
    ebpfMonLinkWrites  *linkWrites;
    ebpfMonThreadPuts  *threadPuts;
    ebpfMonLosses      *losses;
    ebpfMonAudits      *audits;
    ebpfMonIocPutSinks  sinks;
    ebpfMonPutWriters  *writers;
    ebpfMonPendingPuts *pending;
    ebpfMonPutNumbers  *numbers;
    struct ebpfMonCauseEvent cause[CAUSES]; /* by thread: the cause of the put that it makes next */
};

ebpfMonIocPuts *ebpfMonIocPutsNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, ebpfMonPutJoin *join,
                                  ebpfMonLinkWrites *linkWrites, ebpfMonThreadPuts *threadPuts, ebpfMonLosses *losses,
                                  ebpfMonAudits *audits, const ebpfMonIocPutSinks *sinks)
{
    ebpfMonIocPuts *puts = calloc(1, sizeof(*puts));

    if (!puts)
        return NULL;
    puts->targets = targets;
    puts->linkWrites = linkWrites;
    puts->threadPuts = threadPuts;
    puts->losses = losses;
    puts->audits = audits;
    puts->sinks = *sinks;
    puts->writers = ebpfMonPutWritersNew(targets, clients, linkWrites, threadPuts);
    puts->pending = ebpfMonPendingPutsNew(targets, join, clients, linkWrites, sinks->missedReceive, sinks->finished,
                                          sinks->arg);
    puts->numbers = ebpfMonPutNumbersNew(sinks->countLost, sinks->arg);
    if (!puts->writers || !puts->pending || !puts->numbers) {
        ebpfMonIocPutsFree(puts);
        return NULL;
    }
    return puts;
}

void ebpfMonIocPutsFree(ebpfMonIocPuts *puts)
{
    if (!puts)
        return;
    ebpfMonPutWritersFree(puts->writers);
    ebpfMonPendingPutsFree(puts->pending);
    ebpfMonPutNumbersFree(puts->numbers);
    free(puts);
}

void ebpfMonIocPutsAddCause(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size)
{
    if (size >= sizeof(*ev))
        puts->cause[ev->head.tid % CAUSES] = *ev;
}

/* The cause that the kernel part sent ahead of this put. NULL: none. */
static struct ebpfMonCauseEvent *findCause(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev)
{
    struct ebpfMonCauseEvent *cause = &puts->cause[ev->head.tid % CAUSES];

    return cause->head.tid == ev->head.tid && cause->head.iocId == ev->head.iocId && cause->put == (uint32_t)ev->id ?
           cause : NULL;
}

void ebpfMonIocPutsAddLinkWrite(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(puts->targets);
    ebpfMonPutEventClients clients;
    ebpfMonLinkWrite write;
    ebpfMonTarget *t;
    int isKnown;

    if (size < sizeof(*ev))
        return;
    ebpfMonPutWritersLookUp(puts->writers, &ev->head, &ev->who, NULL, &clients);
    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(puts->targets);
        t = ebpfMonTargetsFindById(puts->targets, ev->head.iocId);
        isKnown = t && ebpfMonPutWritersFindLinkWrite(puts->writers, t, ev, &clients, &write);
        ebpfMonTargetsUnlock(puts->targets);
    } while (ebpfMonLateReadsMake(reads));
    if (!isKnown)
        return;
    ebpfMonLinkWritesAdd(puts->linkWrites, &write);
    puts->sinks.linkWritten(puts->sinks.arg, &write);
}

/* What is kept with a put until it is finished. */
static void fillPending(ebpfMonPendingPut *p, const struct ebpfMonPutEvent *ev, int isLate, uint64_t author)
{
    int isOwn = !ev->root || ev->root == ev->precord; /* else another record's chain made it, and no message */

    p->tid = ev->head.tid;
    p->id = ev->id;
    p->since = ev->head.ktime;
    p->stillAt = 0;
    p->iocId = ev->head.iocId;
    p->lateAddr = isLate ? ev->addr : 0;
    p->linkAt = ev->putKind == EBPFMON_PUT_LINK ? ev->pfield : 0;
    p->at = (ebpfMonPutAddress){
        .pfldDes = ev->pfldDes, .precord = ev->precord, .fieldType = ev->fieldType, .fieldSize = ev->fieldSize,
        .isAcknowledge = ebpfMonPutDecodeIsAcknowledge(ev),
    };
    memset(&p->key, 0, sizeof(p->key));
    if (isOwn)
        p->key.peer = ev->who.peer;
    p->isAuthor = isOwn && ev->who.isShared;
    p->author = p->put.isUnsure && !p->isAuthor ? author : 0;
    p->key.at = ev->head.ktime;
    p->key.seq = ev->seq;
    p->key.seqFrom = ev->seqFrom;
    p->key.seqKind = ev->seqKind;
}

/* The writer, as the cause of the chain that the put starts. A put by a link, or by a routine that a client's put made
 * run, is made within a chain and starts none. */
static void addToThread(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, const ebpfMonPut *put)
{
    char who[80] = "";

    if (put->through == ebpfMonByLink || (put->through == ebpfMonByThread && put->peer[0]))
        return;
    if (put->peer[0])
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, who, sizeof(who));
    ebpfMonThreadPutsAdd(puts->threadPuts, ev, who);
}

/* Other links, such as those of JSON, do not have the text that was put. */
static int hasLinkText(const struct ebpfMonPutEvent *ev)
{
    return ev->linkType == EBPFMON_LINK_CONSTANT || ev->linkType == EBPFMON_LINK_PV ||
           ev->linkType == EBPFMON_LINK_DB || ev->linkType == EBPFMON_LINK_CA;
}

/* What is known of a put when its event was decoded. */
typedef struct {
    int isGood;           /* the event makes sense */
    int hasResult;        /* its result will come, or can be read */
    int isLate;           /* its link is perhaps known later */
    ebpfMonLinkPut change;
} decodedPut;

/* Decodes the event and finds the writer. It may be called again for the same event (host/lateReads.h). */
static void decodePut(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, size_t size,
                      const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients, ebpfMonPut *put,
                      decodedPut *decoded)
{
    ebpfMonTarget *t;

    memset(decoded, 0, sizeof(*decoded));
    ebpfMonTargetsLock(puts->targets);
    t = ebpfMonTargetsFindById(puts->targets, ev->head.iocId);
    if (t && (decoded->isGood = ebpfMonPutDecodeEvent(t, ev, size, put, &decoded->change))) {
        ebpfMonPutWritersFind(puts->writers, t, ev, cause, clients, put);
        /* its result is in the event ring, or comes */
        decoded->hasResult = ev->putKind == EBPFMON_PUT_LINK || (ev->putKind == EBPFMON_PUT_VALUE &&
                             ((t->probesOn & EBPFMON_BIT(ebpfMonProgPutReturn)) || ev->head.ktime < t->resultsUntil));
        if (!ebpfMonLateReadsAreWanted(t->eventThread.reads))
            ebpfMonPutWritersAddLink(puts->writers, t, &decoded->change, ev->head.ktime);
        decoded->isLate = !t->indexed && (put->through == ebpfMonByInit || put->through == ebpfMonByThread);
    }
    ebpfMonTargetsUnlock(puts->targets);
}

void ebpfMonIocPutsAddPut(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, size_t size)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(puts->targets);
    struct ebpfMonCauseEvent *cause;
    ebpfMonPutEventClients clients;
    ebpfMonPendingPut *p;
    decodedPut decoded;
    uint64_t missing;

    if (size < sizeof(*ev))
        return;
    missing = ebpfMonPutNumbersAdd(puts->numbers, ev->head.iocId, ev->head.tid, ev->id, ev->head.ktime);
    cause = findCause(puts, ev);
    p = ebpfMonPendingPutsReserve(puts->pending);
    ebpfMonPutWritersLookUp(puts->writers, &ev->head, &ev->who, cause, &clients);
    ebpfMonLateReadsBegin(reads);
    do
        decodePut(puts, ev, size, cause, &clients, &p->put, &decoded);
    while (ebpfMonLateReadsMake(reads));
    if (cause)
        cause->head.tid = 0; /* it is used */
    if (!decoded.isGood) {
        ebpfMonLossesAdd(puts->losses, ebpfMonLossGone);
        ebpfMonPendingPutsDiscard(puts->pending, p);
        return;
    }
    if (missing)
        ebpfMonAuditsAdd(puts->audits, ebpfMonAuditPutNumber, missing, p->put.ioc);
    if (decoded.change.precord)
        puts->sinks.linkChanged(puts->sinks.arg, ev->head.iocId, decoded.change.precord);
    addToThread(puts, ev, &p->put);
    if (ev->putKind == EBPFMON_PUT_LINK)
        ebpfMonPendingPutsNoteLink(puts->pending, ev, hasLinkText(ev) ? p->put.old : NULL);
    fillPending(p, ev, decoded.isLate,
                cause ? cause->putNumber : ebpfMonThreadPutsGetNumber(puts->threadPuts, ev->head.iocId, ev->head.tid));
    if (decoded.hasResult)
        ebpfMonPendingPutsAwaitResult(puts->pending, p);
    else
        ebpfMonPendingPutsComplete(puts->pending, p);
}

void ebpfMonIocPutsAddResult(ebpfMonIocPuts *puts, const struct ebpfMonResultEvent *ev, size_t size)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(puts->targets);
    ebpfMonPendingPut *p;
    ebpfMonTarget *t;

    if (size < sizeof(*ev) || !(p = ebpfMonPendingPutsTake(puts->pending, ev->head.tid, ev->id)))
        return;
    p->put.result = ev->status ? ebpfMonPutFailed : ebpfMonPutOk;
    p->put.status = (long)ev->status;
    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(puts->targets);
        t = ev->status ? NULL : ebpfMonTargetsFindById(puts->targets, ev->head.iocId);
        if (t)
            ebpfMonPutDecodeResult(t, &p->at, ev, &p->put);
        ebpfMonTargetsUnlock(puts->targets);
    } while (ebpfMonLateReadsMake(reads));
    ebpfMonPendingPutsComplete(puts->pending, p);
}

void ebpfMonIocPutsTick(ebpfMonIocPuts *puts, uint64_t now, int all)
{
    ebpfMonPendingPutsTick(puts->pending, now, all);
}

uint64_t ebpfMonIocPutsGetDue(const ebpfMonIocPuts *puts, uint64_t now)
{
    return ebpfMonPendingPutsGetDue(puts->pending, now);
}

uint64_t ebpfMonIocPutsGetOldest(const ebpfMonIocPuts *puts)
{
    return getOldest(puts->pending);
}

int ebpfMonIocPutsAddEvent(ebpfMonIocPuts *puts, const struct ebpfMonHead *head, size_t size)
{
    switch (head->kind) {
    case EBPFMON_EV_PUT:
        ebpfMonIocPutsAddPut(puts, (const struct ebpfMonPutEvent *)head, size);
        return 1;
    case EBPFMON_EV_RESULT:
        ebpfMonIocPutsAddResult(puts, (const struct ebpfMonResultEvent *)head, size);
        return 1;
    case EBPFMON_EV_CAUSE:
        ebpfMonIocPutsAddCause(puts, (const struct ebpfMonCauseEvent *)head, size);
        return 1;
    case EBPFMON_EV_CALINK:
        ebpfMonIocPutsAddLinkWrite(puts, (const struct ebpfMonCauseEvent *)head, size);
        return 1;
    default:
        return 0;
    }
}

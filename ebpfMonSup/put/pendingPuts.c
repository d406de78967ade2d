/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USE_TYPED_RSET
#include <dbStaticLib.h>

#include "host/procStat.h"
#include "put/pendingPuts.h"
#include "put/putAuthors.h"
#include "put/putDecode.h"
#include "put/putWriter.h"
#include "put/writerText.h"

#define PENDING_MAX 4096
#define BUCKETS     256 /* of puts that wait for their result, by thread: each thread has few */
#define RESULT_NS   2000000000ull  /* a put that takes longer is published without its result; its time does not count
                                      while its thread stands still */
#define LINK_NS     10000000ull    /* dbPutFieldLink (dbAccess.c) takes microseconds, if it has not to wait for its
                                    * lock */
#define RUNNING_NS  1000000000ull  /* the links of a running IOC are read within this, or there is no room for them */
#define STARTING_NS 60000000000ull
#define PACKETS_LATE_NS 500000000ull /* the packet thread may not get its turn */

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
    putQueue           caused;   /* complete; they wait until it is known whose put caused them */
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

/* Also of those that it caused, and that wait for it. */
static void finishPut(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p)
{
    uint64_t number = EBPFMON_PUT_NUMBER(p->tid, p->id);
    uint32_t iocId = p->iocId;
    ebpfMonPendingPut *next;

    if (p->isAuthor)
        noteAuthor(pending, p, number);
    publishPut(pending, p);
    for (p = pending->caused.first; p; p = next) {
        next = p->next;
        if (p->author != number || p->iocId != iocId)
            continue;
        removePut(&pending->caused, p);
        publishPut(pending, p);
    }
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
    if (p->lateAddr || waitsForAuthor(pending, p))
        appendPut(p->lateAddr ? &pending->links : &pending->caused, p);
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

void ebpfMonPendingPutsTick(ebpfMonPendingPuts *pending, uint64_t now, int all)
{
    tickPackets(pending, now, all);
    tickLinks(pending, now, all);
    tickResults(pending, now, all);
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

uint64_t ebpfMonPendingPutsGetOldest(const ebpfMonPendingPuts *pending)
{
    uint64_t oldest = getFirst(&pending->links, getFirst(&pending->packet, UINT64_MAX));

    for (unsigned b = 0; b < BUCKETS && pending->results; b++)
        oldest = getFirst(&pending->result[b], oldest);
    return oldest;
}

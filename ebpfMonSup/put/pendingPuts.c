/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "put/putWriter.h"
#include "put/pendingPuts.h"
#include "publish/putPublisher.h"
#include "trace/linkMessages.h"
#include "watch/target.h"
#include "trace/traces.h"
#include "probe/loader.h"

#define PENDING     4096
#define BUCKETS     256 /* by thread: each has few puts under way */
#define PATIENCE_NS 2000000000ull
#define LINK_NS     10000000ull /* dbPutFieldLink takes microseconds */
#define EARLY_NS    1000000000ull /* a running IOC's links are read within this, or there is no room for them */
#define STARTING_NS 60000000000ull
#define WIRE_NS     15000000ull /* the packet socket hands over a block after 4 ms and a tick of the kernel's timer */
#define LATE_NS     500000000ull /* the wire's thread does not get its turn */

typedef struct {
    ebpfMonPendingPut *first, *last;
} list;

static ebpfMonPendingPut pool[PENDING];
static ebpfMonPendingPut *freed;   /* places that were used before */
static unsigned fresh = 0;      /* pool[fresh …] never were: their memory is not touched before */
static list result[BUCKETS];    /* wait for their result, oldest first */
static list wire;               /* are complete, and wait for the wire */
static list early;              /* are complete, and wait for the links of their IOC, which starts */
static unsigned results;

static void append(list *l, ebpfMonPendingPut *p)
{
    p->next = NULL;
    if (l->last)
        l->last->next = p;
    else
        l->first = p;
    l->last = p;
}

static void unlink(list *l, ebpfMonPendingPut *before, ebpfMonPendingPut *p)
{
    if (before)
        before->next = p->next;
    else
        l->first = p->next;
    if (l->last == p)
        l->last = before;
}

void ebpfMonPendingPutsDrop(ebpfMonPendingPut *p)
{
    p->next = freed;
    freed = p;
}

/* The wire knows better whose it is. */
static void correctAuthor(ebpfMonPendingPut *p)
{
    struct ebpfMonOwner owner = { .pid = 0 };
    char user[sizeof(p->put.user)], host[sizeof(p->put.host)];

    memcpy(user, p->put.user, sizeof(user));
    memcpy(host, p->put.host, sizeof(host));
    ebpfMonKernelGetOwner(&p->key.peer, &owner);
    p->put.peerPid = p->put.peerUid = 0;
    p->put.command[0] = p->put.container[0] = p->put.realUser[0] = 0;
    ebpfMonPutWriterSetClient(&p->key.peer, &owner, user, host, &p->put);
}

/* Nonzero: no need to wait for the wire (any longer). */
static int joined(ebpfMonPendingPut *p, int last)
{
    ebpfMonPutJoinResult r = ebpfMonPutJoinMatchIoc(&p->key, &p->put, last);

    if (r == ebpfMonPutJoinFound && p->key.moved)
        correctAuthor(p);
    if (r != ebpfMonPutJoinFound && (last || r == ebpfMonPutJoinAlone) && p->key.seqKind == EBPFMON_SEQ_SHARED &&
        p->put.through == ebpfMonByPva && !p->put.cause[0]) /* without the wire nobody knows */
        snprintf(p->put.cause, sizeof(p->put.cause), "or another client of this thread");
    return r != ebpfMonPutJoinWait;
}

static void done(ebpfMonPendingPut *p)
{
    ebpfMonPutPublisherPublish(ebpfMonThePutPublisher, &p->put);
    if (p->put.linkChain.iocId)
        ebpfMonLinkMessagesNoteArrival(&p->put.linkChain, p->put.link, p->key.seqKind == EBPFMON_SEQ_MESSAGE ? &p->key.peer : NULL,
                            p->key.seq, p->key.at, 1);
    ebpfMonTracesAddPut(p->iocId, p->tid, p->id, &p->put, &p->key);
    ebpfMonPendingPutsDrop(p);
}

static void publish(ebpfMonPendingPut *p)
{
    joined(p, 1);
    done(p);
}

/* Nonzero: its IOC has not told its links yet. */
static int isEarly(ebpfMonPendingPut *p, uint64_t now)
{
    ebpfMonTarget *t;
    int wait = 0;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    t = ebpfMonTargetsFindById(ebpfMonTheTargets, p->iocId);
    if (t && t->indexed)
        ebpfMonPutWriterFindLateLink(t, p->early, &p->put);
    else if (t && !t->gone)
        wait = now - p->since < (t->running ? EARLY_NS : STARTING_NS);
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return wait;
}

/* Its result did not come: it was lost with the ring full, its IOC died in dbPut, or the put takes long; that of a
 * link is looked up in the link itself. */
static void withoutResult(ebpfMonPendingPut *p)
{
    ebpfMonTarget *t;

    if (p->linkAt) {
        ebpfMonTargetsLock(ebpfMonTheTargets);
        t = ebpfMonTargetsFindById(ebpfMonTheTargets, p->iocId);
        if (t && !t->gone)
            ebpfMonPutDecodeLinkResult(t, p->linkAt, &p->put);
        ebpfMonTargetsUnlock(ebpfMonTheTargets);
    }
    publish(p);
}

static void giveUpOldestResult(void)
{
    list *oldest = NULL;

    for (unsigned b = 0; b < BUCKETS; b++)
        if (result[b].first && (!oldest || result[b].first->since < oldest->first->since))
            oldest = &result[b];
    if (oldest) {
        ebpfMonPendingPut *p = oldest->first;

        unlink(oldest, NULL, p);
        results--;
        withoutResult(p);
    }
}

ebpfMonPendingPut *ebpfMonPendingPutsNew(void)
{
    ebpfMonPendingPut *p;

    if (!freed && fresh < PENDING)
        return &pool[fresh++];
    if (!freed) {
        list *l = wire.first ? &wire : &early;

        p = l->first;
        if (p) {
            unlink(l, NULL, p);
            publish(p);
        } else {
            giveUpOldestResult();
        }
    }
    p = freed;
    freed = p->next;
    return p;
}

void ebpfMonPendingPutsAwaitResult(ebpfMonPendingPut *p)
{
    append(&result[p->tid % BUCKETS], p);
    results++;
}

ebpfMonPendingPut *ebpfMonPendingPutsTake(uint32_t tid, uint64_t id)
{
    list *l = &result[tid % BUCKETS];

    for (ebpfMonPendingPut *p = l->first, *before = NULL; p; before = p, p = p->next)
        if (p->tid == tid && p->id == id) {
            unlink(l, before, p);
            results--;
            return p;
        }
    return NULL;
}

void ebpfMonPendingPutsComplete(ebpfMonPendingPut *p)
{
    if (p->early) {
        append(&early, p);
        return;
    }
    /* none overtakes another */
    if (!wire.first && joined(p, 0)) {
        done(p);
        return;
    }
    append(&wire, p);
}

void ebpfMonPendingPutsTick(uint64_t now, int all)
{
    uint64_t looked = ebpfMonPutJoinGetPacketsRead();
    ebpfMonPendingPut *p, *before, *next;

    while ((p = wire.first)) {
        if (joined(p, 0)) {
            unlink(&wire, NULL, p);
            done(p);
            continue;
        }
        if (!all && looked < p->since + WIRE_NS && now - p->since < LATE_NS)
            break; /* those behind it are younger */
        unlink(&wire, NULL, p);
        publish(p);
    }
    for (p = early.first, before = NULL; p; p = next) {
        next = p->next;
        if (!all && isEarly(p, now)) {
            before = p;
            continue;
        }
        unlink(&early, before, p);
        publish(p);
    }
    for (unsigned b = 0; b < BUCKETS && results; b++)
        for (p = result[b].first, before = NULL; p; p = next) {
            next = p->next;
            if (!all && now - p->since < (p->linkAt ? LINK_NS : PATIENCE_NS)) {
                before = p;
                continue;
            }
            unlink(&result[b], before, p);
            results--;
            withoutResult(p);
        }
}

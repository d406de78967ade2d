/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsMutex.h>

#include "watch/linkPuts.h"

#define PUTS_MAX 1024
#define LIFE_NS  1500000000ull  /* the records are read for 1.1 s at least (requests.c) */
#define UNREAD_NS 60000000000ull /* nobody will read them: their IOC ended, or has no room for its records; or it
                                  * refused them */

typedef struct {
    ebpfMonLinkPut put;
    uint64_t addedAt;
    uint64_t seenAt;     /* the record was read then, and this put was done; 0: not yet */
    uint64_t supersededAt; /* the newest put that changed what it made is not done before */
    uint8_t  superseded;
    uint8_t  isOpen;     /* … by a put of another thread, or one that is not noted: it may be done later than that */
    uint8_t  isTaken;    /* the record was read since it was added */
} notedPut;

struct ebpfMonLinkPuts {
    epicsMutexId lock;   /* guards all that follows */
    unsigned count;
    notedPut put[PUTS_MAX];
};

ebpfMonLinkPuts *ebpfMonLinkPutsNew(void)
{
    ebpfMonLinkPuts *puts = calloc(1, sizeof(*puts));

    if (puts)
        puts->lock = epicsMutexMustCreate();
    return puts;
}

void ebpfMonLinkPutsFree(ebpfMonLinkPuts *puts)
{
    if (!puts)
        return;
    epicsMutexDestroy(puts->lock);
    free(puts);
}

static int isOf(const notedPut *n, uint32_t iocId, uint64_t precord)
{
    return n->put.iocId == iocId && n->put.precord == precord;
}

/* "next" changes what "n" made, and the record was not read in between. Two links of one record count, too: what both
 * of them made together is not known. */
static int supersedesPut(const ebpfMonLinkPut *next, const notedPut *n)
{
    if (!isOf(n, next->iocId, next->precord))
        return 0;
    if (n->put.stops && next->isStamp)
        return 1;
    return n->put.target && next->isLink && !(n->seenAt && n->seenAt < next->at);
}

static int areAlike(const ebpfMonLinkPut *a, const ebpfMonLinkPut *b)
{
    return a->iocId == b->iocId && a->precord == b->precord && a->pfldDes == b->pfldDes && a->target == b->target &&
           a->old == b->old && a->stops == b->stops;
}

static void dropPut(ebpfMonLinkPuts *puts, unsigned i)
{
    puts->put[i] = puts->put[--puts->count];
}

/* An older one of the same kind, superseded too, stands for both. */
static int hasOlder(ebpfMonLinkPuts *puts, unsigned i)
{
    for (unsigned k = 0; k < puts->count; k++) {
        notedPut *o = &puts->put[k];

        if (k == i || !o->superseded || !areAlike(&o->put, &puts->put[i].put))
            continue;
        if (puts->put[i].put.at < o->put.at)
            o->put.at = puts->put[i].put.at;
        if (puts->put[i].supersededAt > o->supersededAt)
            o->supersededAt = puts->put[i].supersededAt;
        o->isOpen |= puts->put[i].isOpen;
        o->addedAt = puts->put[i].addedAt;
        return 1;
    }
    return 0;
}

/* A link that the record does not have yet as this put makes it: dbPutFieldLink (dbAccess.c) waits until nobody holds
 * the lock sets, which takes as long as a slow record. */
static int isAwaited(const notedPut *n)
{
    return n->put.isLink && !n->seenAt && !n->superseded;
}

static int isOld(const notedPut *n, uint64_t now)
{
    uint64_t since = n->superseded ? n->supersededAt : n->addedAt;
    int isSettled = n->isTaken && (n->superseded ? n->isOpen : !isAwaited(n));

    return now > since && now - since > (isSettled ? LIFE_NS : UNREAD_NS);
}

static void dropOld(ebpfMonLinkPuts *puts, uint64_t now)
{
    for (unsigned i = 0; i < puts->count;)
        if (isOld(&puts->put[i], now))
            dropPut(puts, i);
        else
            i++;
}

int ebpfMonLinkPutsAdd(ebpfMonLinkPuts *puts, const ebpfMonLinkPut *put, uint64_t now)
{
    int rc = 0;

    epicsMutexMustLock(puts->lock);
    dropOld(puts, now);
    for (unsigned i = 0; i < puts->count;) {
        notedPut *n = &puts->put[i];

        if (supersedesPut(put, n)) {
            n->isOpen |= n->put.tid != put->tid;
            n->superseded = 1;
            n->supersededAt = put->at;
            if (hasOlder(puts, i)) {
                dropPut(puts, i);
                continue;
            }
        }
        i++;
    }
    if (put->target || put->old || put->stops) {
        if (puts->count < PUTS_MAX)
            puts->put[puts->count++] = (notedPut){ .put = *put, .addedAt = now, .superseded = put->isBrief,
                                                   .supersededAt = put->at, .isOpen = put->isBrief };
        else
            rc = -1;
    }
    epicsMutexUnlock(puts->lock);
    return rc;
}

uint64_t ebpfMonLinkPutsGetOldest(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord)
{
    uint64_t oldest = UINT64_MAX;

    epicsMutexMustLock(puts->lock);
    for (unsigned i = 0; i < puts->count; i++) {
        const notedPut *n = &puts->put[i];

        if (isOf(n, iocId, precord) && n->put.target && !n->seenAt && n->put.at < oldest)
            oldest = n->put.at;
    }
    epicsMutexUnlock(puts->lock);
    return oldest;
}

/* Notes which puts the reading shows to be done. */
static void noteSeen(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t readAt,
                     int (*isDone)(void *arg, const ebpfMonLinkPut *put), void *arg)
{
    for (unsigned i = 0; i < puts->count; i++) {
        notedPut *n = &puts->put[i];

        if (!isOf(n, iocId, precord) || n->put.at >= readAt) /* the next reading tells of a put that came during this
                                                              * one */
            continue;
        n->isTaken = 1;
        if (n->put.isLink && !n->seenAt && isDone(arg, &n->put))
            n->seenAt = readAt;
    }
}

/* Nonzero: another put to the record was not done when the record was read, or may not have been: then the link that
 * this put removes still exists. */
static int isOthersAwaited(const ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t readAt)
{
    for (unsigned i = 0; i < puts->count; i++) {
        const notedPut *n = &puts->put[i];

        if (isOf(n, iocId, precord) && (isAwaited(n) || n->seenAt == readAt))
            return 1;
    }
    return 0;
}

unsigned ebpfMonLinkPutsTake(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t readAt,
                             int (*isDone)(void *arg, const ebpfMonLinkPut *put), void *arg, ebpfMonLinkPut *superseded,
                             unsigned max)
{
    unsigned count = 0;
    int isMore;

    epicsMutexMustLock(puts->lock);
    noteSeen(puts, iocId, precord, readAt, isDone, arg);
    isMore = isOthersAwaited(puts, iocId, precord, readAt);
    for (unsigned i = 0; i < puts->count && count < max;) {
        notedPut *n = &puts->put[i];

        if (!isOf(n, iocId, precord) || n->put.at >= readAt || (n->superseded && n->supersededAt >= readAt)) {
            i++;
            continue;
        }
        if (n->superseded)
            superseded[count++] = n->put;
        if (n->superseded && (n->isOpen || isMore) && !isOld(n, readAt)) {
            n->put.at = readAt; /* up to then it is settled */
            i++;
        } else if (n->superseded || isOld(n, readAt)) {
            dropPut(puts, i);
        } else {
            i++;
        }
    }
    epicsMutexUnlock(puts->lock);
    return count;
}

int ebpfMonLinkPutsIsAwaited(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t now)
{
    int is = 0;

    epicsMutexMustLock(puts->lock);
    for (unsigned i = 0; i < puts->count && !is; i++) {
        const notedPut *n = &puts->put[i];

        is = isOf(n, iocId, precord) && (isAwaited(n) || (n->superseded && !n->isOpen)) && !isOld(n, now);
    }
    epicsMutexUnlock(puts->lock);
    return is;
}

unsigned ebpfMonLinkPutsListEdges(ebpfMonLinkPuts *puts, uint32_t iocId, ebpfMonLinkEdge *edges, unsigned max)
{
    unsigned count = 0;

    epicsMutexMustLock(puts->lock);
    for (unsigned i = 0; i < puts->count; i++) {
        const ebpfMonLinkPut *p = &puts->put[i].put;

        if (p->iocId != iocId)
            continue;
        if (p->target && count < max)
            edges[count++] = (ebpfMonLinkEdge){ p->precord, p->target };
        if (p->old && count < max)
            edges[count++] = (ebpfMonLinkEdge){ p->precord, p->old };
    }
    epicsMutexUnlock(puts->lock);
    return count;
}

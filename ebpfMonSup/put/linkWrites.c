/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/clock.h"
#include "common/hash.h"
#include "put/linkWrites.h"

#define SETS  512 /* of channels, by hash */
#define WAYS  4   /* links that write to the channels of one set */
#define KEPT  8   /* writes of one link: the server may make their puts much later */
#define LIFE_NS  (60 * EBPFMON_SECOND_NS) /* a CA link that is not connected sends once it is */
#define CLOSE_NS EBPFMON_SECOND_NS        /* two writes this close may be mistaken for each other */

/* What differs between the writes of one link. */
typedef struct {
    uint64_t at;      /* monotonic ns; 0: none */
    uint64_t takenBy; /* when the packet was sent that carried it, or a later value of the link; 0: none was seen */
    int      isUnsure; /* … perhaps it carried another one */
    ebpfMonChainId chain;
    char     root[EBPFMON_NAME_SIZE];
    char     cause[sizeof(((ebpfMonLinkWrite *)0)->cause)];
} madeWrite;

typedef struct {
    uint32_t  pid; /* 0: the place is free */
    unsigned  writes; /* so far; number n is at n % KEPT */
    char      channel[sizeof(((ebpfMonLinkWrite *)0)->channel)];
    char      link[EBPFMON_NAME_SIZE + 8];
    char      ioc[EBPFMON_NAME_SIZE];
    madeWrite write[KEPT];
} writingLink;

struct ebpfMonLinkWrites {
    epicsMutexId lock; /* guards the table */
    writingLink table[SETS][WAYS];
};

ebpfMonLinkWrites *ebpfMonLinkWritesNew(void)
{
    ebpfMonLinkWrites *writes = calloc(1, sizeof(*writes));

    if (writes)
        writes->lock = epicsMutexMustCreate();
    return writes;
}

void ebpfMonLinkWritesFree(ebpfMonLinkWrites *writes)
{
    if (!writes)
        return;
    epicsMutexDestroy(writes->lock);
    free(writes);
}

static writingLink *findSet(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel)
{
    uint32_t h = ebpfMonHashFnv32(pid * 2654435761u, channel, strlen(channel));

    return writes->table[(h ^ h >> 16) % SETS];
}

static uint64_t getNewest(const writingLink *l)
{
    return l->writes ? l->write[(l->writes - 1) % KEPT].at : 0;
}

/* The place of this link, or that of the link that has not written for longest. */
static writingLink *getLink(ebpfMonLinkWrites *writes, const ebpfMonLinkWrite *write)
{
    writingLink *set = findSet(writes, write->pid, write->channel), *to = &set[0];

    for (int i = 0; i < WAYS; i++) {
        if (set[i].pid == write->pid && strcmp(set[i].link, write->link) == 0 &&
            strcmp(set[i].channel, write->channel) == 0)
            return &set[i];
        if (getNewest(&set[i]) < getNewest(to))
            to = &set[i];
    }
    memset(to, 0, sizeof(*to));
    to->pid = write->pid;
    memcpy(to->channel, write->channel, sizeof(to->channel));
    memcpy(to->link, write->link, sizeof(to->link));
    memcpy(to->ioc, write->ioc, sizeof(to->ioc));
    return to;
}

void ebpfMonLinkWritesAdd(ebpfMonLinkWrites *writes, const ebpfMonLinkWrite *write)
{
    writingLink *l;
    madeWrite *w;

    epicsMutexMustLock(writes->lock);
    l = getLink(writes, write);
    w = &l->write[l->writes++ % KEPT];
    w->at = write->at;
    w->takenBy = 0;
    w->isUnsure = 0;
    w->chain = write->chain;
    memcpy(w->root, write->root, sizeof(w->root));
    memcpy(w->cause, write->cause, sizeof(w->cause));
    epicsMutexUnlock(writes->lock);
}

/* --- finding: under the lock --- */

/* A write that a put may carry. */
typedef struct {
    writingLink *link;
    madeWrite *write;  /* NULL: it was forgotten, because the link wrote often since */
    uint64_t   since;  /* when the link had written first, within a second, what no packet carried yet */
} writeOfPut;

/* The last write of the link before "at"; "*first": when it wrote the first of those that no packet carried, of the
 * last second. */
static madeWrite *findLast(writingLink *l, uint64_t at, uint64_t *first)
{
    madeWrite *last = NULL;

    *first = UINT64_MAX;
    for (unsigned i = 0; i < KEPT; i++) {
        madeWrite *w = &l->write[i];

        if (!w->at || w->at > at || at - w->at > LIFE_NS)
            continue;
        if (!last || w->at >= last->at)
            last = w;
        if (!w->takenBy && at - w->at < CLOSE_NS && w->at < *first)
            *first = w->at;
    }
    return last;
}

static int isOf(const writingLink *l, uint32_t pid, const char *channel)
{
    return l->pid == pid && strcmp(l->channel, channel) == 0;
}

/* Finds the write whose value was in the message sent at this time. A value is sent once. dbCa.c serves links in the
 * order of their oldest waiting values, and sends the newest value of each. */
static writeOfPut findSent(writingLink *set, uint32_t pid, const char *channel, uint64_t at)
{
    writeOfPut found = { .link = NULL };

    for (int i = 0; i < WAYS; i++) {
        writingLink *l = &set[i];
        uint64_t first;
        madeWrite *w = isOf(l, pid, channel) ? findLast(l, at, &first) : NULL;

        if (w && w->takenBy == at)
            return (writeOfPut){ l, w, first };
        if (!w && isOf(l, pid, channel) && l->writes > KEPT && !found.link)
            found = (writeOfPut){ l, NULL, 0 };
        if (!w || w->takenBy)
            continue;
        if (!found.write || first < found.since || (first == found.since && w->at > found.write->at))
            found = (writeOfPut){ l, w, first };
    }
    return found;
}

/* The last write before the put, by whichever link. */
static writeOfPut findNewest(writingLink *set, uint32_t pid, const char *channel, uint64_t at)
{
    writeOfPut found = { .link = NULL };

    for (int i = 0; i < WAYS; i++) {
        uint64_t first;
        madeWrite *w = isOf(&set[i], pid, channel) ? findLast(&set[i], at, &first) : NULL;

        if (w && (!found.write || w->at > found.write->at))
            found = (writeOfPut){ &set[i], w, first };
    }
    return found;
}

/* How many other links of the process wrote to this channel at nearly the same time. */
static unsigned countOthers(writingLink *set, uint32_t pid, const char *channel, uint64_t at, const writeOfPut *found)
{
    unsigned others = 0;

    for (int i = 0; found->write && i < WAYS; i++) {
        uint64_t first;
        const madeWrite *w = &set[i] != found->link && isOf(&set[i], pid, channel) ?
                             findLast(&set[i], at, &first) : NULL;

        others += w && (w->at > found->write->at ? w->at - found->write->at : found->write->at - w->at) < CLOSE_NS;
    }
    return others;
}

/* The values before it will not be sent any more. */
static void takeWrite(writingLink *l, madeWrite *w, uint64_t by, int isUnsure)
{
    w->isUnsure = isUnsure;
    for (unsigned i = 0; i < KEPT; i++)
        if (l->write[i].at <= w->at && !l->write[i].takenBy)
            l->write[i].takenBy = by;
}

/* --- the writer of a put --- */

/* Nonzero: perhaps the put does not carry this write. The link may have written it while the message was sent; then
 * that one has the value before, and the next message this one. */
static int mayBeAnother(const writingLink *l, const madeWrite *w, uint64_t at)
{
    const madeWrite *before = NULL;

    if (w->takenBy == at)
        return w->isUnsure;
    for (unsigned i = 0; i < KEPT; i++)
        if (l->write[i].at && l->write[i].at < w->at && (!before || l->write[i].at > before->at))
            before = &l->write[i];
    if (!before)
        return l->writes > KEPT;
    return w->at - before->at < CLOSE_NS && (!before->takenBy || before->isUnsure);
}

static void setWriter(const writeOfPut *found, unsigned others, uint64_t at, ebpfMonPut *put)
{
    const madeWrite *w = found->write;

    put->through = ebpfMonByCaLink;
    put->linkChain = w ? w->chain : (ebpfMonChainId){ .iocId = 0 };
    put->isLinkUnsure = !w || others || mayBeAnother(found->link, w, at);
    memcpy(put->link, found->link->link, sizeof(put->link));
    memcpy(put->linkIoc, found->link->ioc, sizeof(put->linkIoc));
    snprintf(put->root, sizeof(put->root), "%s", w ? w->root : "");
    if (others)
        snprintf(put->cause, sizeof(put->cause), "%.60s; or one of %u other links", w->cause, others);
    else
        snprintf(put->cause, sizeof(put->cause), "%s", w ? w->cause : "");
}

int ebpfMonLinkWritesSetWriter(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t at,
                               ebpfMonPut *put)
{
    writingLink *set = findSet(writes, pid, channel);
    writeOfPut found;

    epicsMutexMustLock(writes->lock);
    found = findNewest(set, pid, channel, at);
    if (found.link)
        setWriter(&found, countOthers(set, pid, channel, at, &found), at, put);
    epicsMutexUnlock(writes->lock);
    return found.link != NULL;
}

int ebpfMonLinkWritesTakeWriter(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t sentAt,
                                ebpfMonPut *put)
{
    writingLink *set = findSet(writes, pid, channel);
    writeOfPut found;

    epicsMutexMustLock(writes->lock);
    found = findSent(set, pid, channel, sentAt);
    if (found.link)
        setWriter(&found, countOthers(set, pid, channel, sentAt, &found), sentAt, put);
    if (found.write)
        takeWrite(found.link, found.write, sentAt, put->isLinkUnsure);
    epicsMutexUnlock(writes->lock);
    return found.link != NULL;
}

void ebpfMonLinkWritesCorrect(ebpfMonLinkWrites *writes, ebpfMonPut *put, uint64_t sentAt)
{
    const char *channel = put->channel[0] ? put->channel : put->pv;

    if (!put->peerPid || (put->through != ebpfMonByCa && put->through != ebpfMonByCaLink) ||
        ebpfMonLinkWritesTakeWriter(writes, put->peerPid, channel, sentAt, put) ||
        put->through == ebpfMonByCa)
        return;
    put->through = ebpfMonByCa;
    put->linkChain.iocId = 0;
    put->isLinkUnsure = 0;
    put->link[0] = put->linkIoc[0] = put->root[0] = put->cause[0] = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "put/threadPuts.h"
#include "put/valueText.h"

/* --- authors --- */

#define PUTS 512 /* a power of two */

typedef struct {
    uint32_t iocId; /* 0: the place is free */
    uint64_t number;
    int      isUnsure, isOther;
    ebpfMonPutClient client; /* if isOther */
} putAuthor;

struct ebpfMonPutAuthors {
    putAuthor put[PUTS];
};

ebpfMonPutAuthors *ebpfMonPutAuthorsNew(void)
{
    return calloc(1, sizeof(ebpfMonPutAuthors));
}

void ebpfMonPutAuthorsFree(ebpfMonPutAuthors *authors)
{
    free(authors);
}

static size_t findAuthorPlace(uint32_t iocId, uint64_t number)
{
    return (size_t)(number + (number >> 32) * 97 + iocId) % PUTS;
}

void ebpfMonPutAuthorsAdd(ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, const ebpfMonPut *put,
                          const ebpfMonPutClient *other)
{
    putAuthor *a = &authors->put[findAuthorPlace(iocId, number)];

    a->iocId = iocId;
    a->number = number;
    a->isUnsure = put->isUnsure;
    a->isOther = other != NULL;
    if (other)
        a->client = *other;
}

void ebpfMonPutAuthorsSet(const ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, ebpfMonPut *put)
{
    const putAuthor *a = &authors->put[findAuthorPlace(iocId, number)];

    if (a->iocId != iocId || a->number != number || a->isUnsure)
        return;
    if (a->isOther)
        ebpfMonPutClientSet(&a->client, put);
    put->isUnsure = 0;
    if (strncmp(put->cause, EBPFMON_PUT_BY, sizeof(EBPFMON_PUT_BY) - 1) == 0)
        ebpfMonWriterTextFormatCause(put->user, put->host, 0, put->cause, sizeof(put->cause));
}

/* --- puts of threads --- */

#define SETS 64 /* of threads, by id */
#define WAYS 4

struct ebpfMonThreadPuts {
    ebpfMonThreadPut table[SETS][WAYS];
};

ebpfMonThreadPuts *ebpfMonThreadPutsNew(void)
{
    return calloc(1, sizeof(ebpfMonThreadPuts));
}

void ebpfMonThreadPutsFree(ebpfMonThreadPuts *puts)
{
    free(puts);
}

static ebpfMonThreadPut *findThread(const ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid)
{
    ebpfMonThreadPut *set = (ebpfMonThreadPut *)puts->table[tid % SETS]; /* some callers change it, others do not */

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].tid == tid && set[i].iocId == iocId)
            return &set[i];
    return NULL;
}

/* The place of a thread; a new thread gets a free one, or that of the thread whose last put is the oldest. */
static ebpfMonThreadPut *getThread(ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid)
{
    ebpfMonThreadPut *set = puts->table[tid % SETS], *place = findThread(puts, iocId, tid);

    if (place)
        return place;
    for (unsigned i = 0; i < WAYS; i++)
        if (!place || !set[i].tid || (place->tid && set[i].seen.at < place->seen.at))
            place = &set[i];
    memset(place, 0, sizeof(*place));
    place->iocId = iocId;
    place->tid = tid;
    return place;
}

const ebpfMonThreadPut *ebpfMonThreadPutsFindForChain(const ebpfMonThreadPuts *puts, const struct ebpfMonChain *chain,
                                                      uint64_t root)
{
    const ebpfMonThreadPut *p = findThread(puts, chain->head.iocId, chain->head.tid);

    return p && p->seen.precord == root && p->seen.at >= chain->begin && p->seen.at <= chain->head.ktime ? p : NULL;
}

int ebpfMonThreadPutsHaveBegun(const ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid, uint64_t root,
                               uint64_t begin)
{
    const ebpfMonThreadPut *p = findThread(puts, iocId, tid);
    int found = p && p->seen.precord == root && p->seen.at >= begin;

    for (unsigned i = 0; p && i < EBPFMON_THREAD_PUTS_BEFORE; i++)
        found |= p->before[i].precord == root && p->before[i].at >= begin;
    return found;
}

uint64_t ebpfMonThreadPutsFindOwner(const ebpfMonThreadPuts *puts, const struct ebpfMonPutEvent *ev)
{
    const ebpfMonThreadPut *p = findThread(puts, ev->head.iocId, ev->head.tid);

    return p && p->seen.isMessage && ev->seqKind == EBPFMON_SEQ_MESSAGE && p->seen.seq == ev->seq &&
                   p->seen.precord != ev->precord ? p->seen.precord : 0;
}

uint64_t ebpfMonThreadPutsGetNumber(const ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid)
{
    const ebpfMonThreadPut *p = findThread(puts, iocId, tid);

    return p ? EBPFMON_PUT_NUMBER(tid, p->id) : 0;
}

/* It is the first put after the chain began: a thread may serve several clients (pvxs), and has perhaps made other puts
 * since. If all the puts that are remembered came after that, an earlier one may be forgotten: then the answer is only
 * known when all are equal. */
const char *ebpfMonThreadPutsFindWriter(const ebpfMonThreadPuts *puts, uint32_t iocId,
                                        const struct ebpfMonSourceChain *source)
{
    const ebpfMonThreadPut *p = findThread(puts, iocId, source->tid);
    const ebpfMonThreadPutSeen *first = p ? &p->seen : NULL;
    int allAfter = 1, allEqual = 1;

    if (!first || first->at < source->begin)
        return "";
    for (unsigned i = 0; i < EBPFMON_THREAD_PUTS_BEFORE; i++) {
        const ebpfMonThreadPutSeen *b = &p->before[i];

        if (b->at < source->begin) {
            allAfter = 0;
            continue;
        }
        allEqual &= b->precord == first->precord && strcmp(b->who, first->who) == 0;
        if (b->at < first->at)
            first = b;
    }
    return first->precord == source->root && (!allAfter || allEqual) ? first->who : "";
}

void ebpfMonThreadPutsAdd(ebpfMonThreadPuts *puts, const struct ebpfMonPutEvent *ev, const char *who)
{
    ebpfMonThreadPut *p;

    if (ev->putKind != EBPFMON_PUT_VALUE || (ev->root && ev->root != ev->precord))
        return; /* it never reached dbPut, or was made in the course of another record's chain */
    p = getThread(puts, ev->head.iocId, ev->head.tid);
    if (p->seen.at)
        p->before[p->next++ % EBPFMON_THREAD_PUTS_BEFORE] = p->seen;
    p->id = ev->id;
    p->seen.at = ev->head.ktime;
    p->seen.precord = ev->precord;
    p->seen.seq = ev->seq;
    p->seen.isMessage = ev->seqKind == EBPFMON_SEQ_MESSAGE;
    p->byClient = ev->who.isCA || ev->who.peer.addr;
    snprintf(p->seen.who, sizeof(p->seen.who), "%s", who);
    p->isFinished = 0;
}

void ebpfMonThreadPutsFinish(ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid, uint64_t id,
                             const ebpfMonPutSummary *put)
{
    ebpfMonThreadPut *p = findThread(puts, iocId, tid);

    if (!p || p->id != id)
        return;
    p->put = *put;
    p->isFinished = 1;
}
